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


AT = int("01990000000", 16) * 1000  # the instant of ids that begin so, in microseconds


def filled(*groups: tuple[int, list[str]]) -> MemoryStore:
    """A store with jobs: of each group, when it was created and the ids."""
    store = MemoryStore()
    store.open()
    for at, ids in groups:
        store.add_jobs([NewJob(id=job_id, task="t", payload=b"[]", queue="q") for job_id in ids], now=at)
    return store


def ids_of(start: str, number: int) -> list[str]:
    return [f"{start}{one:0{28 - len(start)}x}" for one in range(number)]


def test_a_beginning_names_a_job_beside_more_jobs_of_that_hour_than_are_read(monkeypatch):
    monkeypatch.setattr(naming, "MOST_JOBS", 4)
    later = f"{(AT + 1_800_000_000) // 1000:011x}"
    wanted = ids_of("01990000000", 1)
    store = filled((AT, wanted), (AT + 1_800_000_000, ids_of(later, 9)))
    assert [job_id_from(store, wanted[0][:digits]) for digits in (8, 11, 14, 16)] == wanted * 4


def test_a_beginning_is_not_answered_where_not_every_job_could_be_read(monkeypatch):
    monkeypatch.setattr(naming, "MOST_JOBS", 2)
    ids = ids_of("01990000000", 3)
    store = filled((AT, ids))
    with pytest.raises(BadOption, match="'0199' begins the ids of at least 3 jobs"):
        job_id_from(store, "0199")
    for name in ("01990000000f", "01990000000f00000000"):
        with pytest.raises(
            BadOption, match=f"more than 2 jobs were created within 1 s of the time that '{name}' begins"
        ):
            job_id_from(store, name)
    assert job_id_from(store, ids[1]) == ids[1]


def test_a_beginning_of_no_job_nearby_says_that_the_jobs_further_away_were_not_searched(monkeypatch):
    monkeypatch.setattr(naming, "MOST_JOBS", 2)
    store = filled((AT + 1_800_000_000, ids_of("0199000ffff", 3)))
    with pytest.raises(
        BadOption, match="no job whose id begins so was created within 60 s of the time that '01990000'"
    ):
        job_id_from(store, "01990000")
