"""Salvos: firings that each just make a job which is ready at once, a whole batch by one call of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import psycopg

from rota.errors import StoreError
from rota.failpoints import reach
from rota.model.firing import fired
from rota.model.job import accept
from rota.model.schedule import LastRun
from rota.model.state import State
from rota.store.contract import Fired
from rota.store.postgres.arrays import once
from rota.store.postgres.calls import Function
from rota.store.postgres.codec import packed, packed_last
from rota.store.postgres.marks import BLOCK, Kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

# What the server raises where an occurrence has its job already, or where a row was spoiled by hand.
IN_THE_WAY = (psycopg.errors.UniqueViolation, psycopg.DataError)
NONE_HOLDS, MISDATED = -1, -2  # instead of a place; 0 where one of them needs a closer look
_NOT_KNOWN = LastRun()  # so that only what a firing says of the last run is sent
_FIRE_READY = Function(
    "fire_ready",
    (
        *("bigint", "boolean", "bigint", "text[]", "bigint[]", "bigint[]", "bigint[]", "bigint[]", "bigint[]"),
        *("bigint[]", "bigint[]", "text[]", "text[]", "text[]", "text[]", "bigint[]", "bigint[]", "text[]", "text[]"),
        *("text[]", "bigint[]"),
        *("text[]", "bytea[]", "text[]", "smallint[]", "integer[]", "bytea[]", "bigint", "text[]", "text[]"),
        *("integer[]", "integer[]"),
    ),
)


class FiringBatch(NamedTuple):
    """Firings of which `are_plain` is true, decided for one instant, as they are sent."""

    at: int
    columns: list[list[Any] | None]
    kinds: Kinds

    @classmethod
    def of(cls, firings: Sequence[Firing], at: int) -> FiringBatch | None:
        """None where one of the jobs is not ready at that instant."""
        jobs = [accept(firing.shots[0].job, at) for firing in firings]
        if not all(map(_is_ready, jobs)):
            return None
        tasks, queues = once([job.task for job in jobs]), once([job.queue for job in jobs])
        columns = [*_schedule_columns(firings, at), *_job_columns(jobs, tasks, queues)]
        return cls(at, columns, Kinds.of(len(jobs), queues=queues, tasks=tasks))

    def fire(self, database: Database, *, is_guessed: bool) -> int | None:
        """The last job's place, or why there is none; None where the store is sealed."""
        reach("fire.before_commit")
        try:
            return database.call(lambda tx: self._call(tx, is_guessed=is_guessed))
        except StoreError as err:
            if isinstance(err.__cause__, IN_THE_WAY):
                return 0
            raise

    def _call(self, tx: Transaction, *, is_guessed: bool) -> int | None:
        marked = tx.marked.block_with(self.kinds.all)
        values = (self.at, is_guessed, tx.slot, *self.columns, marked, *self.kinds.columns)
        place: int | None = tx.call(_FIRE_READY, values)[0][0]
        if place is not None and place > 0:
            tx.marked.note(place // BLOCK, self.kinds.last)
        return place


def are_plain(firings: Sequence[Firing]) -> bool:
    """Whether all are plain, and no schedule and no key comes twice."""
    names = {firing.schedule.id for firing in firings}
    keys = [key for firing in firings for key in firing.keys]
    return len(names) == len(firings) and len(set(keys)) == len(keys) and all(firing.is_plain for firing in firings)


def told(firings: Sequence[Firing], *, is_accepted: bool) -> list[Fired]:
    return [
        Fired(
            schedule_id=firing.schedule.id,
            is_accepted=is_accepted,
            jobs=[firing.shots[0].job.id] if is_accepted else [],
        )
        for firing in firings
    ]


def _is_ready(job: Job) -> bool:
    return job.state is State.QUEUED


def _schedule_columns(firings: Sequence[Firing], at: int) -> list[list[Any]]:
    """The schedules before and after, by id: whoever locks some does it in that order."""
    in_order = sorted(firings, key=lambda firing: firing.schedule.id)
    after = [_advanced(firing, at) for firing in in_order]
    return [
        [schedule.id for schedule in after],
        [firing.schedule.version for firing in in_order],
        [schedule.created_at for schedule in after],
        [schedule.version for schedule in after],
        [schedule.next_at for schedule in after],
        [schedule.due_at for schedule in after],
        [schedule.fired_through for schedule in after],
        [schedule.run_count for schedule in after],
        [packed(schedule.ahead) for schedule in after],
        [packed_last(schedule.last) for schedule in after],
    ]


def _advanced(firing: Firing, at: int) -> Schedule:
    bare = msgspec.structs.replace(firing.schedule, last=_NOT_KNOWN)
    return fired(msgspec.structs.replace(firing, schedule=bare), 1, at, firing.shots[0].job.id)


def _job_columns(jobs: Sequence[Job], tasks: list[str], queues: list[str]) -> list[list[Any] | None]:
    """In the order of their places. What is the same throughout has one element, which is never empty."""
    slots, keys = [job.slot for job in jobs], [job.key for job in jobs]
    return [
        [job.id for job in jobs],
        [job.schedule_id for job in jobs],
        [job.fire_at for job in jobs],
        [job.after_at for job in jobs],
        [job.made_by for job in jobs],
        slots if any(slots) else None,
        keys if any(keys) else None,
        [job.key_until for job in jobs] if any(keys) else None,
        tasks,
        once([job.payload for job in jobs]),
        queues,
        once([job.priority for job in jobs]),
        once([job.generation for job in jobs]),
        once([job.past for job in jobs]),
    ]
