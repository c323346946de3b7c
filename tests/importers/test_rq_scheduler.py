"""rq-scheduler: jobs as RQ writes them into Redis become schedules, and nothing of their data is executed."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from rq.job import Job

from every_store import running_server
from rota.importers.found import Tasks
from rota.importers.rq_scheduler import read_redis, rq_items
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


def found(tz="Europe/Paris"):
    jobs = read_redis(running_server("redis").url())
    return {item.id: item for item in rq_items(jobs, Tasks(Registry()), tz=tz, prefix="", now=NOW)}


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
