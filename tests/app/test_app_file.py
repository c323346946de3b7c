"""What rota.yaml declares: a start brings it with its own origin, changes only its own, and retires what left it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from app.steps import fire, work
from rota import App, Refused, cron, every
from rota.app import internals
from rota.deploy.deploy import apply, plan
from rota.errors import BadSettings, TenantNotFound
from rota.model.micros import SECOND
from rota.model.schedules.schedule import Origin

HOURLY = "schedules:\n  hourly: {task: greet, every: 1h, kwargs: {name: ann}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROTA_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def deploy(make_app, folder):
    """Starts a version of the shop with that file."""

    def deploy(text: str | None, version: str = "", name: str = "shop", declare=None, *, is_synced: bool = True) -> App:
        (folder / "rota.yaml").unlink(missing_ok=True)
        if text is not None:
            (folder / "rota.yaml").write_text(text)
        app = make_app(name=name, version=version)

        @app.task(name="mail.greet", queue="mail", priority=3)
        def greet(name: str, when: datetime | None = None) -> str:
            return f"{name} {when}"

        if declare is not None:
            declare(app)
        if is_synced:
            app.changed = app.schedules.sync()
        return app

    return deploy


def test_a_schedule_of_the_file_runs_with_its_arguments(deploy, clock):
    app = deploy(HOURLY.replace("ann", "ann, when: 2026-01-31T09:00:00Z"))
    view = app.schedules.get("hourly")
    assert (view.origin, view.record.origin) == ("a file of app 'shop'", Origin("file", "shop"))
    assert (view.record.spec.queue, view.record.spec.priority) == ("mail", 3)
    clock.skip(3600)
    fire(app)
    work(app, queues=["mail"])
    (job,) = app.jobs.list().items
    assert job.result() == "ann 2026-01-31 09:00:00+00:00"


def test_every_key_says_what_the_same_option_says_in_code(deploy):
    text = """
tenants:
  acme: {tz: Asia/Kolkata}
schedules:
  full:
    task: mail.greet
    cron: "0 9 * * mon-fri"
    tz: Europe/Paris
    args: [ann]
    priority: high
    queue: other
    overlap: queue
    catchup: all
    catchup_limit: 7
    grace: 10m
    jitter: 30s
    start: 2026-01-31
    end: 2036-01-31T12:00Z
    max_runs: 9
    run_on_start: true
    lookahead: 1h
    key: mine
    key_for: 1.5s
    tenant: acme
    enabled: false
    description: All of it
