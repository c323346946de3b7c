"""Adding jobs: one round trip where their ids and keys are free, which they nearly always are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rota.failpoints import reach
from rota.model.job import accept, is_plain
from rota.model.state import State
from rota.store.contract import Added
from rota.store.redis.desk import text_of
from rota.store.redis.draft import Draft
from rota.store.redis.link import packed
from rota.store.redis.packing import pack_alike, pack_plain_record, pack_record
from rota.store.redis.places import HOUR
from rota.store.redis.schema import VERSION
from rota.store.redis.sheaves import LEAST_BATCH, LINE_SHEAF, SPAN_BITS
from rota.store.redis.wire import binary, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job, NewJob
    from rota.store.redis.desk import Desk


class Intake:
    """Accepts jobs."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def add(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        if not jobs:
            return []
        if len(jobs) == 1 and _is_ready(jobs[0]):
            added = self._add_one(jobs[0], now)
            if added is not None:
                return [added]
        elif self._may_be_free(jobs) and self._add_fresh(jobs, now, self._packed(jobs, now)):
            return [Added(new.id) for new in jobs]
        return self._add_carefully(jobs, now)

    def _add_one(self, new: NewJob, now: int | None) -> Added | None:
        """A job that is ready at once, by the shortest way; None where it, or its key, is there already."""
        link = self._desk.link
        while True:
            at = link.estimated_now() if now is None else now
            reach("add.before_commit")
            reply = link.call_plainly("add_one", *_argument(new, at, now), is_clock=now is None)
            reach("add.after_commit")
            if reply.body == b"added":
                return Added(new.id)
            if reply.body != b"clock":
                return None
            link.reset_clock(reply.now)

    def _may_be_free(self, jobs: Sequence[NewJob]) -> bool:
        keys = [new.key for new in jobs if new.key]
        is_plain = not any(new.waits_for or new.slot or new.ahead is not None for new in jobs)
        return is_plain and len(set(keys)) == len(keys) and len({new.id for new in jobs}) == len(jobs)

    def _add_fresh(self, jobs: Sequence[NewJob], now: int | None, ask: bytes) -> bool:
        """Whether all of them were new. Their dates are what is known of the server's clock, and it checks that."""
        link = self._desk.link
        while True:
            reach("add.before_commit")
            reply = link.call_plainly("add", ask, is_clock=now is None)
            reach("add.after_commit")
            (answer,) = reply.body
            if answer != b"clock":
                return bool(answer == b"added")
            link.reset_clock(reply.now)
            ask = self._packed(jobs, now)

    def _packed(self, jobs: Sequence[NewJob], now: int | None) -> bytes:
        at = self._desk.link.estimated_now() if now is None else now
        are_plain = all(map(is_plain, jobs))
        ask = _plain_request(jobs, at) if are_plain else request_of([accept(new, at) for new in jobs], at)
        return packed(now=text_of(now), is_work=True, **ask)

    def _add_carefully(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        """In order, one after another, upon one draft: all or none."""
        added: list[Added] = []

        def turn() -> bool:
            ids = [new.id for new in jobs] + [new.waits_for for new in jobs if new.waits_for]
            keys = [["HGET", "key", key] for key in dict.fromkeys(new.key for new in jobs if new.key)]
            at, sights, owners, base = self._desk.look(list(dict.fromkeys(ids)), *keys, reserve=len(jobs), now=now)
            draft = Draft(self._desk, at)
            draft.show(sights)
            for command, owner in zip(keys, owners, strict=True):
                draft.expect(command, owner)
            known = [owner.decode() for owner in owners if owner is not None and owner.decode() not in sights]
            draft.show(self._desk.sights(known) if known else {})
            added[:] = [draft.add(new, base + number) for number, new in enumerate(jobs, 1)]
            return self._desk.commit("add", [draft], is_work=True)[0]

        self._desk.settle_down(turn)
        return added


def _is_ready(new: NewJob) -> bool:
    """Whether a job is ready at once, and of no schedule."""
    return not (new.run_at or new.delay or new.waits_for or new.schedule_id)


def _argument(new: NewJob, at: int, now: int | None) -> tuple[str | bytes, ...]:
    """One job as the script for one takes it."""
    return (
        VERSION,
        "" if now is None else str(now),
        str(at),
        new.id,
        pack_plain_record(new, at) if is_plain(new) else pack_record(accept(new, at)),
        new.queue,
        str(new.priority),
        new.task,
        str(at // HOUR),
        new.key or "",
    )


def request_of(jobs: list[Job], at: int) -> dict[str, Any]:
    """What the script is told: jobs by their number, grouped by the sets that they stand in."""
    kinds: dict[tuple[str, int, str, State], list[int]] = {}
    groups = _Groups(len(jobs))
    for number, job in enumerate(jobs, 1):
        kind = (job.queue, job.priority, job.task, job.state)
        alike = kinds.get(kind)
        if alike is None:
            kinds[kind] = [number]
        else:
            alike.append(number)
        if job.schedule_id is not None or job.state is not State.QUEUED:
            groups.place(job, number)
    for (queue, priority, task, state), numbers in kinds.items():
        groups.place_all(queue, priority, task, state, numbers)
    keyed = [job for job in jobs if job.key]
    slotted = [job for job in jobs if job.slot]
    return {
        "at": str(at),
        **_packed_ids([job.id for job in jobs]),
        **joined([pack_record(job) for job in jobs]),
        "keys": [job.key for job in keyed],
        "keyed": [job.id for job in keyed],
        "busy": [job.slot for job in slotted],
        "slotted": [job.id for job in slotted],
        "hour": at // HOUR,
        **groups.told(),
    }


def _plain_request(jobs: Sequence[NewJob], at: int) -> dict[str, Any]:
    """The same of plain requests, which all become queued at once: no job is made of them first."""
    kinds: dict[tuple[str, int, str], list[int]] = {}
    for number, new in enumerate(jobs, 1):
        kind = (new.queue, new.priority, new.task)
        alike = kinds.get(kind)
        if alike is None:
            alike = kinds[kind] = []
        alike.append(number)
    records = pack_alike(jobs, at) if len(kinds) == 1 else [pack_plain_record(new, at) for new in jobs]
    groups = _Groups(len(jobs))
    for (queue, priority, task), numbers in kinds.items():
        groups.place_all(queue, priority, task, State.QUEUED, numbers)
    return {
        "at": str(at),
        **_packed_ids([new.id for new in jobs]),
        **joined(records),
        "keys": [],
        "keyed": [],
        "busy": [],
        "slotted": [],
        "hour": at // HOUR,
        **groups.told(),
    }


def _packed_ids(ids: list[str]) -> dict[str, Any]:
    """Ids as one index keeps them, and in the pieces that a line keeps."""
    pieces = [binary(encode(ids[start : start + LINE_SHEAF])) for start in range(0, len(ids), LINE_SHEAF)]
    return {"packed_ids": binary(encode(ids)), "pieces": pieces}


def joined(records: list[bytes]) -> dict[str, Any]:
    """Records as one text, and how long each is: quicker to tell than one by one."""
    return {"records": binary(b"".join(records)), "sizes": [len(record) for record in records]}


class _Groups:
    """Jobs of one call by their numbers: which stand together in which set. A batch has few kinds of them."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._lines: dict[tuple[str, int], list[int]] = {}
        self._waits: dict[str, list[Any]] = {}
        self._places: dict[str, list[int]] = {}
        self._scored: dict[str, list[Any]] = {}
        self._tasks: dict[str, list[int]] = {}
        self._counts: Counter[str] = Counter()

    def place(self, job: Job, number: int) -> None:
        """Where a job stands for reasons of its own."""
        if job.state is not State.QUEUED:
            self._waits.setdefault(job.queue, []).extend((job.run_at, job.id))
            self._places.setdefault(f"in:{job.queue}:{job.state.value}", []).append(number)
        if job.schedule_id is not None:
            self._places.setdefault(f"made:{job.schedule_id}", []).append(number)
            self._places.setdefault(f"live:{job.schedule_id}", []).append(number)
            if job.fire_at is not None:
                self._scored.setdefault(f"slot:{job.schedule_id}", []).extend((job.fire_at, job.id))

    def place_all(self, queue: str, priority: int, task: str, state: State, numbers: list[int]) -> None:
        """Where jobs of one kind stand."""
        self._tasks.setdefault(task, []).extend(numbers)
        self._counts[f"{queue}|{state.value}"] += len(numbers)
        if state is State.QUEUED:
            self._lines.setdefault((queue, priority), []).extend(numbers)

    def told(self) -> dict[str, Any]:
        return {
            "lines": [(*line, self._some(sorted(numbers))) for line, numbers in self._lines.items()],
            "waits": list(self._waits.items()),
            "places": {key: self._some(numbers) for key, numbers in self._places.items()},
            "scored": self._scored,
            "tasks": [(task, self._some(sorted(numbers))) for task, numbers in self._tasks.items()],
            "least_sheaf": LEAST_BATCH,
            "line_sheaf": LINE_SHEAF,
            "span": 1 << SPAN_BITS,
            "counts": self._counts,
        }

    def _some(self, numbers: list[int]) -> list[int] | bool:
        """The numbers; False where they are all."""
        return numbers if len(numbers) < self._total else False
