"""A test per requirement of recurring work items for tenants (C1 to C30), and of changes at run time (A49 to A51)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rota import App, calendar, cron, every
from rota.testing import Kit, ManualClock

NOON = "2026-01-15T12:00:00Z"
LONG_AGO = date(2026, 1, 1)


@pytest.fixture
def clock():
    return ManualClock(NOON)


@pytest.fixture
def app():
    return App()


@pytest.fixture
def made():
    """What the task has made."""
    return []


@pytest.fixture
def item(app, made):
    @app.task(name="items.make")
    def make(template: str = "plain") -> str:
        made.append(template)
        return template

    return make


@pytest.fixture
def kit(app, clock, item):
    assert item.name == "items.make"
    with Kit(app, clock) as kit:
        yield kit


def daily(**options):
    return calendar(days=1, at="00:05", **options)


def texts(moments, zone="UTC"):
    return [moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M") for moment in moments]


def runs(app, name="it", n=3, zone="UTC"):
    return texts(app.schedules.next_runs(name, n), zone)


def outcomes(app, clock, name="it"):
    page = app.schedules.occurrences(name, datetime(2026, 1, 1, tzinfo=UTC), clock.now + timedelta(days=1), limit=200)
    return [(line.count, line.outcome) for line in page.items]


def test_c1_one_wake_up_looks_at_what_is_due_and_nothing_else(app, kit, item):
    app.schedules.put_many([(f"later{n}", item.job(), daily(start=LONG_AGO)) for n in range(300)])
    app.schedules.put("soon", item.job(), every("1h"))
    due = app.open().due_schedules(200, now=int((kit.clock.now + timedelta(hours=1)).timestamp() * 1e6))
    assert [schedule.id for schedule in due.schedules] == ["soon"]


@pytest.mark.parametrize(
    ("unit", "second"),
    [("days", "2026-01-16"), ("weeks", "2026-01-22"), ("months", "2026-02-15"), ("years", "2027-01-15")],
)
def test_c2_every_day_week_month_and_year(app, kit, item, unit, second):
    app.schedules.put("it", item.job(), calendar(**{unit: 1}, at="13:00", start=date(2026, 1, 15)))
    assert runs(app, n=2) == ["2026-01-15 13:00", f"{second} 13:00"]
    assert len(kit.fired("it")) == 0


def test_c3_every_two_weeks_and_every_three_months(app, kit, item):
    assert kit.jobs == []
    app.schedules.put("it", item.job(), calendar(weeks=2, at="09:00", start=date(2026, 1, 20)))
    app.schedules.put("that", item.job(), calendar(months=3, at="09:00", start=date(2026, 1, 20)))
    assert runs(app) == ["2026-01-20 09:00", "2026-02-03 09:00", "2026-02-17 09:00"]
    assert runs(app, "that") == ["2026-01-20 09:00", "2026-04-20 09:00", "2026-07-20 09:00"]


def test_c4_every_second_tuesday_the_fifteenth_and_every_quarter(app, kit, item):
    assert kit.jobs == []
    app.schedules.put("fortnight", item.job(), calendar(weeks=2, on="tue", at="09:00", start=LONG_AGO))
    app.schedules.put("second", item.job(), calendar(months=1, on="tue", nth=2, at="09:00", start=LONG_AGO))
    app.schedules.put("fifteenth", item.job(), calendar(months=3, at="09:00", start=date(2026, 1, 15)))
    app.schedules.put("quarter", item.job(), calendar(quarters=1, at="09:00", start=LONG_AGO))
    assert runs(app, "fortnight", 2) == ["2026-01-20 09:00", "2026-02-03 09:00"]
    assert runs(app, "second", 2) == ["2026-02-10 09:00", "2026-03-10 09:00"]
    assert runs(app, "fifteenth", 2) == ["2026-04-15 09:00", "2026-07-15 09:00"]
    assert runs(app, "quarter", 2) == ["2026-04-01 09:00", "2026-07-01 09:00"]


def test_c5_months_and_years_do_not_drift(app, kit, item):
    """Each is counted from the anchor, whatever ran before."""
    app.schedules.put("it", item.job(), calendar(months=1, at="00:05", start=date(2026, 1, 31)))
    kit.travel_to("2026-03-01T00:00:00Z")
    app.schedules.pause("it")
    kit.travel_to("2026-04-05T00:00:00Z")
    app.schedules.resume("it")
    kit.travel_to("2026-06-01T00:00:00Z")
    assert texts(kit.fired("it")) == ["2026-01-31 00:05", "2026-02-28 00:05", "2026-04-30 00:05", "2026-05-31 00:05"]


def test_c6_nothing_runs_before_the_start(app, kit, item):
    app.schedules.put("it", item.job(), daily(start=LONG_AGO), start=date(2026, 2, 1))
    kit.travel_to("2026-02-02T12:00:00Z")
    assert texts(kit.fired("it")) == ["2026-02-01 00:05", "2026-02-02 00:05"]


def test_c7_an_end_date_means_the_end_of_that_local_day(app, kit, item):
    app.tenants.put("acme", tz="America/Los_Angeles")
    late = cron("59 23 * * *")
    app.schedules.put("it", item.job(), late, tenant="acme", end=date(2026, 1, 16))
    kit.travel_to("2026-01-20T00:00:00Z")
    assert texts(kit.fired("it"), "America/Los_Angeles") == ["2026-01-15 23:59", "2026-01-16 23:59"]
    assert app.schedules.get("it").next_run is None


def test_c8_a_disabled_one_does_not_run(app, kit, item):
    app.schedules.put("it", item.job(), every("1h"), enabled=False)
    kit.travel("5h")
    assert kit.fired("it") == []
    app.schedules.enable("it")
    kit.travel("1h")
    assert texts(kit.fired("it")) == ["2026-01-15 18:00"]


def test_c9_the_next_run_is_there_to_be_seen(app, kit, item):
    app.tenants.put("acme", tz="Asia/Kolkata")
    view = app.schedules.put("it", item.job(), daily(start=LONG_AGO), tenant="acme")
    assert view.next_run.isoformat() == "2026-01-16T00:05:00+05:30"
    kit.travel("8h")
    assert app.schedules.get("it").next_run.isoformat() == "2026-01-17T00:05:00+05:30"


def test_c10_the_last_success_is_written_by_the_work_and_not_by_the_firing(app, clock, made):
    @app.task(name="items.fail", retries=0)
    def fail() -> None:
        made.append("tried")
        if len(made) > 1:
            raise RuntimeError("no template")

    with Kit(app, clock) as kit:
        app.schedules.put("it", fail.job(), every("1h"))
        kit.travel("1h")
        first = app.schedules.get("it").last_success
        kit.travel("1h")
        view = app.schedules.get("it")
    assert first == datetime(2026, 1, 15, 13, tzinfo=UTC)
    assert (view.last_success, view.last_status) == (first, "failed")
    assert view.last_finished > first


def test_c11_what_is_due_is_found_in_order_and_only_what_is_enabled(app, kit, item):
    app.schedules.put("b", item.job(), every("2h"))
    app.schedules.put("a", item.job(), every("3h"))
    app.schedules.put("off", item.job(), every("1h"), enabled=False)
    at = int((kit.clock.now + timedelta(hours=4)).timestamp() * 1e6)
    assert [schedule.id for schedule in app.open().due_schedules(9, now=at).schedules] == ["b", "a"]


def test_c12_instants_are_kept_whatever_the_zones_are(app, kit, item):
    """One instant in three zones is one instant."""
    for name, tz, hour in (("utc", "UTC", 18), ("india", "Asia/Kolkata", 23), ("york", "America/New_York", 13)):
        app.schedules.put(name, item.job(), cron(f"{30 if name == 'india' else 0} {hour} * * *"), tz=tz)
    kit.travel("7h")
    assert {app.open().get_schedules([name])[0].fired_through for name in ("utc", "india", "york")} == {
        int(datetime(2026, 1, 15, 18, tzinfo=UTC).timestamp() * 1e6)
    }


def test_c13_what_is_due_within_the_window_is_made_ahead(app, kit, item):
    app.schedules.put("it", item.job(), every("2h"), lookahead="6h")
    app.schedules.put("not", item.job(), every("2h"))
    kit.run_due()
    assert texts(kit.fired("it")) == ["2026-01-15 14:00", "2026-01-15 16:00"]  # half-open: 18:00 is in the next window
    assert kit.fired("not") == []


def test_c14_what_is_created_or_enabled_inside_the_window_is_made_at_once(app, kit, item):
    app.schedules.put("it", item.job(), daily(start=LONG_AGO), lookahead="24h")
    kit.run_due()
    assert texts(kit.fired("it")) == ["2026-01-16 00:05"]
    app.schedules.disable("it")
    assert [job.state for job in app.jobs.list().items] == []  # deleted, without a trace
    app.schedules.enable("it")
    kit.run_due()
    assert len(app.jobs.list().items) == 1


def test_c15_a_run_that_is_past_due_is_at_once_and_others_at_their_time(app, kit, item, made):
    app.schedules.put("it", item.job(), every("1h"))
    kit.clock.travel("90m")  # nothing is alive
    kit.run_due()
    assert len(made) == 1
    kit.travel("29m")
    assert len(made) == 1
    kit.travel("1m")
    assert len(made) == 2


def test_c16_the_task_makes_an_item_from_its_template(app, kit, item, made):
    app.schedules.put("it", item.job("weekly report"), every("1h"))
    kit.travel("1h")
    assert made == ["weekly report"]


def test_c17_it_goes_on_to_the_next_run_even_where_the_task_fails(app, clock):
    @app.task(name="items.fail", retries=0)
    def fail() -> None:
        raise RuntimeError("no template")

    with Kit(app, clock) as kit:
        app.schedules.put("it", fail.job(), every("1h"))
        kit.travel("3h")
        assert len(kit.fired("it")) == 3
        assert len(kit.failures) == 3


def test_c18_the_end_is_compared_with_the_time_of_the_run(app, kit, item):
    """Late handling of a run that lay before the end is still that run; one after the end is none."""
    app.schedules.put("it", item.job(), every("1h"), end=datetime(2026, 1, 15, 13, 30, tzinfo=UTC))
    kit.clock.travel("5h")
    kit.run_due()
    assert texts(kit.fired("it")) == ["2026-01-15 13:00"]


def test_c19_an_occurrence_has_one_identity_and_one_job(app, kit, item):
    app.schedules.put("it", item.job(), every("1h"))
    store = app.open()
    kit.clock.travel("1h")
    due = store.due_schedules(9).schedules
    from rota.model.schedules.firing import plan  # noqa: PLC0415 - two schedulers that have seen the same

    firings = [plan(due[0], kit.clock.micros(), lambda number=number: f"job-{number}") for number in (1, 2)]
    assert [fired.is_accepted for fired in store.fire(firings)] == [True, False]
    assert len(kit.fired("it")) == 1


def test_c20_a_change_of_the_times_is_told_from_a_change_of_anything_else(app, kit, item):
    app.schedules.put("it", item.job(), every("1h"))
    kit.clock.travel("1s")
    app.schedules.put("it", item.job("other"), every("1h"))
    kit.clock.travel("1s")
    app.schedules.put("it", item.job("other"), every("2h"))
    kit.clock.travel("1s")
    app.schedules.disable("it")
    assert [change.verb for change in app.schedules.changes("it").items] == [
        "disabled", "re-timed", "changed", "created",
    ]  # fmt: skip
    assert kit.jobs == []


@pytest.mark.parametrize("verb", ["create", "re-time", "enable"])
def test_c21_creating_re_timing_and_enabling_take_effect_at_once(app, kit, item, verb):
    if verb != "create":
        app.schedules.put("it", item.job(), every("30d"), enabled=verb != "enable")
    if verb == "enable":
        app.schedules.put("it", item.job(), every("1h"), enabled=False)
        app.schedules.enable("it")
    else:
        app.schedules.put("it", item.job(), every("1h"))
    kit.travel("1h")
    assert len(kit.fired("it")) == 1


def test_c22_editing_anything_else_does_not_move_the_next_run(app, kit, item, made):
    before = app.schedules.put("it", item.job(), every("5h"))
    kit.travel("1h")
    after = app.schedules.put("it", item.job("other"), every("5h"), priority="high", description="more")
    assert after.next_run == before.next_run
    kit.travel("4h")
    assert made == ["other"]


def test_c23_editing_the_times_recomputes_them_from_the_start(app, kit, item):
    app.schedules.put("it", item.job(), daily(start=LONG_AGO))
    kit.travel("1d")
    app.schedules.put("it", item.job(), calendar(days=3, at="00:05", start=LONG_AGO))
    assert runs(app) == ["2026-01-19 00:05", "2026-01-22 00:05", "2026-01-25 00:05"]


def test_c24_the_tenants_zone_decides(clock, made):
    """Not the app's, and not that of the person who looks."""
    app = App(tz="America/New_York")

    @app.task(name="items.make")
    def make() -> None:
        made.append(1)

    with Kit(app, clock) as kit:
        app.tenants.put("acme", tz="Asia/Tokyo")
        app.schedules.put("it", make.job(), daily(start=LONG_AGO), tenant="acme")
        kit.travel("1d")
        assert texts(kit.fired("it"), "Asia/Tokyo") == ["2026-01-16 00:05"]