"""
    app = deploy(text, is_synced=False)
    app.tenants.put("acme", tz="Asia/Kolkata")
    app.schedules.put(
        "code",
        internals(app).registry.get("greet").job("ann"),
        cron("0 9 * * mon-fri"),
        tz="Europe/Paris",
        priority="high",
        queue="other",
        overlap="queue",
        catchup="all",
        catchup_limit=7,
        grace="10m",
        jitter="30s",
        start=datetime(2026, 1, 31).date(),
        end=datetime(2036, 1, 31, 12, tzinfo=UTC),
        max_runs=9,
        run_on_start=True,
        lookahead="1h",
        key="mine",
        key_for="1.5s",
        tenant="acme",
        enabled=False,
        description="All of it",
    )
    app.schedules.sync()
    assert app.schedules.get("full").record.spec == app.schedules.get("code").record.spec


@pytest.mark.parametrize(
    ("said", "trigger"),
    [
        ("every: 90s", "every 1m30s"),
        ('calendar: {months: 1, at: "00:05", start: 2026-01-31}', "calendar months=1 at=00:05 start=2026-01-31"),
        ("calendar: weeks=2 on=tue at=08:00", "calendar weeks=2 at=08:00 on=tue"),
        ("once: 2036-10-14T09:00+02:00", "once 2036-10-14T07:00:00Z"),
        ('cron: "0 0 1 ? * 2"\n    dialect: quartz', "cron 0 0 1 ? * MON"),
        ('cron: "@daily"', "cron 0 0 * * *"),
    ],
)
def test_each_kind_of_trigger_can_be_said(deploy, said, trigger):
    app = deploy(f"schedules:\n  x:\n    task: greet\n    args: [ann]\n    {said}\n")
    assert app.schedules.get("x").record.spec.trigger == trigger


def test_the_zone_of_the_settings_is_that_of_schedules_which_name_none(deploy):
    app = deploy(f"tz: Europe/Paris\n{HOURLY}")
    assert app.schedules.get("hourly").tz == "Europe/Paris"


def test_a_second_start_changes_nothing_and_another_text_changes_its_own_alone(deploy, clock):
    def declare(app):
        app.schedule(every("5m"), id="of-code")(app.task(name="t")(lambda: None))

    app = deploy(HOURLY, declare=declare)
    assert app.changed == 2
    before = app.schedules.get("of-code").record
    assert deploy(HOURLY, declare=declare).changed == 0
    clock.skip(1)
    assert deploy(HOURLY.replace("1h", "2h"), declare=declare).changed == 1
    assert app.schedules.get("hourly").record.spec.trigger == "every 2h"
    assert app.schedules.get("of-code").record == before


@pytest.mark.parametrize("rest", ["{}\n", "schedules:\n  other: {task: greet, every: 1h, args: [bo]}\n"])
def test_a_higher_version_retires_what_left_the_file(deploy, rest):
    deploy(HOURLY, "1.0")
    assert not deploy(rest, "1.0").schedules.get("hourly").record.origin.is_retired
    app = deploy(rest, "1.1")
    assert app.schedules.get("hourly").record.origin == Origin("file", "shop", "1.1", is_retired=True)
    assert not deploy(HOURLY, "1.0").schedules.get("hourly").is_enabled, "an older version brought it back"
    assert deploy(HOURLY, "1.2").schedules.get("hourly").is_enabled


def test_without_a_file_nothing_is_known_about_its_schedules(deploy):
    deploy(HOURLY, "1.0")
    assert deploy(None, "2.0").schedules.get("hourly").is_enabled


def test_a_schedule_moves_from_the_code_to_the_file_and_keeps_its_past(deploy, clock):
    def declare(app):
        app.schedule(every("1h"), id="hourly")(app.task(name="t")(lambda: None))

    app = deploy("{}", "1.0", declare=declare)
    clock.skip(3600)
    fire(app)
    app = deploy(HOURLY, "1.1")
    view = app.schedules.get("hourly")
    assert (view.record.origin, view.run_count, view.is_enabled) == (Origin("file", "shop", "1.1"), 1, True)
    assert deploy("{}", "1.0", declare=declare).changed == 0
    with pytest.raises(Refused, match="or move it with a higher version"):
        deploy("{}", "1.1", declare=declare)


def test_an_id_that_the_code_has_too_is_a_complaint(deploy):
    def declare(app):
        app.schedule(every("1h"), id="hourly")(app.task(name="t")(lambda: None))

    with pytest.raises(BadSettings, match=r"^rota.yaml:2: schedules.hourly: the code declares a schedule of this id"):
        deploy(HOURLY, declare=declare)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("args: [1, 2, 3]", "rota.yaml:3: schedules.x.args: do not fit the task (mail.greet(name"),
        ("kwargs: {nme: ann}", "rota.yaml:3: schedules.x.kwargs: do not fit the task (mail.greet(name"),
        ("kwargs: {name: ann, when: soon}", "rota.yaml:3: schedules.x.kwargs: do not fit the task (argument 'when'"),
        ("enabled: true", "rota.yaml:2: schedules.x.args: do not fit the task"),
    ],
)
def test_arguments_that_do_not_fit_are_told_before_anything_is_stored(deploy, call, words):
    with pytest.raises(BadSettings) as told:
        deploy(f"schedules:\n  x:\n    {call}\n    task: greet\n    every: 1h\ntenants:\n  a: {{tz: UTC}}\n")
    assert str(told.value).startswith(words), told.value
    app = deploy("{}")
    assert app.tenants.list().items == app.schedules.list().items == []


def test_several_complaints_are_told_at_once(deploy):
    text = "schedules:\n  a: {task: greet, every: 1h}\n  b: {task: greet, every: 1h, args: [1, 2, 3]}\n"
    with pytest.raises(BadSettings) as told:
        deploy(text)
    assert [complaint.split(":")[1] for complaint in told.value.complaints] == ["2", "3"]


def test_a_start_leaves_schedules_alone_whose_tasks_another_app_has(deploy, caplog):
    text = "schedules:\n" + "".join(f"  s{number}: {{task: gret, every: 1h}}\n" for number in range(5))
    app = deploy(text + HOURLY.partition("\n")[2])
    with caplog.at_level(logging.WARNING), app.running(worker=False):
        assert [view.id for view in app.schedules.list().items] == ["hourly"]
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith("rota.yaml:2: schedules.s0.task: got 'gret', wanted a task of app 'shop'; did you mean")
    assert told[-1].startswith("2 more schedules are left alone likewise")
    assert len(told) == 4


def test_a_stranger_is_not_retired_by_the_app_that_does_not_know_its_task(deploy):
    deploy(HOURLY, "1.0")
    app = deploy(HOURLY.replace("greet", "gone"), "1.1")
    assert app.schedules.get("hourly").is_enabled


def test_a_task_that_two_names_end_with_is_told_with_both(deploy):
    def declare(app):
        app.task(name="sms.greet")(lambda: None)

    app = deploy(HOURLY, declare=declare)
    assert "say which: mail.greet or sms.greet" in internals(app).deploy.unknown_tasks["hourly"]


# Tenants.


def test_tenants_come_first_and_are_put_only_where_they_differ(deploy, clock):
    text = f"tenants:\n  acme: {{tz: Asia/Kolkata, priority: high}}\n{HOURLY.replace('1h', '1h, tenant: acme')}"
    app = deploy(text)
    assert app.changed == 2
    assert (app.schedules.get("hourly").tz, app.schedules.get("hourly").record.spec.priority) == ("Asia/Kolkata", 10)
    before = app.tenants.get("acme").version
    assert deploy(text).changed == 0
    assert app.tenants.get("acme").version == before
    clock.skip(1)
    assert deploy(text.replace("Asia/Kolkata", "Asia/Tokyo")).changed == 1
    assert app.schedules.get("hourly").tz == "Asia/Tokyo"


def test_a_tenant_that_left_the_file_stays_and_its_pause_is_its_operators(deploy):
    app = deploy("tenants:\n  acme: {tz: UTC}\n", "1.0")
    app.tenants.pause("acme", reason="unpaid", by="ann")
    deploy("tenants:\n  acme: {tz: Asia/Tokyo}\n", "1.1")
    assert app.tenants.get("acme").pause.reason == "unpaid"
    assert app.tenants.get("acme").tz == "Asia/Tokyo"
    deploy("{}", "1.2")
    assert app.tenants.get("acme").tz == "Asia/Tokyo"


def test_an_older_version_and_another_apps_file_change_no_tenant(deploy, caplog):
    app = deploy("tenants:\n  acme: {tz: Asia/Tokyo}\n", "1.10")
    assert deploy("tenants:\n  acme: {tz: UTC}\n", "1.9").changed == 0
    assert deploy("tenants:\n  acme: {tz: UTC}\n", "9", name="blog").changed == 0
    assert app.tenants.get("acme").tz == "Asia/Tokyo"
    assert "tenants.acme: a file of app 'shop' declares it otherwise" in caplog.text
    assert deploy("tenants:\n  acme: {tz: UTC}\n", "1.11").changed == 1


def test_a_tenant_made_by_hand_is_taken_over(deploy):
    app = deploy("{}")
    app.tenants.put("acme", tz="UTC")
    assert deploy("tenants:\n  acme: {tz: Asia/Tokyo}\n").tenants.get("acme").tz == "Asia/Tokyo"


def test_a_tenant_that_nobody_has_is_refused(deploy):
    with pytest.raises(TenantNotFound, match="schedule 'hourly' names the tenant 'acme'"):
        deploy(HOURLY.replace("1h", "1h, tenant: acme"))


# Plans.


def test_a_plan_covers_code_and_file_and_tenants_and_changes_nothing(deploy):
    def declare(app):
        app.schedule(every("5m"), id="of-code")(app.task(name="t")(lambda: None))

    text = f"tenants:\n  acme: {{tz: Asia/Kolkata}}\n{HOURLY.replace('1h', '1h, tenant: acme')}"
    app = deploy(text, declare=declare, is_synced=False)
    planned = plan(internals(app).deploy, app)
    assert [(one.name, one.kind, one.says) for one in planned.tenants] == [("acme", "add", ["tz: Asia/Kolkata"])]
    assert [(origin.kind, one.id, one.kind) for origin, one in planned.schedules] == [
        ("code", "of-code", "add"),
        ("file", "hourly", "add"),
    ]
    assert planned.schedules[1][1].after.spec.tz == "Asia/Kolkata"
    assert app.schedules.list().items == app.tenants.list().items == []
    assert apply(internals(app).deploy, app) == 3
    assert plan(internals(app).deploy, app) == ([], [])
    assert app.schedules.sync() == 0


def test_an_apply_retires_what_left_the_file_without_a_higher_version(deploy):
    deploy(HOURLY)
    app = deploy("tenants:\n  a: {tz: UTC}\n")
    assert [(origin.kind, one.kind) for origin, one in plan(internals(app).deploy, app).schedules] == [
        ("file", "retire")
    ]
    assert apply(internals(app).deploy, app) == 1
    assert app.schedules.get("hourly").record.origin.is_retired


def test_an_apply_follows_a_tenant_that_changes_its_zone(deploy):
    text = f"tenants:\n  acme: {{tz: Asia/Kolkata}}\n{HOURLY.replace('every: 1h', 'cron: 0 9 * * *, tenant: acme')}"
    deploy(text)
    app = deploy(text.replace("Kolkata", "Tokyo"), is_synced=False)
    planned = plan(internals(app).deploy, app)
    assert [(one.kind, one.says) for one in planned.tenants] == [("change", ["tz: Asia/Kolkata → Asia/Tokyo"])]
    assert [one.kind for _, one in planned.schedules] == ["re-time"]
    assert apply(internals(app).deploy, app) >= 1
    assert app.schedules.get("hourly").tz == "Asia/Tokyo"
    assert app.schedules.get("hourly").next_run.utcoffset().total_seconds() * SECOND == 9 * 3600 * SECOND
    assert plan(internals(app).deploy, app) == ([], [])
