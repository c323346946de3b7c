"""app.tenants: a zone and defaults that schedules follow, pauses of all, and who changed what; on every store."""

from __future__ import annotations

import getpass
import socket
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest

from every_store import DURABLE, fresh_place
from rota import App, BadName, BadOption, Refused, TenantNotFound, UnknownZone, VersionConflict, calendar, cron, every
from rota.app import internals
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.tenant_sync import TenantSync
from rota.model.schedules.schedule import Origin
from tenants.world import At

NOON = 1_768_478_400  # 2026-01-15 12:00 in UTC
A_DATE = date(2026, 1, 1)


@pytest.fixture(params=["memory", *DURABLE])
def app(request, tmp_path):
    store = At(fresh_place(request.param, tmp_path).make())
    store.clock = NOON
    app = App(store)
    app.open()
    yield app
    app.close()


@pytest.fixture
def item(app):
    @app.task(name="items.make", queue="slow", priority=3)
    def make() -> None: ...

    return make


def later(app, seconds=1):
    app.open().clock += seconds


def daily():
    return calendar(days=1, at="00:05", start=A_DATE)


def next_run(app, name="it"):
    return app.schedules.get(name).next_run.astimezone(UTC).strftime("%m-%d %H:%M")


def a_sync(app):
    store, numbers = app.open(), iter(range(100))
    return TenantSync(store, internals(app).events, StoreClock(store.now), lambda: f"note-{next(numbers)}")


def test_a_tenant_is_put_and_read(app):
    made = app.tenants.put("acme", tz="Asia/Kolkata", queue="fast", priority="high", description="a customer")
    read = app.tenants.get("acme")
    assert (read.name, read.tz, read.queue, read.priority, read.description) == (
        "acme", "Asia/Kolkata", "fast", 10, "a customer",
    )  # fmt: skip
    assert (read.version, read.created_at, read.on_zone_change) == (made.version, made.created_at, "recompute")
    assert app.tenants.put("acme", tz="Asia/Kolkata", queue="fast", priority=10, description="a customer").version == 1


def test_tenants_are_listed_by_name_a_page_at_a_time(app):
    for name in ("c", "a", "b"):
        app.tenants.put(name, tz="UTC")
    page = app.tenants.list(limit=2)
    assert [tenant.name for tenant in page.items] == ["a", "b"]
    assert [tenant.name for tenant in app.tenants.list(cursor=page.cursor).items] == ["c"]


def test_a_tenant_with_schedules_is_not_removed(app, item):
    app.tenants.put("acme", tz="UTC")
    app.schedules.put("it", item.job(), every("1h"), tenant="acme")
    with pytest.raises(Refused, match="it"):
        app.tenants.remove("acme")
    app.schedules.remove("it")
    assert app.tenants.remove("acme") is True
    assert app.tenants.remove("acme") is False
    with pytest.raises(TenantNotFound):
        app.tenants.get("acme")


def test_a_tenants_schedules_are_listed(app, item):
    app.tenants.put("acme", tz="UTC")
    app.schedules.put("mine", item.job(), every("1h"), tenant="acme")
    app.schedules.put("free", item.job(), every("1h"))
    assert [view.id for view in app.schedules.list(tenant="acme").items] == ["mine"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, ("fast", 9)), ({"queue": "own"}, ("own", 9)), ({"priority": 1}, ("fast", 1))],
    ids=["tenant's", "own queue", "own priority"],
)
def test_a_schedules_own_word_is_before_its_tenants_and_that_before_its_tasks(app, item, options, expected):
    app.tenants.put("acme", tz="UTC", queue="fast", priority=9)
    spec = app.schedules.put("it", item.job(), every("1h"), tenant="acme", **options).record.spec
    assert (spec.queue, spec.priority) == expected


def test_where_a_tenant_says_nothing_the_task_does(app, item):
    app.tenants.put("acme", tz="UTC")
    spec = app.schedules.put("it", item.job(), every("1h"), tenant="acme").record.spec
    assert (spec.queue, spec.priority) == ("slow", 3)


