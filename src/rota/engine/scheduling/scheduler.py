"""Scheduler: turns due schedules into jobs. It asks an index what is due, and sleeps until the next instant that is.

Any number of schedulers may run: each firing is guarded by the schedule's version, so that two of them, killed at any
line, make the same jobs as one.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rota.background import BackgroundThread
from rota.engine.scheduling.partition import PATIENCE, Partition
from rota.engine.service import LONGEST_PAUSE, Service
from rota.errors import StoreMoved, StoreUnavailable
from rota.failpoints import reach
from rota.model.audit_record import Author
from rota.model.edit import park, record_fault, with_audit
from rota.model.firing import Firing, plan, plan_early, start_of
from rota.model.micros import SECOND
from rota.model.redaction import DEFAULT, hidden
from rota.model.slots import OVERLAP, UNIQUE

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.schedule import Schedule
    from rota.store.contract import Due, Fired, Listener, Store

    Decide = Callable[[Schedule, int, Callable[[], str]], Firing | None]

log = logging.getLogger("rota.scheduler")

BATCH = 200  # schedules whose firings are recorded in one call
LOOK = 5 * BATCH  # schedules read in one turn: memory is bounded by it, however many there are
EARLY = 0.025  # seconds before an instant in which what is due then is fired already: only the claim is left to do then
MOST_TRIES = 5  # of a firing that the store fails at, before its schedule is set aside
FIRST_RETRY = 1.0  # seconds until the second of them; each next pause is twice as long
LONGEST_ERROR = 2_000  # characters of an error that its schedule keeps
NEAR = 0.004  # seconds before an instant in which no bell is heard
LONGEST_WAIT = 5.0  # the net under the bell, and what a jump of the store's clock costs at most


class Outage(NamedTuple):
    """A time in which the store did not do what it was asked."""

    error: str
    until: int  # when it last failed, by what is known of its clock
    told: set[str]  # the schedules that were said to be delayed by it


class Failing(NamedTuple):
    """A schedule whose firing the store failed at, for a reason that is no outage."""

    tries: int
    again_at: float  # monotonic seconds


class IdleWorker(Protocol):
    """A worker beside a scheduler."""

    def is_idle_for(self, queue: str) -> bool:
        """Whether it has nothing to do but to wait for jobs of this queue."""

    def wake(self) -> None: ...


class Scheduler(Service):
    """Fires what is due."""

    name = "scheduler"

    def __init__(
        self,
        store: Store,
        events: Events,
        clock: StoreClock,
        new_id: Callable[[], str],
        *,
        partition: Callable[[], Partition] = Partition,
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._new_id = new_id
        self._worker: IdleWorker | None = None
        self._partition = partition  # which of many due ones are its own, where others are there too
        self._listener: Listener | None = None
        self._early_at = 0  # the instant for which that was done
        self._failing: dict[str, Failing] = {}  # by schedule; tried again a few times before it is set aside
        self._outage: Outage | None = None  # since the store last did what it was asked

    def set_worker(self, worker: IdleWorker) -> None:
        """Hear of a worker in the same process: it need not wait for a bell, nor for an occurrence to be due."""
        self._worker = worker

    def turn(self) -> float:
        if self._listener is None:
            self._listener = self._store.listen("schedules")
        if self.is_moved:
            if self._store.sealed() is not None:
                return LONGEST_PAUSE
            self.note_unsealed()
        asked_at = self.clock.monotonic()
        partition = self._partition()
        due = self._ask_due(LOOK * partition.of)
        self.clock.sync(due.now, asked_at)
        if due.schedules:
            mine = self._without_failing(partition.first_due(due.schedules, due.now, LOOK))
            self._emit_delayed(mine, due.now)
            self.fire(mine, due.now)
            self._outage = None
            return 0.0 if mine else PATIENCE / SECOND
        if due.next_due_at is None:
            return LONGEST_WAIT
        left = (due.next_due_at - self.clock.now()) / SECOND
        if self._worker is not None and left <= EARLY and self._early_at != due.next_due_at:
            self._early_at = due.next_due_at
            self.fire_early(due.next_due_at, self._worker)
            return 0.0  # what is due next is known now
        return min(LONGEST_WAIT, max(0.0, left))

    def _without_failing(self, schedules: list[Schedule]) -> list[Schedule]:
        """Those that do not wait for their next try."""
        if not self._failing:
            return schedules
        now = self.clock.monotonic()
        waiting = {name for name, one in self._failing.items() if one.again_at > now}
        return [schedule for schedule in schedules if schedule.id not in waiting]

    def _ask_due(self, limit: int) -> Due:
        try:
            return self._store.due_schedules(limit)
        except StoreUnavailable as err:
            told = self._outage.told if self._outage is not None else set()
            self._outage = Outage(str(err), self.clock.now(), told)
            raise

    def _emit_delayed(self, schedules: list[Schedule], now: int) -> None:
        """Name the schedules that were due while the store could not even be asked what was due."""
        if self._outage is None:
            return
        for schedule in schedules:
            if schedule.due_at is not None and schedule.due_at <= self._outage.until:
                self._emit_unfired(schedule, now, self._outage.error)

    def fire_early(self, at: int, worker: IdleWorker) -> None:
        """Fire what is due in a moment, just makes its job, and is awaited; the rest is left for its time."""
        soon = self._store.due_schedules(BATCH, now=at).schedules
        mine = [one for one in soon if self._partition().has(one) and worker.is_idle_for(one.spec.queue)]
        firings = [firing for schedule in mine if (firing := self._plan(schedule, at, plan_early))]
        try:
            fired = self._record(firings)
        except (StoreMoved, StoreUnavailable):
            raise
        except Exception:  # noqa: BLE001 - one that the store cannot digest is found when they are due
            return
        if fired:
            worker.wake()
        for firing, result in zip(firings, fired, strict=True):
            if result.is_accepted:
                self._emit(firing, result, at)

    def fire(self, schedules: list[Schedule], now: int) -> None:
        """Decide about each schedule, and have the decisions recorded: a batch, and the next while that is done."""
        if len(schedules) <= BATCH:
            firings = self._decided(schedules, now)
            self._settle(firings, now, lambda: self._record(firings))
            return
        with BackgroundThread() as background:
            sent: tuple[list[Firing], Future[list[Fired]]] | None = None
            for start in range(0, len(schedules), BATCH):
                firings = self._decided(schedules[start : start + BATCH], now)
                if sent is not None:
                    self._settle(sent[0], now, sent[1].result)
                sent = firings, background.begin(partial(self._record, firings))
            if sent is not None:
                self._settle(sent[0], now, sent[1].result)

    def _decided(self, schedules: list[Schedule], now: int) -> list[Firing]:
        return [firing for schedule in schedules if (firing := self._plan(schedule, now))]

    def _record(self, firings: list[Firing]) -> list[Fired]:
        if not firings:
            return []
        reach("fire.before")
        fired = self._store.fire(firings)
        reach("fire.after")
        return fired

    def _settle(self, firings: list[Firing], now: int, answer: Callable[[], list[Fired]]) -> None:
        """Go by what the store says of a batch."""
        try:
            fired = answer()
        except StoreMoved:
            raise
        except StoreUnavailable as err:
            self._outage = self._outage or Outage(str(err), now, set())
            for firing in firings:
                self._emit_unfired(firing.schedule, now, str(err))
            raise  # nothing was fired, so everything is still due
        except Exception as err:  # noqa: BLE001 - one firing that the store cannot digest must not stop the others
            self._take_apart(firings, now, err)
            return
        if fired and self._worker is not None:
            self._worker.wake()
        for firing, result in zip(firings, fired, strict=True):
            self._emit(firing, result, now)

    def _take_apart(self, firings: list[Firing], now: int, err: Exception) -> None:
        """Fire one by one; the one that fails by itself is tried again later, and in the end set aside."""
        if len(firings) > 1:
            for firing in firings:
                self.fire([firing.schedule], now)
        elif firings:
            self._fail(firings[0].schedule, now, err)

    def _fail(self, schedule: Schedule, now: int, err: Exception) -> None:
        """The store failed at this firing alone: say so, record it, and try again a few times."""
        tries = self._failing.pop(schedule.id, Failing(0, 0.0)).tries + 1
        if tries >= MOST_TRIES:
            self._set_aside(schedule, now, err)
            return
        again_at = self.clock.monotonic() + FIRST_RETRY * 2 ** (tries - 1)
        self._failing[schedule.id] = Failing(tries, again_at)
        error = _words_of(err, schedule)
        self._tell_refused(schedule, now, error, is_fault=True)
        author = Author(record_id=self._new_id(), by="scheduler", verb="could not fire")
        edit = record_fault(schedule, now, error, author)
        if edit is not None:
            self._store.edit_schedules([edit])

    def wait(self, seconds: float) -> None:
        """Listen until shortly before it is time, then wait for the very moment: bells are a millisecond late."""
        if self._listener is None or seconds <= NEAR:
            super().wait(seconds)
        else:
            is_early = self._worker is not None and seconds > EARLY
            self._listener.wait(seconds - (EARLY * 0.9 if is_early else NEAR / 2))

    def wake(self) -> None:
        if self._listener is not None:
            self._listener.wake()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _plan(self, schedule: Schedule, now: int, decide: Decide = plan) -> Firing | None:
        """One bad schedule is set aside with its reason; the others go on."""
        try:
            return decide(schedule, now, self._new_id)
        except Exception as err:  # noqa: BLE001 - whatever was stored, the others must fire
            self._set_aside(schedule, now, err)
            return None

    def _set_aside(self, schedule: Schedule, now: int, err: Exception) -> None:
        problem = _words_of(err, schedule)
        log.error(
            "schedule %s (%s) cannot be fired and is set aside: %s",
            schedule.id,
            schedule.spec.task,
            problem,
            extra={"rota": {"schedule_id": schedule.id, "task": schedule.spec.task, "error": problem}},
        )
        author = Author(record_id=self._new_id(), by="scheduler", verb="set aside")
        self._store.edit_schedules([with_audit(park(schedule, now, problem), schedule, author)])
        self.events.emit("schedule.broken", now, schedule_id=schedule.id, error=problem)

    def _emit(self, firing: Firing, result: Fired, now: int) -> None:
        schedule = firing.schedule
        self._failing.pop(schedule.id, None)
        if not result.is_accepted:
            self._tell_refused(schedule, now, "somebody else fired or edited it first", is_fault=False)
            return
        if result.jobs and self.events.wants("schedule.fired"):
            self.events.emit(
                "schedule.fired",
                now,
                schedule_id=schedule.id,
                task=schedule.spec.task,
                description=schedule.spec.description,
                priority=schedule.spec.priority,
                job_id=result.jobs[-1],
                jobs=result.jobs,
                next_at=None if firing.next_at is None else start_of(schedule, firing.next_at),
            )
        if result.skipped:
            reasons = _reasons(firing, result)
            self.events.emit("schedule.skipped", now, schedule_id=schedule.id, count=result.skipped, reasons=reasons)

    def _emit_unfired(self, schedule: Schedule, now: int, error: str) -> None:
        """Say that a due schedule could not be fired, once per outage; the next turns try again."""
        told = self._outage.told if self._outage is not None else set()
        if schedule.id in told:
            return
        told.add(schedule.id)
        self._tell_refused(schedule, now, error, is_fault=True)

    def _tell_refused(self, schedule: Schedule, now: int, error: str, *, is_fault: bool) -> None:
        """Emit that a due schedule was not fired. A fault is the store's; otherwise another scheduler was first."""
        task = schedule.spec.task
        self.events.emit("schedule.refused", now, schedule_id=schedule.id, task=task, error=error, is_fault=is_fault)


def _words_of(err: Exception, schedule: Schedule) -> str:
    """An error as it is logged and kept: a driver may quote what it could not write, with its secrets."""
    text = f"{type(err).__name__}: {hidden(str(err), DEFAULT.texts(schedule.spec.payload.encode()))}"
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}…"


def _reasons(firing: Firing, result: Fired) -> dict[str, int]:
    """How many occurrences were skipped why, in the few words of `Skip.word`; what neither the plan skipped nor a key
    refused, the live job did."""
    reasons = Counter({OVERLAP: result.skipped - result.unique, UNIQUE: result.unique})
    for skip in firing.skips:
        reasons[skip.word] += skip.count
        reasons[OVERLAP] -= skip.count
    return {word: count for word, count in reasons.items() if count > 0}