def test_c25_five_past_midnight_in_each_zone(app, kit, item):
    zones = ["Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "UTC"]
    for number, tz in enumerate(zones):
        app.tenants.put(f"t{number}", tz=tz)
        app.schedules.put(f"it{number}", item.job(), daily(start=LONG_AGO), tenant=f"t{number}")
    kit.travel("1d")
    for number, tz in enumerate(zones):
        assert texts(kit.fired(f"it{number}"), tz) == ["2026-01-16 00:05"]


def test_c26_the_wall_time_is_kept_across_clock_changes(app, kit, item):
    app.schedules.put("it", item.job(), calendar(months=1, at="09:00", start=date(2026, 2, 20)), tz="America/New_York")
    kit.travel_to("2026-05-01T00:00:00Z")
    assert texts(kit.fired("it"), "America/New_York") == ["2026-02-20 09:00", "2026-03-20 09:00", "2026-04-20 09:00"]
    assert texts(kit.fired("it")) == ["2026-02-20 14:00", "2026-03-20 13:00", "2026-04-20 13:00"]


@pytest.mark.parametrize(
    ("policy", "first"), [("recompute", "2026-01-16 18:35"), ("keep_next", "2026-01-17 00:05")], ids=str
)
def test_c27_after_a_change_of_zone_all_is_right_at_once_or_after_one_run_at_the_old_time(
    app, kit, item, policy, first
):
    app.tenants.put("acme", tz="UTC", on_zone_change=policy)
    app.schedules.put("it", item.job(), daily(start=LONG_AGO), tenant="acme")
    kit.travel_to("2026-01-16T06:00:00Z")
    app.tenants.put("acme", tz="Asia/Kolkata", on_zone_change=policy)
    assert runs(app, n=1) == [first]
    kit.travel_to("2026-01-18T12:00:00Z")
    assert texts(kit.fired("it"))[:2] == ["2026-01-16 00:05", first]
    assert texts(kit.fired("it"))[2] == "2026-01-17 18:35"  # both agree: 01-18 00:05 there


def test_c28_years_away_are_skipped_without_walking_them(app, kit, item):
    app.schedules.put("it", item.job(), every("1s"), enabled=False)
    kit.clock.travel(timedelta(days=6 * 365))
    app.schedules.enable("it")
    assert kit.run_due() == []
    assert outcomes(app, kit.clock) == [(6 * 365 * 86_400, "skipped")]


def test_c29_no_run_is_missed_and_none_is_doubled(app, kit, item):
    app.tenants.put("acme", tz="Africa/Cairo")  # whose clocks skip midnight in April
    app.schedules.put("it", item.job(), daily(start=LONG_AGO), tenant="acme")
    kit.travel_to("2026-11-30T22:30:00Z")
    days = [moment.astimezone(ZoneInfo("Africa/Cairo")).date() for moment in kit.fired("it")]
    assert days == [date(2026, 1, 16) + timedelta(days=n) for n in range(len(days))]
    assert days[-1] == date(2026, 12, 1)


def test_c30_a_start_earlier_today_runs_at_once_on_creation_and_never_on_an_update(app, kit, item):
    start = datetime(2026, 1, 15, 9, tzinfo=UTC)
    app.schedules.put("it", item.job(), every("1d"), start=start)
    kit.run_due()
    assert texts(kit.fired("it")) == ["2026-01-15 09:00"]
    assert app.schedules.why("it", start).outcome == "late"
    (line,) = app.schedules.occurrences("it", start, start + timedelta(hours=1)).items
    assert (line.through, line.outcome) == (start, "succeeded")
    app.schedules.put("it", item.job(), every("1d"), start=start - timedelta(hours=1))
    kit.run_due()
    assert texts(kit.fired("it")) == ["2026-01-15 09:00"]
    app.schedules.put("old", item.job(), every("1d"), start=start - timedelta(days=1))
    kit.run_due()
    assert kit.fired("old") == []


def test_a49_a_change_takes_effect_without_a_restart(app, kit, item, made):
    app.schedules.put("it", item.job(), every("1h"))
    kit.travel("1h")
    app.schedules.put("it", item.job("new"), every("10m"))
    kit.travel("30m")
    assert made == ["plain", "new", "new", "new"]


def test_a50_pause_and_resume(app, kit, item):
    app.schedules.put("it", item.job(), every("1h"))
    app.schedules.pause("it", reason="month end", by="ann", until=datetime(2026, 1, 15, 15, tzinfo=UTC))
    view = app.schedules.get("it")
    assert (view.is_paused, view.pause_reason) == (True, "paused by ann: month end")
    kit.travel("3h")
    assert texts(kit.fired("it")) == ["2026-01-15 15:00"]  # the one at its very end runs
    app.schedules.pause("it")
    kit.travel("3h")
    app.schedules.resume("it")
    kit.travel("1h")
    assert texts(kit.fired("it"))[1:] == ["2026-01-15 19:00"]
    assert outcomes(app, kit.clock) == [(2, "skipped"), (1, "succeeded"), (3, "skipped"), (1, "succeeded")]


def test_a51_the_history_of_runs_and_of_changes_is_kept(app, kit, item):
    app.schedules.put("it", item.job(), every("1h"), by="ann")
    kit.travel("2h")
    assert outcomes(app, kit.clock) == [(1, "succeeded"), (1, "succeeded")]
    assert app.schedules.why("it", datetime(2026, 1, 15, 14, tzinfo=UTC)).outcome == "fired"
    assert app.schedules.remove("it", by="bob")
    assert [(change.verb, change.by) for change in app.schedules.changes("it").items] == [
        ("removed", "bob"), ("created", "ann"),
    ]  # fmt: skip
