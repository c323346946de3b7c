"""What --take-over and --give-back say and do about items that were retired, removed, deleted or never ran."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from beat_folder import APP, ran

from rota.importers.beat_source import identity_of
from rota.model.micros import datetime_of
from rota.model.schedules import edit as edits

TAKE = ("--take-over", "--beat-stopped")
GIVE = ("--give-back", "--beat-stopped")
FIRST = ("--only", "first monday")
ITEMS = "django_celery_beat_periodictask"


def edit(folder, text: str, name: str = "first monday") -> None:
    folder.sql(f"UPDATE {ITEMS} SET {text} WHERE name = ?", name)  # noqa: S608


def retire(folder, schedule_id: str) -> None:
    """As an earlier version of --retire did with an item that was taken over."""
    with closing(folder.store()) as store:
        (schedule,) = store.get_schedules([schedule_id])
        assert store.edit_schedules([edits.retire(schedule, schedule.origin, store.now())]) == []


def test_only_judges_nothing_else_as_gone(folder):
    folder()
    edit(folder, "name = 'first tuesday'")
    said = folder("--only", "later")
    assert "1 item: 1 unchanged" in said
    assert "no longer has" not in said
    assert "the source no longer has first-monday" in folder()


def test_only_limits_a_plain_import(folder):
    folder("--only", "later", "--only", "first-monday")
    assert set(folder.schedules()) == {"later", "first-monday"}


def test_a_plain_import_says_that_both_systems_run_what_is_on(folder):
    assert "both systems run what is on in both; --take-over moves it" in folder()
    assert "both systems" not in folder("--only", "often")


def test_a_disabled_import_runs_nothing_twice(folder):
    assert "both systems" not in folder("--disabled")
    folder.rota("schedules", "enable", "first-monday")
    assert "1 item is on in beat and in Rota" in folder("--disabled")


def test_a_retired_item_is_named_and_comes_back_by_give_back_and_take_over(folder):
    folder(*TAKE, *FIRST)
    retire(folder, "first-monday")
    said = folder(*TAKE, *FIRST)
    assert "first-monday  left: it was taken over, and its schedule was retired in Rota: no system runs it" in said
    assert "--give-back to return it" in said
    assert "django-celery-beat URL --give-back" in folder.rota("schedules", "enable", "first-monday", code=6)
    assert "first-monday  back" in folder(*GIVE, *FIRST)
    assert folder.row("first monday")[0] == 1
    assert "first-monday  taken" in folder(*TAKE, *FIRST)
    assert "retired" not in folder.rota("schedules", "list")
    assert folder.schedules()["first-monday"].is_enabled


def test_a_removed_schedule_is_named_and_can_be_given_back(folder):
    folder(*TAKE, *FIRST)
    folder.rota("schedules", "remove", "first-monday")
    assert "its schedule was removed in Rota: no system runs it" in folder(*TAKE, *FIRST)
    assert "first-monday" not in folder.schedules()
    assert "first-monday  back: beat goes on after" in folder(*GIVE, *FIRST)
    assert folder.row("first monday")[0] == 1
    assert "first-monday  taken" in folder(*TAKE, *FIRST)


def test_a_disabled_schedule_is_named(folder):
    folder(*TAKE, *FIRST)
    folder.rota("schedules", "disable", "first-monday")
    assert "is disabled in Rota: no system runs it; `rota schedules enable first-monday`" in folder(*TAKE, *FIRST)


def test_a_taken_item_that_was_deleted_in_django_is_not_retired(folder):
    folder(*TAKE, *FIRST)
    folder.sql(f"DELETE FROM {ITEMS} WHERE name = 'first monday'")  # noqa: S608
    assert "first-monday" not in folder("--retire")
    assert folder.schedules()["first-monday"].is_enabled


def test_an_interval_that_never_ran_begins_at_its_start_time_in_either_system(folder):
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=5)
    edit(folder, f"enabled = 1, start_time = '{start.replace(tzinfo=None)}'", "often")
    before = folder.row("often")
    assert f"beat has not run it; Rota's next run: {start:%Y-%m-%d %H:%M:%S} UTC" in folder(*TAKE, "--only", "often")
    taken = folder.schedules()["often"]
    assert datetime_of(taken.next_at) == start
    assert taken.fired_through < taken.updated_at
    assert "often  back: beat goes on with it, and it has not run yet" in folder(*GIVE, "--only", "often")
    assert folder.row("often") == before
    assert "beat has not run it" in folder(*TAKE, "--only", "often")


def test_a_single_time_that_beat_never_ran_is_not_said_to_have_run(folder):
    assert "later  taken: beat has not run it; Rota's next run: 2099-01-01 12:30:15 UTC" in folder(
        *TAKE, "--only", "later"
    )


def test_another_spelling_of_the_file_names_the_same_source(folder):
    folder(*TAKE, *FIRST)
    absolute = f"sqlite:///{Path('site.db').absolute()}"
    assert "it is Rota's already" in folder(*TAKE, *FIRST, url=absolute)
    assert "first-monday  back" in folder(*GIVE, url=absolute)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("postgres://ann:x@LOCALHOST/site", "postgresql://ann:y@127.0.0.1:5432/site?sslmode=require", True),
        ("postgresql://ann@[::1]/site", "postgresql://ann@localhost/site", True),
        ("postgresql://db/site", "postgresql://db:5433/site", False),
        ("postgresql://db/site", "postgresql://db/other", False),
        ("postgresql:///site?host=/run/a", "postgresql:///site?host=/run/b", False),
        ("sqlite:///a/../site.db", "sqlite:///site.db", True),
    ],
)
def test_what_is_the_same_database(one, other, is_same):
    assert (identity_of(one) == identity_of(other)) is is_same


def test_a_name_of_a_database_has_no_password():
    assert "hunter2" not in identity_of("postgresql://ann:hunter2@db/site?password=hunter2")


@pytest.mark.parametrize("words", [GIVE, TAKE])
def test_items_of_another_source_are_named(folder, words):
    folder(*TAKE, *FIRST)
    (folder.path / "copy.db").write_bytes((folder.path / "site.db").read_bytes())
    said = folder(*words, url="sqlite:///copy.db", code=6)
    assert "but from another source: first-monday (from sqlite:///" in said


def test_schedules_that_an_earlier_version_imported_are_found_again(folder, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr("rota.importers.beat_source.identity_of", lambda url: url)
        folder(*TAKE, *FIRST)
        folder("--only", "later")
    assert folder.schedules()["later"].origin.app == "django-celery-beat sqlite:///site.db"
    assert "1 unchanged" in folder("--only", "later")
    assert "first-monday  back" in folder(*GIVE)
    assert "later  taken" in folder(*TAKE, "--only", "later")


def test_a_dry_run_says_what_the_take_over_would_do(folder):
    (folder.path / "jobs.py").write_text(APP.replace('"report", ', "").replace('"often", ', ""))
    folder(*TAKE, *FIRST)
    said = folder("--take-over", "--dry-run")
    assert "first-monday  unchanged: it is Rota's already" in said
    assert "later  take: it would go off in beat, and on in Rota" in said
    assert "morning-report  left: the app has no task 'shop.report'; beat goes on with it" in said
    assert "often  left: the app has no task 'shop.often'; it is off in django-celery-beat" in said
    assert "nothing was written: 2 items would be moved, 6 items left" in said
    assert set(folder.schedules()) == {"first-monday"}


def test_a_dry_run_says_what_would_be_given_back(folder):
    ran(folder, "first monday", datetime(2026, 11, 16, tzinfo=UTC))
    folder(*TAKE, *FIRST)
    said = folder("--give-back", "--dry-run")
    assert "first-monday  give back: it would go off in Rota, and beat would go on after 2026-11-16 00:00:00" in said
    assert folder.schedules()["first-monday"].is_enabled
    folder(*GIVE)
    assert "first-monday  unchanged: it is beat's already" in folder("--give-back", "--dry-run")
    assert "did not answer" not in folder("--give-back")  # nothing is moved, so beat is not asked
    folder(*TAKE, "--only", "later")
    assert "later  give back: it would go off in Rota, and beat would go on with it" in folder(
        "--give-back", "--dry-run"
    )


def test_an_edit_in_rota_is_named_when_the_item_is_given_back(folder):
    folder(*TAKE, *FIRST)
    folder.rota("schedules", "edit", "first-monday", "--cron", "0 5 * * *")
    assert "it was edited in Rota, and beat goes on with its own rule" in folder(*GIVE)


def test_a_path_without_a_scheme_is_told_how_to_write_it(folder):
    assert "'site.db' names no kind of database; for a file of SQLite, write sqlite:///PATH" in folder(
        url="site.db", code=4
    )
