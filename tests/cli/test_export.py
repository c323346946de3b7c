"""export: schedules and jobs as text that is complete, and written a page at a time."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rota import App, cron, every
from rota.cli.export import ExportedSchedule, _yaml, exported
from rota.model.jobs.payload import Call, pack_call
from rota.model.schedules.schedule import Origin, Schedule, ScheduleSpec
from rota.model.secrets.redaction import DEFAULT
from rota.triggers import trigger_from_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@pytest.fixture
def furnished(rota):
    """A store with schedules of all kinds."""
    app = App()

    @app.task(name="mail", queue="mail")
    def mail(*args, **kwargs): ...

    app.schedules.put(
        "full",
        mail.using(retries=7, timeout="90s", meta={"a": 1}).job("ann", cc=["bob", "Zoë"]),
        cron("30 9 * * mon-fri", tz="Europe/Paris"),
        overlap="queue",
        catchup="all",
        catchup_limit=5,
        grace="10m",
        jitter="30s",
        start=datetime(2026, 1, 1, tzinfo=UTC),
        end=datetime(2126, 1, 1, tzinfo=UTC),
        max_runs=9,
        description="two\nlines: and a #",
        priority="high",
    )
    app.schedules.pause("full", reason="on holiday", by="ann")
    app.schedules.put("no", mail.job(), every("1h"))
    app.schedules.disable("no")
    app.close()
    return rota


def test_yaml_says_all_that_defines_a_schedule(furnished):
    text = furnished("export").stdout
    data = yaml.safe_load(text)
    assert text.startswith(f"# The schedules of sqlite file {furnished.folder}/.rota/rota.db, ")
    assert data["format"] == 1
    assert list(data["schedules"]) == ["full", "no"]
    full = data["schedules"]["full"]
    assert trigger_from_text(full["trigger"]) == cron("30 9 * * mon-fri", tz="Europe/Paris")
    del full["created_at"], full["trigger"]
    assert full == {
        "tz": "Europe/Paris",
        "task": "mail",
        "args": ["ann"],
        "kwargs": {"cc": ["bob", "Zoë"]},
        "meta": {"a": 1},
        "retries": 7,
        "timeout": "1m30s",
        "queue": "mail",
        "priority": 10,
        "overlap": "queue",
        "catchup": "all",
        "catchup_limit": 5,
        "grace": "10m",
        "jitter": "30s",
        "start": "2026-01-01T00:00:00Z",
        "end": "2126-01-01T00:00:00Z",
        "max_runs": 9,
        "enabled": True,
        "paused": {"reason": "on holiday", "by": "ann", "until": None},
        "description": "two\nlines: and a #",
        "origin": {"kind": "api", "app": "", "version": ""},
        "run_count": 0,
    }
    assert data["schedules"]["no"]["enabled"] is False


def test_whose_it_is_and_what_follows_from_that_is_told(rota):
    app = App()

    @app.task(name="mail")
    def mail(*args): ...

    app.tenants.put("acme", tz="Asia/Kolkata", queue="acme")
    app.schedules.put(
        "theirs", mail.job(), cron("0 9 * * *"), tenant="acme", priority=5, lookahead="6h", start=date(2026, 1, 31)
    )
    app.sources.declare("shop", [{"name": "orders", "schedule": "@hourly"}], keep=7)(mail)
    app.schedules.sync()
    app.close()
    (kept, theirs) = yaml.safe_load(rota("export").stdout)["schedules"].values()
    assert kept["sync"] == {"source": "shop", "collection": "orders", "keep": 7}
    assert {"tenant", "follows", "lookahead", "day_bounds", "retired"}.isdisjoint(kept)
    assert (theirs["tenant"], theirs["tz"], theirs["queue"], theirs["priority"]) == ("acme", "Asia/Kolkata", "acme", 5)
    assert theirs["follows"] == {"tz": "UTC", "queue": "default"}
    assert (theirs["lookahead"], theirs["day_bounds"], "sync" in theirs) == ("6h", ["start"], False)


def test_what_no_code_has_any_more_is_told():
    spec = ScheduleSpec(trigger="every 1h", task="t")
    origin = Origin("code", "shop", "2", is_retired=True, zone="Asia/Tokyo")
    gone = exported(Schedule(id="gone", spec=spec, origin=origin, created_at=0, updated_at=0, fired_through=0), DEFAULT)
    assert (gone.retired, gone.origin) == (True, {"kind": "code", "app": "shop", "version": "2", "zone": "Asia/Tokyo"})


def test_json_and_json_lines_say_the_same(furnished):
    in_yaml = yaml.safe_load(furnished("export").stdout)
    assert json.loads(furnished("export", "-o", "json").stdout) == in_yaml
    lines = [json.loads(line) for line in furnished("export", "-o", "jsonl").stdout.splitlines()]
    assert {line.pop("id"): line for line in lines} == in_yaml["schedules"]


def test_more_than_a_page_is_one_document(rota):
    app = App()

    @app.task(name="t")
    def work(number): ...

    app.schedules.put_many((f"s{number:03}", work.job(number), every("1h")) for number in range(450))
    app.enqueue_many([work.job(number) for number in range(401)])
    app.close()
    assert len(yaml.load(rota("export").stdout, Loader=yaml.CSafeLoader)["schedules"]) == 450
    assert len(json.loads(rota("export", "-o", "json").stdout)["schedules"]) == 450
    lines = rota("export", "--jobs").stdout.splitlines()
    assert [json.loads(line)["args"] for line in lines] == [[number] for number in range(400, -1, -1)]
    assert len(json.loads(rota("export", "--jobs", "-o", "json").stdout)) == 401


def test_nothing_is_written_as_nothing(rota):
    rota("migrate")
    assert yaml.safe_load(rota("export").stdout) == {"format": 1, "schedules": {}}
    assert json.loads(rota("export", "-o", "json").stdout) == {"format": 1, "schedules": {}}
    assert rota("export", "-o", "jsonl").stdout == ""
    assert rota("export", "--jobs").stdout == ""
    assert json.loads(rota("export", "--jobs", "-o", "json").stdout) == []


def test_jobs_come_with_their_histories_and_may_be_chosen(rota):
    rota.enqueue("greet", "ann")
    rota.enqueue("divide", "1", "0")
    rota.work()
    (line,) = rota("export", "--jobs", "--where", "state:failed").stdout.splitlines()
    job = json.loads(line)
    assert job["task"] == "jobs.divide"
    assert [move["state"] for move in job["history"]] == ["queued", "running", "failed"]
    assert "ZeroDivisionError" in job["error"]


def test_what_makes_no_sense_together_is_refused(rota):
    rota("migrate")
    assert "--where chooses jobs; add --jobs" in rota("export", "--where", "state:failed", code=2).stderr
    assert "jobs are written as jsonl or json" in rota("export", "--jobs", "-o", "yaml", code=2).stderr


@given(
    args=st.lists(JSON, max_size=3),
    description=st.text(),
    schedule_id=st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True),
)
def test_whatever_a_schedule_holds_can_be_read_back(args, description, schedule_id):
    payload = pack_call(Call(args), what="t").decode()
    spec = ScheduleSpec(trigger="every 1h", task="t", payload=payload, description=description)
    schedule = Schedule(id=schedule_id, spec=spec, origin=Origin(), created_at=0, updated_at=0, fired_through=0)
    data = yaml.safe_load("schedules:\n" + _yaml(schedule.id, exported(schedule, DEFAULT)).decode())["schedules"]
    assert msgspec.convert(data[schedule_id], ExportedSchedule) == exported(schedule, DEFAULT)


def test_a_payload_that_cannot_be_read_is_told_and_stops_nothing():
    spec = ScheduleSpec(trigger="every 1h", task="t", payload="{")
    schedule = Schedule(id="s", spec=spec, created_at=0, updated_at=0, fired_through=0)
    assert exported(schedule, DEFAULT).problem.startswith("the payload cannot be read")