def test_schedules_follow_zone_queue_and_priority_and_come_back(app, item):
    app.tenants.put("acme", tz="UTC")
    app.schedules.put("it", item.job(), daily(), tenant="acme")
    app.schedules.put("fixed", item.job(), daily(), tenant="acme", tz="UTC")
    app.tenants.put("acme", tz="Asia/Kolkata", queue="fast", priority=9)
    spec = app.schedules.get("it").record.spec
    assert (spec.tz, spec.queue, spec.priority, next_run(app)) == ("Asia/Kolkata", "fast", 9, "01-15 18:35")
    assert next_run(app, "fixed") == "01-16 00:05"
    app.tenants.put("acme", tz="UTC")
    spec = app.schedules.get("it").record.spec
    assert (spec.tz, spec.queue, spec.priority, next_run(app)) == ("UTC", "slow", 3, "01-16 00:05")


def test_bounds_that_are_days_are_days_of_the_new_zone(app, item):
    app.tenants.put("acme", tz="UTC")
    app.schedules.put(
        "it", item.job(), cron("0 * * * *"), tenant="acme", start=date(2026, 1, 20), end=date(2026, 1, 20)
    )
    assert next_run(app) == "01-20 00:00"
    app.tenants.put("acme", tz="America/New_York")
    runs = [run.astimezone(UTC).strftime("%d %H:%M") for run in app.schedules.next_runs("it", 50)]
    assert (runs[0], runs[-1], len(runs)) == ("20 05:00", "21 04:00", 24)


def test_a_pause_of_all_stands_beside_their_own(app, item):
    app.tenants.put("acme", tz="UTC")
    for name in ("a", "b"):
        app.schedules.put(name, item.job(), every("1h"), tenant="acme")
    app.schedules.pause("b", reason="own")
    app.tenants.pause("acme", reason="month end", by="ann")
    assert app.schedules.get("a").pause_reason == "paused with tenant acme by ann: month end"
    assert app.tenants.get("acme").is_paused_at(datetime.now(UTC))
    later(app)
    app.schedules.put("c", item.job(), every("1h"), tenant="acme")
    assert app.schedules.get("c").is_paused
    app.tenants.resume("acme")
    assert [app.schedules.get(name).is_paused for name in "abc"] == [False, True, False]
    app.schedules.resume("b")
    assert not app.schedules.get("b").is_paused


def test_a_pause_may_have_an_end(app, item):
    app.tenants.put("acme", tz="UTC")
    app.schedules.put("it", item.job(), every("1h"), tenant="acme")
    until = datetime.fromtimestamp(NOON, UTC) + timedelta(hours=5)
    paused = app.tenants.pause("acme", until=until)
    assert paused.is_paused_at(until - timedelta(seconds=1))
    assert not paused.is_paused_at(until)
    assert app.schedules.next_runs("it", 1) == [until]


@pytest.mark.parametrize("verb", ["get", "pause", "resume"])
def test_unknown_tenants_are_told(app, verb):
    with pytest.raises(TenantNotFound, match="nobody"):
        getattr(app.tenants, verb)("nobody")


def test_a_schedule_of_an_unknown_tenant_is_refused(app, item):
    with pytest.raises(TenantNotFound, match="nobody"):
        app.schedules.put("it", item.job(), every("1h"), tenant="nobody")
    assert app.schedules.list().items == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tz": "Mars/Olympus"}, UnknownZone),
        ({"tz": "UTC", "priority": 1000}, BadOption),
        ({"tz": "UTC", "queue": "no spaces"}, BadName),
        ({"tz": "UTC", "on_zone_change": "guess"}, BadOption),
    ],
    ids=str,
)
def test_bad_input_changes_nothing(app, options, error):
    with pytest.raises(error):
        app.tenants.put("acme", **options)
    assert app.tenants.list().items == []


def test_of_two_who_race_one_wins_and_the_other_is_told(app):
    seen = app.tenants.put("acme", tz="UTC", expect_version=0).version
    app.tenants.put("acme", tz="Asia/Tokyo", expect_version=seen)
    for verb in (app.tenants.pause, app.tenants.remove, lambda name, **said: app.tenants.put(name, tz="UTC", **said)):
        with pytest.raises(VersionConflict):
            verb("acme", expect_version=seen)
    assert app.tenants.get("acme").tz == "Asia/Tokyo"


