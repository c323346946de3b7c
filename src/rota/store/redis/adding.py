"""Adds jobs: one round trip if their ids and keys are free, which they nearly always are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rota.model.jobs.job import State, accept, can_use_fast_path
from rota.store.contract import Added
from rota.store.redis.codec import binary, encode, pack_plain_record, pack_record
from rota.store.redis.fast.single_add import add_single
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.indexes import HOUR, indexes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.store.redis.guarded_write import GuardedWriter


class Adder:
    """Accepts jobs."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def add_jobs(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        if len(jobs) == 1 and (added := add_single(self._writer.connection, jobs[0], now)):
            return [added]
        if jobs and _may_be_free(jobs):
            number = self._writer.connection.add("add", "add", lambda at: [encode(request_of(jobs, at))], now)
            if number == len(jobs):
                return [Added(new.id) for new in jobs]
        return self._add_checked(jobs, now) if jobs else []

    def _add_checked(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        """One after another, in one write: all or none."""

        def decided() -> tuple[GuardedWrite, list[Added]]:
            ids = [new.id for new in jobs] + [new.waits_for for new in jobs if new.waits_for]
            keys = [["HGET", "key", key] for key in dict.fromkeys(new.key for new in jobs if new.key)]
            found = self._writer.snapshot(list(dict.fromkeys(ids)), *keys, reserve=len(jobs), now=now)
            self._writer.load(found, [holder.decode() for holder in map(found.answer, keys) if holder is not None])
            write = GuardedWrite(self._writer, found)
            return write, [write.add(new) for new in jobs]

        return self._writer.decide_one("add", decided, is_work=True)


def _may_be_free(jobs: Sequence[NewJob]) -> bool:
    keys = [new.key for new in jobs if new.key]
    is_simple = not any(new.waits_for or new.slot or new.ahead is not None for new in jobs)
    return is_simple and len(set(keys)) == len(keys) and len({new.id for new in jobs}) == len(jobs)


def request_of(jobs: Sequence[NewJob], at: int) -> dict[str, Any]:
    """New jobs as scripts accept them: their records, and the numbers of those that are in each index."""
    records: list[bytes] = []
    groups: dict[object, tuple[Job, list[int]]] = {}  # plain jobs of one kind are in the same indexes
    for number, new in enumerate(jobs, 1):
        is_plain = can_use_fast_path(new)
        kind = (new.queue, new.priority, new.task) if is_plain else number
        if kind not in groups:
            groups[kind] = accept(new, at), []
        job, numbers = groups[kind]
        numbers.append(number)
        records.append(pack_plain_record(new, at) if is_plain else pack_record(job))
    return {
        "hour": str(at // HOUR),
        "ids": [new.id for new in jobs],
        "records": [*map(binary, records)],
        **_indexed(list(groups.values())),
        "keys": [part for new in jobs if new.key for part in (new.key, new.id)],
        "slots": [part for new in jobs if new.slot for part in (new.slot, new.id)],
    }


def _indexed(groups: list[tuple[Job, list[int]]]) -> dict[str, Any]:
    by_position: dict[str, list[int]] = {}
    by_time: dict[str, list[Any]] = {}
    counts: Counter[str] = Counter()
    for job, numbers in groups:
        counts[f"{job.queue}|{job.state}"] += len(numbers)
        for key, score in indexes_of(job).items():
            if score is None:
                by_position.setdefault(key, []).extend(numbers)
            else:
                by_time.setdefault(key, []).extend((score, job.id))
    jobs = [job for job, _ in groups]
    counted = [["HINCRBY", "count", name, number] for name, number in counts.items()]
    return {
        "by_position": by_position,
        "by_time": by_time,
        "priorities": list({(job.queue, job.priority) for job in jobs if job.state is State.QUEUED}),
        "commands": [*counted, *(["ZADD", "tasks", 0, task] for task in {job.task for job in jobs})],
    }
