"""Counts of jobs on Redis that take several calls, while jobs change between them."""

from __future__ import annotations

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, JobFilter
from rota.testing.store_suite.builders import T0, WORKER, a_job, a_policy
from rota.testing.store_suite.steps import add, claim
from stores.redis_stage import *  # noqa: F403 - its fixtures

MANY = 6_000  # three times what one call looks at


def succeed(store, number, **fields):
    for _ in range(number // 500):
        add(store, *[a_job(**fields) for _ in range(500)])
        changes = [settle(job, Succeeded(b""), a_policy(), T0, 0.0) for job in claim(store, 500)]
        assert store.exchange(Exchange(holder=WORKER, settled=changes), now=T0).refused == []


def test_a_count_goes_on_in_the_index_that_it_began_with(store, monkeypatch):
    """Other jobs end meanwhile, so that another index has the fewest jobs."""
    succeed(store, MANY, task="mail.send")
    add(store, *[a_job(task="mail.send", delay=10**12) for _ in range(500)])  # so that fewer jobs have succeeded
    calls, call = [], store._connection.call

    def counted(name, **request):
        if name == "count" and len(calls) == 1:
            calls.append("between")
            succeed(store, 1_000, task="mail.sort")
        if name == "count":
            calls.append(name)
        return call(name, **request)

    monkeypatch.setattr(store._connection, "call", counted)
    where = JobFilter(task="mail.send", states=(State.SUCCEEDED,), since=T0, until=T0 + 1)
    assert store.count_jobs(where) == MANY
    assert calls.count("count") > 2
