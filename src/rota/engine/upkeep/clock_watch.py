"""Notices that the store's clock was set, emits it once, and repairs what the wrong time left in the store.

Two things show a step: a reply that cannot be true, given what has passed since the last one (`StoreClock`), and a
record in the store of the latest time that its clock has shown, which a node compares when it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.engine.service import Service
from rota.engine.upkeep.clock_repairs import repair_jobs, repair_leases, repair_schedules
from rota.errors import StoreSealed
from rota.model.clock.record import (
    KIND,
    NAME,
    ClockRecord,
    ClockStep,
    is_same_step,
    missed_step,
    pack_record,
    unfinished_steps,
    unpack_record,
    with_repair,
    with_step,
)
from rota.model.entry import EntryEdit
from rota.model.micros import SECOND
from rota.store.shared.liveness import SILENT_AFTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.store.contract import Store

LOOK = 1.0  # seconds between two checks of the steps that this node's replies have shown
RECORD = 60.0  # seconds between two records of the latest time
SECOND_PASS = SILENT_AFTER / SECOND + 5.0  # seconds; by then live nodes have renewed, and old firings have come
TAKE_OVER = 60.0  # seconds after which this node finishes another node's repair
MOST_TRIES = 5  # at a record that other nodes write, too


class Pending:
    """A step that is to be repaired, and when."""

    def __init__(self, step: ClockStep, due_at: float, passes: int) -> None:
        self.step = step
        self.due_at = due_at
        self.passes = passes  # that are left


class ClockWatch(Service):
    """Runs in every node. The node that records a step first repairs; another finishes a repair that did not end."""

    name = "clock watch"

    def __init__(
        self, store: Store, events: Events, clock: StoreClock, new_id: Callable[[], str], *, node_id: str
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._new_id = new_id
        self._node_id = node_id
        self._pending: list[Pending] = []
        self._recorded_at = float("-inf")
        self._has_looked = False  # for repairs that did not end before this node started

    def turn(self) -> float:
        try:
            if self.clock.monotonic() >= self._recorded_at + RECORD:
                self._record_time()
            while self.clock.steps:
                self._note(self.clock.steps[0])
                self.clock.steps.popleft()
            for pending in [one for one in self._pending if self.clock.monotonic() >= one.due_at]:
                self._repair(pending)
        except StoreSealed:
            return LOOK  # sealed on purpose
        return LOOK

    def _record_time(self) -> None:
        """Record the latest time. If an earlier record shows a later time, the clock was set back unnoticed."""
        asked_at = self.clock.monotonic()
        now = self._store.now()
        self.clock.sync(now, asked_at)
        self._recorded_at = asked_at
        if self.clock.steps:
            return  # the step itself is recorded next
        _, record = self._read()
        self._take_over(record, now)
        missed = missed_step(record, now, self._node_id)
        if missed is not None:
            self._note(missed)
        else:
            self._write(lambda record: msgspec.structs.replace(record, latest=max(record.latest, now)))

    def _take_over(self, record: ClockRecord, now: int) -> None:
        """Plan to finish the repairs that did not end before this node started."""
        if not self._has_looked:
            due_at = self.clock.monotonic() + TAKE_OVER
            self._pending += [Pending(step, due_at, 1) for step in unfinished_steps(record, now)]
        self._has_looked = True

    def _note(self, seen: ClockStep) -> None:
        """Emit that the clock was set, once, and plan the repair."""
        step = msgspec.structs.replace(seen, by=self._node_id)
        before, after = self._write(lambda record: with_step(record, step))
        is_first = before.steps != after.steps
        self.events.emit("store.clock_set", step.at, was=step.was, seconds=round(step.size / SECOND, 3))
        if step.is_back:
            now = self.clock.monotonic()
            self._pending.append(Pending(step, now if is_first else now + TAKE_OVER, 2 if is_first else 1))

    def _repair(self, pending: Pending) -> None:
        step = pending.step
        is_last = pending.passes == 1
        if is_last and self._is_done_elsewhere(step):
            self._pending.remove(pending)
            return
        schedules = repair_schedules(self._store, self._new_id, by="clock watch")
        jobs = repair_jobs(self._store)
        if is_last:
            jobs += repair_leases(self._store, step.was)
        self._write(lambda record: with_repair(record, step, schedules, jobs, is_last=is_last))
        if schedules or jobs:
            self.events.emit("store.clock_repaired", self.clock.now(), schedules=schedules, jobs=jobs)
        pending.passes -= 1
        pending.due_at = self.clock.monotonic() + SECOND_PASS
        if is_last:
            self._pending.remove(pending)

    def _is_done_elsewhere(self, step: ClockStep) -> bool:
        """Whether another node that noticed the same step has finished the repair."""
        _, record = self._read()
        return any(kept.is_repaired and kept.by != self._node_id and is_same_step(kept, step) for kept in record.steps)

    def _read(self) -> tuple[int, ClockRecord]:
        found = self._store.get_entries(KIND, [NAME])
        return (found[0].version, unpack_record(found[0].data)) if found else (0, ClockRecord())

    def _write(self, change: Callable[[ClockRecord], ClockRecord]) -> tuple[ClockRecord, ClockRecord]:
        """Change the record, again if another node changed it meanwhile; as it was, and as it is."""
        for _ in range(MOST_TRIES):
            version, before = self._read()
            after = change(before)
            if after == before:
                return before, before
            edit = EntryEdit(kind=KIND, name=NAME, expect_version=version, data=pack_record(after))
            if not self._store.edit_entries([edit]):
                return before, after
        return before, before
