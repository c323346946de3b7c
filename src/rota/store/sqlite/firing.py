"""Firings: those that just make their job are written by the batch, the others one by one, all in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.model.firing import fired, place
from rota.model.job import accept
from rota.model.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.sqlite.rows import ADVANCED, advanced_row, last_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from rota.model.firing import Firing, Shot
    from rota.model.slots import Skip
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
                results.append(_fired(current, [firing.shots[0].job.id], firing.skips))
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
        after = [fired(firing, 1, now, firing.shots[0].job.id) for firing in firings]
        connection.executemany(self._advance, [(*advanced_row(schedule), schedule.id) for schedule in after])

    def _fire_one(self, connection: sqlite3.Connection, firing: Firing, now: int, counts: Counts) -> Fired:
        name = firing.schedule.id
        if firing.is_early and self._must_wait(connection, firing, now):
            return Fired(schedule_id=name, is_accepted=False)
        made: list[str] = []
        skips = list(firing.skips)
        for shot in firing.shots:
            job_id, skip = self._place(connection, shot, name, now, counts)
            made += [job_id] if job_id is not None else []
            skips += [skip] if skip is not None else []
        self._ledger.record(connection, [of_skip(name, skip) for skip in skips])
        after = fired(firing, len(made), now, made[-1] if made else None)
        connection.execute(self._advance, (*advanced_row(after), name))
        return _fired(firing, made, skips)

    def _must_wait(self, connection: sqlite3.Connection, firing: Firing, now: int) -> bool:
        holders = (self._jobs.key_holder(connection, key, now) for key in firing.keys)
        live = self._jobs.slot_holder(connection, firing.schedule.id)
        return firing.must_wait(live, next(filter(None, holders), None))

    def _place(
        self, connection: sqlite3.Connection, shot: Shot, schedule_id: str, now: int, counts: Counts
    ) -> tuple[str | None, Skip | None]:
        if self._jobs.has_occurrence(connection, schedule_id, shot.job.fire_at or 0):
            return None, None  # made already, by a schedule of that name before the clock stepped back
        live = last_held = None
        if shot.when_busy != "allow":
            live = self._jobs.slot_holder(connection, schedule_id)
            last_held = self._jobs.last_held(connection, schedule_id) if live else None
        placement = place(shot, live, last_held, self._jobs.key_holder(connection, shot.job.key, now))
        if placement.job is not None:
            self._jobs.insert(connection, [accept(placement.job, now)], counts)
        if placement.cancels is not None:
            self._jobs.stop(connection, placement.cancels, "replaced by the next occurrence", now, counts)
        return (placement.job.id if placement.job else None), placement.skip


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


def _fired(firing: Firing, made: list[str], skips: Iterable[Skip]) -> Fired:
    return Fired.of(firing.schedule.id, made, skips)