def test_who_dies_half_way_is_followed_up(app, item, monkeypatch):
    """The tenant is changed, its schedules are not, and the process is gone: any node goes on with it."""
    app.tenants.put("acme", tz="UTC")
    for number in range(5):
        app.schedules.put(f"it{number}", item.job(), daily(), tenant="acme")

    class Died(BaseException): ...

    def die(*_):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr("rota.operations.tenant_changes.derive", die)
        with pytest.raises(Died):
            app.tenants.put("acme", tz="Asia/Kolkata", by="ann")
    assert app.schedules.get("it0").tz == "UTC"
    store = app.open()
    tenant_sync = a_sync(app)
    tenant_sync.turn()
    assert app.schedules.get("it0").tz == "UTC"  # the process that began it may not have ended
    tenant_sync.turn()
    assert {view.tz for view in app.schedules.list(tenant="acme").items} == {"Asia/Kolkata"}
    assert store.list_entries("unsettled").items == []
    assert app.schedules.changes("it0").items[0].by == "ann"


def test_a_schedule_that_changes_its_tenant_in_a_process_that_dies_follows_the_new_one(app, item, monkeypatch):
    app.tenants.put("acme", tz="UTC")
    app.tenants.put("globex", tz="Asia/Tokyo")
    app.schedules.put("it", item.job(), daily(), tenant="acme")
    app.tenants.pause("acme")

    class Died(BaseException): ...

    def die(*_):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr("rota.operations.tenant_changes.derive", die)
        with pytest.raises(Died):
            app.schedules.put("it", item.job(), daily(), tenant="globex")
    assert app.schedules.get("it").record.tenant_pause is not None
    sync = a_sync(app)
    sync.turn()
    sync.turn()
    assert app.schedules.get("it").record.tenant_pause is None
    assert app.open().list_entries("unsettled schedules").items == []


def test_a_planned_change_of_its_tenant_leaves_the_pause_of_the_old_one(app, item):
    app.tenants.put("acme", tz="UTC")
    app.schedules.put("it", item.job(), daily(), tenant="acme")
    app.tenants.pause("acme")
    spec = msgspec.structs.replace(app.schedules.get("it").record.spec, tenant="", follows={})
    planned = app.schedules.plan({"it": spec}, Origin())
    assert app.schedules.apply(planned) == 1
    assert app.schedules.get("it").record.tenant_pause is None


def test_a_schedule_made_in_a_paused_tenant_records_the_run_that_it_leaves_out(app, item):
    app.tenants.put("acme", tz="UTC")
    app.tenants.pause("acme", reason="unpaid")
    start = datetime.fromtimestamp(NOON - 1800, UTC)
    app.schedules.put("it", item.job(), every("1h"), tenant="acme", start=start, max_runs=1)
    assert app.jobs.list().items == []
    (left_out,) = app.open().list_occurrences("it", 0, 2**53).items
    assert (left_out.job_id, left_out.count, "unpaid" in left_out.reason) == (None, 1, True)
    app.tenants.resume("acme")
    assert next_run(app) == "01-15 12:30"


def test_every_change_is_kept_with_who_and_what(app, item):
    app.tenants.put("acme", tz="UTC", by="ann")
    later(app)
    app.schedules.put("it", item.job(), daily(), tenant="acme")
    later(app)
    app.tenants.put("acme", tz="Asia/Kolkata", by="bob")
    changed, created = app.tenants.changes("acme").items
    assert (created.verb, created.by, created.before, created.after["tz"]) == ("created", "ann", {}, "UTC")
    assert (changed.verb, changed.by) == ("changed", "bob")
    assert (changed.before, changed.after) == ({"tz": "UTC"}, {"tz": "Asia/Kolkata"})
    followed, put = app.schedules.changes("it").items
    assert (put.verb, put.by) == ("created", f"{getpass.getuser()}@{socket.gethostname()}")
    assert (followed.verb, followed.by) == ("followed tenant acme", "bob")
    assert (followed.before["tz"], followed.after["tz"]) == ("UTC", "Asia/Kolkata")
    assert {(change.kind, change.name) for change in app.changes().items} == {("tenant", "acme"), ("schedule", "it")}
    assert len(app.changes(until=datetime.fromtimestamp(NOON + 1, UTC)).items) == 1
