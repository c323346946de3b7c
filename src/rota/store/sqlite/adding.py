"""The intake: how new jobs come into the job table, all or none, and under their keys."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rota.model.job import OWN_FIELDS, Job, NewJob, accept, holds_key, is_plain
from rota.model.state import State
from rota.store.contract import Added
from rota.store.sqlite.batches import Insert
from rota.store.sqlite.marks import blocks_of
from rota.store.sqlite.rows import JOB_FIELDS, row_of_job

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.store.shared.counting import Counts
    from rota.store.sqlite.marks import Marks


class Intake:
    """One namespace's table of jobs, for whoever adds to it."""

    def __init__(self, namespace: str, marks: Marks) -> None:
        self._name = f"{namespace}_job"
        self._marks = marks
        columns = [field for field in JOB_FIELDS if field != "seq"]
        self._insert = Insert(self._name, columns, "?" * len(columns))
        self._insert_plain, self._times = _insert_plain(self._name)

    def add(self, connection: sqlite3.Connection, jobs: Sequence[NewJob], now: int, counts: Counts) -> list[Added]:
        """Insert jobs; those whose slot or key is taken answer with the job that has it."""
        if all(map(is_plain, jobs)):
            are_in = self._insert_all_plain(connection, jobs, now, counts)
        elif any(new.key or new.slot or new.waits_for for new in jobs):
            are_in = False
        else:
            are_in = self.insert(connection, [accept(new, now) for new in jobs], counts)
        if are_in:
            return [Added(new.id) for new in jobs]
        return [self._add_one(connection, new, now, counts) for new in jobs]

    def _insert_all_plain(
        self, connection: sqlite3.Connection, jobs: Sequence[NewJob], now: int, counts: Counts
    ) -> bool:
        """As insert, for the most common jobs by far: only what they differ in is bound."""
        times = (now,) * self._times
        rows = [(new.id, new.task, new.payload, new.queue, new.priority, *times) for new in jobs]
        places = self._insert_plain.all_or_none(connection, rows)
        if places is None:
            return False
        kinds = {(new.queue, new.task) for new in jobs}
        self._marks.note_kinds(connection, kinds, places)
        if len(kinds) == 1:  # most batches, and every single job
            counts.add(jobs[0].queue, State.QUEUED, len(jobs))
            return True
        for queue, number in Counter(new.queue for new in jobs).items():
            counts.add(queue, State.QUEUED, number)
        return True

    def _add_one(self, connection: sqlite3.Connection, new: NewJob, now: int, counts: Counts) -> Added:
        """Insert a job unless it is there already, by its id, its slot or its key."""
        if self.state_of(connection, new.id) is not None:
            return Added(new.id, existed=True)
        taken = self.slot_holder(connection, new.slot) or self.key_holder(connection, new.key, now)
        if taken:
            return Added(taken, existed=True)
        awaited = self.state_of(connection, new.waits_for) if new.waits_for else None
        must_wait = awaited is not None and not awaited.is_final
        self.insert(connection, [accept(new, now, must_wait=must_wait)], counts)
        return Added(new.id)

    def insert(self, connection: sqlite3.Connection, jobs: Sequence[Job], counts: Counts) -> bool:
        """Insert jobs, all or, where one of them is there already, none."""
        places = self._insert.all_or_none(connection, [_without_seq(job) for job in jobs])
        if places is None:
            return False
        self._marks.note_kinds(connection, {(job.queue, job.task) for job in jobs}, places)
        if any(job.state is State.SUCCEEDED for job in jobs):
            self._marks.note_successes(connection, blocks_of(places))
        for (queue, state), number in Counter((job.queue, job.state) for job in jobs).items():
            counts.add(queue, state, number)
        return True

    def state_of(self, connection: sqlite3.Connection, job_id: str) -> State | None:
        row = connection.execute(f"SELECT state FROM {self._name} WHERE id = ?", (job_id,)).fetchone()
        return State(row[0]) if row else None

    def slot_holder(self, connection: sqlite3.Connection, slot: str | None) -> str | None:
        """The live job in a schedule's slot."""
        if slot is None:
            return None
        row = connection.execute(f"SELECT id FROM {self._name} WHERE slot = ?", (slot,)).fetchone()
        return str(row[0]) if row else None

    def key_holder(self, connection: sqlite3.Connection, key: str | None, now: int) -> str | None:
        """The job that has a key; a key that only held for a period is free once that is over."""
        if not key:
            return None
        query = f"SELECT seq, id, state, key_until FROM {self._name} WHERE key = ?"
        row = connection.execute(query, (key,)).fetchone()
        if row is None:
            return None
        seq, job_id, state, key_until = row
        if holds_key(State(state), key_until, now):
            return str(job_id)
        connection.execute(f"UPDATE {self._name} SET key = NULL WHERE seq = ?", (seq,))
        return None


def _insert_plain(table: str) -> tuple[Insert, int]:
    """The statement for plain requests, and how often it has their time behind their own fields.

    What the model makes of all of them alike stands in it as it is.
    """
    sample = NewJob(id="", task="", payload=b"")
    one, two = accept(sample, 1), accept(sample, 2)
    values = dict.fromkeys(OWN_FIELDS, "?")
    for field in JOB_FIELDS:
        value = getattr(one, field)
        if field in values or field == "seq" or value is None:
            continue
        values[field] = "?" if value != getattr(two, field) else _literal(value)
    bound = sum(value == "?" for value in values.values())
    return Insert(table, list(values), list(values.values())), bound - len(OWN_FIELDS)


def _literal(value: str | int | bytes) -> str:
    """A constant of the model as SQL writes it."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _without_seq(job: Job) -> tuple[Any, ...]:
    row = row_of_job(job)
    return row[:1] + row[2:]
