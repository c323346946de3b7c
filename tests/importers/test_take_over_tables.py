"""--take-over on tables that the models of django-celery-beat wrote, while beat is stopped."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from beat_folder import APP, ran
from msgspec.structs import asdict

from rota import failpoints
from rota.cli.take_over import paired
from rota.errors import Refused
from rota.importers.beat_switches import BeatSwitches
from rota.importers.django_celery_beat import PeriodicTask, read_tables, table_items
from rota.importers.django_database import DjangoDatabase
from rota.importers.found import Item, Tasks
from rota.importers.take_over import HOLD, POINTS, Context, take
from rota.importers.take_over_record import Records, TakeOver, read_every
from rota.model.micros import datetime_of
from rota.tasks.task import Registry


def test_each_item_goes_off_there_and_on_here_from_its_last_run(folder):
    last = datetime(2026, 11, 16, 8, 30, 0, 123456, tzinfo=UTC)
    ran(folder, "morning report", last)
    said = folder("--take-over", "--beat-stopped")
    assert "morning-report  taken: beat ran it up to 2026-11-16 08:30:00 UTC" in said
    assert "often  left: it is off in django-celery-beat" in said
    assert "friday-13th  left: it needs day-of-month 13" in said
    assert "at-dawn  left: solar" in said
    schedules = folder.schedules()
    assert {name for name, one in schedules.items() if one.is_enabled} == {
        "morning-report", "first-monday", "later", "a-try",
    }  # fmt: skip
    report = schedules["morning-report"]
    assert datetime_of(report.fired_through) == last
    assert datetime_of(report.next_at) == datetime(2026, 11, 17, 8, 30, tzinfo=UTC)  # missed, and still open
    assert datetime_of(schedules["later"].next_at) == datetime(2099, 1, 1, 12, 30, 15, tzinfo=UTC)
    assert folder.row("morning report") == (0, None, "2026-11-16 08:30:00.123456")
    assert folder.row("a try")[:2] == (0, "2099-01-01 12:30:15")  # it keeps the start time of its own
    assert "0 items moved" in folder("--take-over", "--beat-stopped")


def test_what_was_taken_over_is_left_alone_by_later_imports_and_can_be_given_back(folder):
    ran(folder, "morning report", datetime(2026, 11, 16, 8, 30, tzinfo=UTC))
    folder("--take-over", "--beat-stopped", "--only", "first monday")
    assert "no longer has" not in folder("--take-over", "--beat-stopped", "--only", "morning report")
    before = folder.schedules()["morning-report"]
    assert "it was taken over from beat" in folder()
    assert folder.schedules()["morning-report"] == before
    back = folder("--give-back", "--beat-stopped")
    assert "morning-report  back: beat goes on after 2026-11-16 08:30:00 UTC" in back
    assert folder.row("morning report") == (1, None, "2026-11-16 08:30:00")
    assert not folder.schedules()["morning-report"].is_enabled
    assert "it was given back to beat" in folder()
    assert not folder.schedules()["morning-report"].is_enabled
    assert "morning-report  taken" in folder("--take-over", "--beat-stopped", "--only", "morning-report")


def test_an_interval_goes_on_from_its_last_run(folder):
    last = datetime.now(UTC) - timedelta(seconds=10)
    folder.sql("UPDATE django_celery_beat_periodictask SET enabled = 1 WHERE name = 'often'")
    ran(folder, "often", last)
    folder("--take-over", "--beat-stopped", "--only", "often")
    first = datetime_of(folder.schedules()["often"].next_at)
    assert timedelta(0) <= first - (last + timedelta(seconds=90)) < timedelta(seconds=1)
    assert "taken over" in folder()  # a plain import does not count it from the import again
    assert datetime_of(folder.schedules()["often"].next_at) == first


def test_a_one_off_that_has_run_stays_with_beat(folder):
    ran(folder, "later", datetime(2026, 11, 16, tzinfo=UTC))
    assert "later  released: beat has turned it off, or has run it" in folder(
        "--take-over", "--beat-stopped", "--only", "later"
    )
    assert not folder.schedules()["later"].is_enabled
    assert folder.row("later")[:2] == (1, None)


def test_a_beat_that_does_not_answer_keeps_everything(folder):
    words = ("--take-over", "--wait-for-beat", "1s")
    said = folder(*words, code=8)
    assert "beat did not answer within 1 s, and nothing was changed; see that it runs" in said
    assert "--wait-for-beat" in said
    assert "rota jobs show" not in said
    assert folder.row("first monday") == (1, None, None)
    assert not any(one.is_enabled for one in folder.schedules().values())
    assert "0 items moved" not in folder("--take-over", "--beat-stopped")
    left = folder.sql("SELECT count(*) FROM django_celery_beat_periodictask WHERE name LIKE 'rota-%' AND enabled")
    assert left == [(1,)]  # a beat that starts switches the question off; the next command removes it
    folder.sql("UPDATE django_celery_beat_periodictask SET enabled = 0 WHERE name LIKE 'rota-%'")
    folder("--take-over", "--beat-stopped")
    assert folder.sql("SELECT 1 FROM django_celery_beat_periodictask WHERE name LIKE 'rota-%'") == []


def test_of_two_commands_at_once_one_is_refused(folder):
    folder("--take-over", "--beat-stopped", "--only", "first-monday")
    with closing(folder.store()) as store:
        (name,) = read_every(store)
        record, version = Records(store).find(name)
        Records(store).write(name, record, version)
        with pytest.raises(Exception, match="another process"):
            Records(store).write(name, record, version)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--take-over", "--give-back"), "exclude each other"),
        (("--take-over", "--to", "x.yaml"), "needs the store"),
        (("--take-over", "--retire"), "plain import"),
        (("--give-back", "--retire"), "plain import"),
        (("--retire", "--only", "later"), "plain import of all items"),
        (("--take-over", "--disabled"), "--take-over turns schedules on"),
        (("--give-back", "--disabled"), "--give-back turns schedules off"),
        (("--take-over", "--only", "none"), "no item of django-celery-beat has this name"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder, words, reason):
    assert reason in folder(*words, code=2)


def test_an_item_that_somebody_switches_on_again_is_named(folder):
    words = ("--take-over", "--beat-stopped", "--only", "first monday")
    folder(*words)
    folder.sql("UPDATE django_celery_beat_periodictask SET enabled = 1 WHERE name = 'first monday'")
    assert "it is on in Django again, so both systems run it" in folder(*words)
    folder.sql("UPDATE django_celery_beat_periodictask SET id = 900 WHERE name = 'first monday'")  # made again
    assert "first-monday  taken" in folder(*words)
    assert folder.row("first monday")[0] == 0


def test_a_dry_run_changes_neither_system(folder):
    before = (folder.path / "site.db").read_bytes()
    assert "nothing was written" in folder("--take-over", "--dry-run")
    assert (folder.path / "site.db").read_bytes() == before
    assert not (folder.path / ".rota").exists()


def test_a_task_that_the_app_does_not_have_stays_with_beat(folder):
    (folder.path / "jobs.py").write_text(APP.replace('"report", ', ""))
    said = folder("--take-over", "--beat-stopped")
    assert "morning-report  left: the app has no task 'shop.report'" in said
    assert folder.row("morning report")[0] == 1


class Killed(BaseException):
    """Ends a command at a point, as a signal would: nothing after it is done."""


@contextmanager
def killed_at(point: str):
    def stop(name: str) -> None:
        if name == point:
            raise Killed

    failpoints.install(stop)
    try:
        with pytest.raises(Killed):
            yield
    finally:
        failpoints.install(None)


@pytest.mark.parametrize("goal", ["--take-over", "--give-back"])
@pytest.mark.parametrize("point", POINTS)
def test_a_command_that_was_killed_anywhere_is_finished_or_undone(folder, point, goal):
    """In either direction, one system has the item at the end, with the last run of the other."""
    last = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)
    ran(folder, "morning report", last)
    only = ("--beat-stopped", "--only", "morning report")
    if point.startswith("back."):
        folder("--take-over", *only)
    with killed_at(point):
        folder("--give-back" if point.startswith("back.") else "--take-over", *only)
    if point.startswith("back.") and goal == "--take-over":
        folder("--give-back", *only)
    folder(goal, *only)
    schedule = folder.schedules()["morning-report"]
    is_taken = goal == "--take-over"
    assert schedule.is_enabled is is_taken
    assert folder.row("morning report") == (int(not is_taken), None, "2026-11-16 08:30:00")
    assert not is_taken or datetime_of(schedule.fired_through) == last


def test_a_command_that_gives_up_leaves_what_another_one_has_gone_on_with(folder):
    folder()
    now = datetime.now(UTC)
    rows = read_tables("sqlite:///site.db")
    pairs = zip(table_items(rows, Tasks(Registry()), prefix="", now=now), rows, strict=True)
    item, row = next((item, row) for item, row in pairs if row.enabled)
    with closing(folder.store()) as store, closing(DjangoDatabase("sqlite:///site.db")) as database:
        records = Records(store)

        def another_goes_on(_seconds: float) -> None:
            record, version = records.find(item.id)
            if record.step == "holding":
                records.write(item.id, TakeOver(**{**asdict(record), "step": "held", "through": 5}), version)

        context = Context(
            store=store, switches=BeatSwitches(database), source="s", by="b", new_id=lambda: "i", patience=0.2,
            sleep=another_goes_on,
        )  # fmt: skip
        with pytest.raises(Refused, match="another process"):
            take(context, item, row)
        assert records.find(item.id)[0].step == "held"


def test_an_item_that_is_turned_off_in_django_while_it_is_held_is_not_turned_on_in_rota(folder):
    with closing(DjangoDatabase("sqlite:///site.db")) as database:
        switches, until = BeatSwitches(database), datetime.now(UTC).replace(microsecond=0) + HOLD
        row = next(one for one in read_tables("sqlite:///site.db") if one.enabled)
        assert switches.hold(row.id, row.start_time, until)
        folder.sql("UPDATE django_celery_beat_periodictask SET enabled = 0 WHERE id = ?", row.id)
        assert not switches.switch_off(row.id, row.start_time, until)
        switches.release(row.id, row.start_time, until)
        assert switches.switch_off(row.id, row.start_time, until)


def test_an_item_that_has_the_old_name_of_a_taken_one_gets_an_id_of_its_own():
    rows = [PeriodicTask(id=number, name=name, task="t", old_text="") for number, name in ((1, "new"), (2, "old"))]
    items = [Item(id=row.name, name=row.name, old_text="") for row in rows]
    record = TakeOver(source="s", row=1, name="old", step="taken", before=None, until=datetime.now(UTC))
    assert [pair.item.id for pair in paired(items, rows, {"old": record})] == ["old", "old-2"]


def test_a_row_that_cannot_be_read_does_not_stop_the_others(folder):
    often = "WHERE id = (SELECT max(id) FROM django_celery_beat_periodictask WHERE interval_id IS NOT NULL)"
    for slip in (f"args = '{'[' * 20_000}'", "expires = 'nonsense'"):
        folder.sql(f"UPDATE django_celery_beat_periodictask SET {slip} {often}")  # noqa: S608
        assert "unsupported" in folder("--dry-run")
    folder.sql("UPDATE django_celery_beat_intervalschedule SET period = 'fortnights'")
    assert "fortnights cannot be read" in folder("--dry-run")
