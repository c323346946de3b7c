"""The beginning of a job's id names it, where no other job's id begins so."""

from __future__ import annotations

import pytest

from rota.cli import naming
from rota.cli.naming import job_id_from
from rota.errors import BadOption
from rota.model.jobs.job import NewJob
from rota.store.memory import MemoryStore


@pytest.fixture
def two(rota):
    """Two ended jobs, and how the id of each begins."""
    ids = [rota.enqueue("divide", "1", "0"), rota.enqueue("greet", "ann")]
    rota.work()
    same = next(place for place in range(40) if ids[0][place] != ids[1][place])
    return [(job_id, job_id[: max(same + 1, 8)]) for job_id in ids]


def test_show_and_logs_take_the_beginning_of_an_id(rota, two):
    for job_id, start in two:
        assert rota.data("jobs", "show", start)["id"] == job_id
        rota("jobs", "logs", start)


def test_retry_cancel_and_delete_take_the_beginning_of_an_id(rota, two):
    (failed, start), (_, other) = two
    rota("jobs", "retry", start, start)
    assert rota.data("jobs", "show", failed)["state"] == "queued"
    rota("jobs", "cancel", start)
    assert rota.data("jobs", "show", failed)["state"] == "cancelled"
    assert "deleted 2 jobs" in rota("jobs", "delete", start, other).stdout
    assert rota.data("jobs", "list") == []


@pytest.mark.parametrize("verb", ["show", "logs", "retry", "cancel", "delete"])
def test_the_beginning_of_several_ids_is_refused_with_those_ids(rota, two, verb):
    common = two[0][0][:6]
    said = rota("jobs", verb, common, code=2).stderr
    assert f"'{common}' begins the ids of 2 jobs" in said
    assert all(job_id in said.replace("\n", " ") for job_id, _ in two)
    assert len(rota.data("jobs", "list")) == 2


@pytest.mark.parametrize("verb", ["show", "logs", "retry", "cancel", "delete"])
def test_the_beginning_of_no_id_is_not_found(rota, two, verb):  # noqa: ARG001 - there are jobs
    assert "no job has the id 'ffff00', and no id begins with it" in rota("jobs", verb, "ffff00", code=5).stderr


def test_a_short_beginning_is_refused_where_not_every_job_was_looked_at(monkeypatch):
    monkeypatch.setattr(naming, "MOST_JOBS", 2)
    store = MemoryStore()
    store.open()
    at = int("0199".ljust(11, "0"), 16) * 1000
    ids = [f"01990{number:027x}" for number in range(2)]
    store.add_jobs([NewJob(id=job_id, task="t", payload=b"[]", queue="q") for job_id in ids], now=at)
    with pytest.raises(BadOption, match="'0199' begins the ids of 2 jobs"):
        job_id_from(store, "0199")
    with pytest.raises(BadOption, match="'01990000000f' is too short to name one of more than 2 jobs"):
        job_id_from(store, "01990000000f")
    assert job_id_from(store, ids[1]) == ids[1]
