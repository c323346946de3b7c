"""Firings: those that just make their job are written by the batch, the others one by one, all in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.model.job import accept
from rota.model.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.shared.placing import advanced, place_firing
from rota.store.sqlite.rows import ADVANCED, advanced_row, last_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.model.job import NewJob
    from rota.store.shared.counting import Counts
    from rota.store.sqlite.jobs import JobTable
    from rota.store.sqlite.ledger import Ledger

    Guard = tuple[int, int, str]  # a schedule's version, its creation, and its last run


class Sight(NamedTuple):
    """What the firings of a batch meet, looked at once for all of them."""

    guards: dict[str, Guard]
    made: set[tuple[str, int]]  # occurrences that have a job
    busy: set[str]  # schedules whose slot is taken

    def is_simple(self, firing: Firing) -> bool:
        """Whether it makes one job that nothing stands in the way of."""
        if len(firing.shots) != 1:
            return False
        name, job = firing.schedule.id, firing.shots[0].job
        return job.key is None and (name, job.fire_at) not in self.made and name not in self.busy


class Firer:
    """One namespace's firings."""

    def __init__(self, namespace: str, jobs: JobTable, ledger: Ledger) -> None:
        self._name = f"{namespace}_schedule"
        self._jobs = jobs
        self._ledger = ledger
        columns = ", ".join(f"{column} = ?" for column in ADVANCED)
        self._advance = f"UPDATE {self._name} SET {columns} WHERE id = ?"

    def fire(self, connection: sqlite3.Connection, firings: Sequence[Firing], now: int, counts: Counts) -> list[Fired]:
        """Make the jobs of firings and advance their schedules, except those that somebody else changed first."""
        results: list[Fired] = []
        rest = list(firings)
        while rest:
            batch, rest = _without_doubles(rest)
            results += self._fire_batch(connection, batch, now, counts)
        return results

    def _fire_batch(
        self, connection: sqlite3.Connection, firings: Sequence[Firing], now: int, counts: Counts
    ) -> list[Fired]:
        sight = self._look(connection, firings)
        results: list[Fired] = []
        simple: list[Firing] = []
        for firing in firings:
            guard = sight.guards.get(firing.schedule.id)
            if guard is None or not firing.holds_for(*guard[:2]):
                results.append(Fired(schedule_id=firing.schedule.id, is_accepted=False))
                continue
            current = _with_last(firing, guard)
            if sight.is_simple(firing):
                simple.append(current)
                results.append(Fired.of(firing.schedule.id, [firing.shots[0].job.id], firing.skips))
            else:  # in their order: places in line go by it
                self._fire_simple(connection, simple, now, counts)
                simple = []
                results.append(self._fire_one(connection, current, now, counts))
        self._fire_simple(connection, simple, now, counts)
        return results

    def _look(self, connection: sqlite3.Connection, firings: Sequence[Firing]) -> Sight:
        names = [firing.schedule.id for firing in firings]
        query = f"SELECT id, version, created_at, last FROM {self._name} WHERE id IN "
        guards = {row[0]: row[1:] for row in self._jobs.found_among(connection, query, names)}
        wanted = {(firing.schedule.id, shot.job.fire_at or 0) for firing in firings for shot in firing.shots}
        return Sight(guards, self._jobs.made(connection, wanted), self._jobs.slots_in_use(connection, names))

    def _fire_simple(self, connection: sqlite3.Connection, firings: Sequence[Firing], now: int, counts: Counts) -> None:
        if not firings:
            return
        self._jobs.insert(connection, [accept(firing.shots[0].job, now) for firing in firings], counts)
        self._ledger.record(
            connection, [of_skip(firing.schedule.id, skip) for firing in firings for skip in firing.skips]
        )
        after = [advanced(firing, firing.schedule, [firing.shots[0].job.id], now) for firing in firings]
        connection.executemany(self._advance, [(*advanced_row(schedule), schedule.id) for schedule in after])

    def _fire_one(self, connection: sqlite3.Connection, firing: Firing, now: int, counts: Counts) -> Fired:
        name = firing.schedule.id
        placed = place_firing(firing, Steps(connection, self._jobs, now, counts))
        if placed is None:
            return Fired(schedule_id=name, is_accepted=False)
        self._ledger.record(connection, [of_skip(name, skip) for skip in placed.skips])
        after = advanced(firing, firing.schedule, placed.jobs, now)
        connection.execute(self._advance, (*advanced_row(after), name))
        return Fired.of(name, placed.jobs, placed.skips)


class Steps:
    """What placing occurrences reads and writes within one transaction."""

    def __init__(self, connection: sqlite3.Connection, jobs: JobTable, now: int, counts: Counts) -> None:
        self._connection = connection
        self._jobs = jobs
        self._now = now
        self._counts = counts

    def live_job(self, schedule_id: str) -> str | None:
        return self._jobs.slot_holder(self._connection, schedule_id)

    def last_held(self, schedule_id: str) -> str | None:
        return self._jobs.last_held(self._connection, schedule_id)

    def key_holder(self, key: str) -> str | None:
        return self._jobs.key_holder(self._connection, key, self._now)

    def was_made(self, schedule_id: str, fire_at: int) -> bool:
        return self._jobs.has_occurrence(self._connection, schedule_id, fire_at)

    def make(self, new: NewJob) -> None:
        self._jobs.insert(self._connection, [accept(new, self._now)], self._counts)

    def stop(self, job_id: str, reason: str) -> None:
        self._jobs.stop(self._connection, job_id, reason, self._now, self._counts)


def _without_doubles(firings: Sequence[Firing]) -> tuple[list[Firing], list[Firing]]:
    """Up to the second firing of one schedule, which has to meet what the first made; and the rest."""
    names: set[str] = set()
    for number, firing in enumerate(firings):
        if firing.schedule.id in names:
            return list(firings[:number]), list(firings[number:])
        names.add(firing.schedule.id)
    return list(firings), []


def _with_last(firing: Firing, guard: Guard) -> Firing:
    """How its jobs ended is no part of a schedule's version: what is kept now stays."""
    schedule = msgspec.structs.replace(firing.schedule, last=last_of(guard[2]))
    return msgspec.structs.replace(firing, schedule=schedule)
