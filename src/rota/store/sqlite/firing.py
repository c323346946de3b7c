"""Fires schedules: firings that just make their job are written by the batch, the others one by one, all in one
transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.model.jobs.job import accept
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.shared.placing import advanced, place_firing
from rota.store.sqlite.codec import ADVANCED, advanced_row
from rota.store.sqlite.transaction import rows_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.schedules.firing import Firing
    from rota.store.shared.sql_schedules import Guard
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.schedules import Schedules
    from rota.store.sqlite.transaction import Transaction, Transactions


class FiringSnapshot(NamedTuple):
    """The stored state that the firings of a batch depend on, read once for all of them."""

    guards: dict[str, Guard]
    made: set[tuple[str, int]]  # occurrences that have a job
    busy: set[str]  # schedules whose overlap slot is taken

    def can_use_fast_path(self, firing: Firing) -> bool:
        """Whether it makes one job that nothing prevents."""
        if len(firing.shots) != 1:
            return False
        name, job = firing.schedule.id, firing.shots[0].job
        return job.key is None and (name, job.fire_at) not in self.made and name not in self.busy


class Firer:
    """One namespace's firings."""

    def __init__(
        self,
        namespace: str,
        transactions: Transactions,
        schedules: Schedules,
        adder: Adder,
        changer: Changer,
        ledger: Ledger,
    ) -> None:
        self._transactions = transactions
        self._schedules = schedules
        self._adder = adder
        self._changer = changer
        self._ledger = ledger
        self._name = f"{namespace}_schedule"
        self._jobs = f"{namespace}_job"
        columns = ", ".join(f"{column} = ?" for column in ADVANCED)
        self._advance = f"UPDATE {self._name} SET {columns} WHERE id = ?"

    def fire(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        """Make the jobs of firings and advance their schedules, except those that another process changed first."""
        results: list[Fired] = []
        rest = list(firings)
        with self._transactions.work("fire", now) as tx:
            tx.notify("jobs")
            while rest:
                batch, rest = _without_doubles(rest)
                results += self._fire_batch(tx, batch)
        return results

    def _fire_batch(self, tx: Transaction, firings: Sequence[Firing]) -> list[Fired]:
        snapshot = self._look(tx, firings)
        results: list[Fired] = []
        simple: list[Firing] = []
        for firing in firings:
            guard = snapshot.guards.get(firing.schedule.id)
            if guard is None or not firing.holds_for(guard.version, guard.created_at):
                results.append(Fired(schedule_id=firing.schedule.id, is_accepted=False))
                continue
            schedule = msgspec.structs.replace(firing.schedule, last=guard.last)  # it is no part of the version
            current = msgspec.structs.replace(firing, schedule=schedule)
            if snapshot.can_use_fast_path(firing):
                simple.append(current)
                results.append(Fired.of(firing.schedule.id, [firing.shots[0].job.id], firing.skips))
            else:  # in their order: positions go by it
                self._fire_simple(tx, simple)
                simple = []
                results.append(self._fire_one(tx, current))
        self._fire_simple(tx, simple)
        return results

    def _look(self, tx: Transaction, firings: Sequence[Firing]) -> FiringSnapshot:
        names = [firing.schedule.id for firing in firings]
        wanted = {(firing.schedule.id, shot.job.fire_at or 0) for firing in firings for shot in firing.shots}
        slots = rows_in(tx.connection, f"SELECT slot FROM {self._jobs} WHERE slot IN", names)
        return FiringSnapshot(
            guards=self._schedules.guards(tx, names),
            made=self._schedules.made(tx, list(wanted)),
            busy={slot for (slot,) in slots},
        )

    def _fire_simple(self, tx: Transaction, firings: Sequence[Firing]) -> None:
        if not firings:
            return
        self._adder.insert(tx, [accept(firing.shots[0].job, tx.now) for firing in firings])
        skips = [of_skip(firing.schedule.id, skip) for firing in firings for skip in firing.skips]
        self._ledger.record(tx, skips)
        after = [advanced(firing, firing.schedule, [firing.shots[0].job.id], tx.now) for firing in firings]
        tx.connection.executemany(self._advance, [(*advanced_row(schedule), schedule.id) for schedule in after])

    def _fire_one(self, tx: Transaction, firing: Firing) -> Fired:
        name = firing.schedule.id
        placed = place_firing(firing, PlacingSteps(tx, self._jobs, self._adder, self._changer))
        if placed is None:
            return Fired(schedule_id=name, is_accepted=False)
        self._ledger.record(tx, [of_skip(name, skip) for skip in placed.skips])
        after = advanced(firing, firing.schedule, placed.jobs, tx.now)
        tx.connection.execute(self._advance, (*advanced_row(after), name))
        return Fired.of(name, placed.jobs, placed.skips)


class PlacingSteps:
    """What placing occurrences reads and writes within one transaction."""

    def __init__(self, tx: Transaction, jobs: str, adder: Adder, changer: Changer) -> None:
        self._tx = tx
        self._jobs = jobs  # the table
        self._adder = adder
        self._changer = changer

    def live_job(self, schedule_id: str) -> str | None:
        return self._adder.slot_holder(self._tx.connection, schedule_id)

    def last_held(self, schedule_id: str) -> str | None:
        query = f"SELECT id FROM {self._jobs} WHERE schedule_id = ? AND state = 'held' ORDER BY seq DESC LIMIT 1"
        row = self._tx.connection.execute(query, (schedule_id,)).fetchone()
        return row[0] if row else None

    def key_holder(self, key: str) -> str | None:
        return self._adder.key_holder(self._tx, key)

    def was_made(self, schedule_id: str, fire_at: int) -> bool:
        query = f"SELECT 1 FROM {self._jobs} WHERE schedule_id = ? AND fire_at = ?"
        return self._tx.connection.execute(query, (schedule_id, fire_at)).fetchone() is not None

    def make(self, new: NewJob) -> None:
        self._adder.insert(self._tx, [accept(new, self._tx.now)])

    def stop(self, job_id: str, reason: str) -> None:
        self._changer.stop(self._tx, job_id, reason)


def _without_doubles(firings: Sequence[Firing]) -> tuple[list[Firing], list[Firing]]:
    """Up to the second firing of one schedule, which has to meet what the first made; and the rest."""
    names: set[str] = set()
    for number, firing in enumerate(firings):
        if firing.schedule.id in names:
            return list(firings[:number]), list(firings[number:])
        names.add(firing.schedule.id)
    return list(firings), []
