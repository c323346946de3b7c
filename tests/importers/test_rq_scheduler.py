"""rq-scheduler: jobs as RQ writes them into Redis become schedules, and nothing of their data is executed."""

from __future__ import annotations

import base64
import json
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from rq.job import Job

from every_store import running_server
from rota.importers.found import Tasks, UnsupportedItem
from rota.importers.rq_scheduler import cron_of, read_redis, rq_items
from rota.model.jobs.payload import unpack_call
from rota.tasks.task import Registry

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)
NEXT = int(datetime(2026, 3, 7, 13, tzinfo=UTC).timestamp())


class Evil:
    """Runs code when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def server():
    with redis.Redis.from_url(running_server("redis").url()) as client:
        yield client
        client.delete("rq:scheduler:scheduled_jobs", *client.keys("rq:job:*"), "none")


def scheduled(client, function, *args, meta=None, **kwargs):
    """As rq-scheduler keeps a job: RQ's own hash, the rule in its meta, the next time in a sorted set."""
    job = Job.create(function, args=args, kwargs=kwargs, connection=client, origin="mail")
    job.meta.update(meta or {})
    job.save()
    client.zadd("rq:scheduler:scheduled_jobs", {job.id: NEXT})


def found_at(now, tz="Europe/Paris"):
    return rq_items(read_redis(running_server("redis").url()), Tasks(Registry()), tz=tz, prefix="", now=now)


def found():
    return {item.id: item for item in found_at(NOW)}


def test_jobs_become_schedules(server):
    scheduled(server, "shop.daily", "a", b=2, meta={"cron_string": "0 9 * * *", "use_local_timezone": True})
    scheduled(server, "shop.often", meta={"interval": 90, "repeat": 4})
    scheduled(server, "shop.later", datetime(2026, 1, 1, tzinfo=UTC))
    items = found()
    specs = {name: item.spec for name, item in items.items()}
    anchor = datetime.fromtimestamp(NEXT % 90, UTC).isoformat().replace("+00:00", "Z")
    assert {name: (spec.trigger, spec.tz) for name, spec in specs.items()} == {
        "shop-daily": ("cron 0 9 * * *", "Europe/Paris"),
        "shop-often": (f"every 1m30s start={anchor}", "UTC"),
        "shop-later": ("once 2026-03-07T13:00:00Z", "UTC"),
    }
    call = unpack_call(specs["shop-daily"].payload.encode())
    assert (specs["shop-daily"].task, specs["shop-daily"].queue, call.args, call.kwargs) == (
        "shop.daily",
        "mail",
        ["a"],
        {"b": 2},
    )
    assert (specs["shop-often"].max_runs, specs["shop-often"].start) == (4, NEXT * 1_000_000)
    assert [run.timestamp() for run in items["shop-often"].old_runs] == [NEXT, NEXT + 90, NEXT + 180]


RECORDED = json.loads(Path(__file__).with_name("rq_scheduler.json").read_text())


def said(rule: str):
    try:
        return cron_of(rule).bound("UTC")
    except UnsupportedItem:
        return None


SAID = [rule for rule in RECORDED["runs"] if said(rule)]


@pytest.mark.parametrize("rule", SAID)
def test_cron_text_runs_when_rq_scheduler_runs_it(rule):
    """Beside its own computation, recorded by `record_rq_scheduler.py`."""
    after = datetime.fromisoformat(RECORDED["after"]).replace(tzinfo=UTC)
    theirs = [datetime.fromisoformat(at).replace(tzinfo=UTC) for at in RECORDED["runs"][rule]]
    assert said(rule).next_runs(len(theirs), after=after) == theirs


def test_only_years_and_two_day_fields_cannot_be_said():
    assert len(SAID) >= 50
    for rule in set(RECORDED["runs"]) - set(SAID):
        with pytest.raises(UnsupportedItem, match=r"year 2027|at once"):
            cron_of(rule)


def test_jobs_that_rq_scheduler_itself_wrote_become_schedules(server):
    """Recorded on a machine in New York: cron text is in its time, and both day fields must fit."""
    for key, fields in RECORDED["jobs"].items():
        server.hset(key, mapping={name: base64.b64decode(value) for name, value in fields.items()})
    server.zadd("rq:scheduler:scheduled_jobs", RECORDED["scores"])
    items = {item.name: item for item in found_at(datetime(2026, 11, 18, tzinfo=UTC), "America/New_York")}
    specs = {name: item.spec for name, item in items.items() if item.spec}
    anchor = datetime.fromtimestamp(RECORDED["scores"]["often"] % 90, UTC).isoformat().replace("+00:00", "Z")
    assert {name: (spec.trigger, spec.tz, spec.queue) for name, spec in specs.items()} == {
        "daily": ("cron 0 9 * * MON-FRI", "America/New_York", "mail"),
        "counted": ("cron */20 * * * *", "America/New_York", "other"),
        "often": (f"every 1m30s start={anchor}", "UTC", "mail"),
        "for_ever": ("every 1m start=1970-01-01T00:00:00Z", "UTC", "mail"),
        "later": ("once 2099-01-01T00:00:00Z", "UTC", "mail"),
    }
    assert "13 and weekday FRI at once" in items["both"].reason
    assert (specs["often"].max_runs, specs["counted"].max_runs, specs["daily"].max_runs) == (3, 4, None)
    assert items["counted"].warnings == ("timeout=30 is left out; say it at the task",)
    assert items["for_ever"].warnings == ("meta 'note' is left out; say it at the task",)
    for name in specs:
        assert items[name].old_runs[0].timestamp() == RECORDED["scores"][name]


def test_a_pickle_that_would_run_code_is_refused(server, tmp_path):
    target = tmp_path / "made"
    scheduled(server, "shop.evil", Evil(str(target)), meta={"interval": 60})
    (item,) = found().values()
    assert item.spec is None
    assert "which JSON cannot keep" in item.reason
    assert not target.exists()
    pickle.loads(pickle.dumps(Evil(str(target)))).close()  # noqa: S301 - to show that the data is what it claims to be
    assert target.exists()


def test_methods_and_lost_jobs_are_named(server):
    scheduled(server, Path("x").exists, meta={"interval": 60})
    server.zadd("rq:scheduler:scheduled_jobs", {"gone": NEXT})
    reasons = sorted(item.reason for item in found().values())
    assert reasons[0].startswith("its data cannot be read")
    assert reasons[1] == "its job is no longer in Redis"
