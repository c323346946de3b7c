"""Turns due schedules into jobs. It asks the store's index what is due, and sleeps until the next due instant.

Any number of schedulers may run: each firing is guarded by the schedule's version, so that two schedulers, killed at
any line, make the same jobs as one.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rota.background import BackgroundThread
from rota.engine.scheduling.partition import TAKE_OVER_AFTER, Partition
from rota.engine.service import LONGEST_PAUSE, Service
from rota.errors import StoreSealed, StoreUnavailable
from rota.failpoints import reach
from rota.model.audit_record import Author
from rota.model.micros import SECOND
from rota.model.schedules.edit import mark_broken, record_fault, with_audit
from rota.model.schedules.firing import Firing, plan, plan_early, start_of
from rota.model.schedules.slots import OVERLAP, UNIQUE
from rota.model.secrets.redaction import DEFAULT, hidden

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.background import BackgroundCall
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Due, Fired, Listener, Store

    Decide = Callable[[Schedule, int, Callable[[], str]], Firing | None]

log = logging.getLogger("rota.scheduler")

BATCH = 200  # schedules whose firings are recorded in one call
LOOK = 5 * BATCH  # schedules read in one turn: memory is bounded by it, however many there are
MOST_TRIES = 5  # attempts at a firing that the store rejects, before its schedule is stopped as broken
FIRST_RETRY = 1.0  # seconds until the second attempt; each next pause is twice as long
LONGEST_ERROR = 2_000  # characters of an error that its schedule keeps
NEAR = 0.004  # seconds before an instant in which notifications are ignored
LONGEST_WAIT = 5.0  # seconds; fallback when a notification is lost or the store's clock jumps


class Outage(NamedTuple):
    """A time in which the store was unavailable."""

    error: str
    until: int  # when it last failed, by what is known of its clock
    reported: set[str]  # the schedules for which a delay was emitted


class Failing(NamedTuple):
    """A schedule whose firing the store rejected, for a reason that is no outage."""

    tries: int
    again_at: float  # monotonic seconds


class IdleWorker(Protocol):
    """A worker in the same process."""

    @property
    def early_by(self) -> int:
        """How long before their time it claims jobs, in microseconds."""

    def is_idle_for(self, queue: str) -> bool:
        """Whether it is idle and waits for jobs of this queue."""

    def wake(self) -> None: ...


class Scheduler(Service):
    """Fires due schedules. A worker in the same process needs no notification, and gets jobs as early as it claims."""

    name = "scheduler"

    def __init__(
        self,
        store: Store,
        events: Events,
        clock: StoreClock,
        new_id: Callable[[], str],
        *,
        worker: IdleWorker | None = None,
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._new_id = new_id
        self._worker = worker
        self._early = worker.early_by / SECOND if worker is not None else 0.0  # seconds
        self.partition = Partition()  # its own part of the due schedules; the heartbeat updates it
        self._listener: Listener | None = None
        self._early_at = 0  # the instant for which schedules were fired early
        self._failing: dict[str, Failing] = {}  # by schedule
        self._outage: Outage | None = None  # since the last successful call

    def turn(self) -> float:
        if self._listener is None:
            self._listener = self._store.listen("schedules")
        if self.is_sealed:
            if self._store.sealed() is not None:
                return LONGEST_PAUSE
            self.note_unsealed()
        asked_at = self.clock.monotonic()
        partition = self.partition
        due = self._ask_due(LOOK * partition.of)
        self.clock.sync(due.now, asked_at)
        if due.schedules:
            mine = self._without_failing(partition.first_due(due.schedules, due.now, LOOK))
            self._emit_delayed(mine, due.now)
            self.fire(mine, due.now)
            self._outage = None
            return 0.0 if mine else TAKE_OVER_AFTER / SECOND
        if due.next_due_at is None:
            return LONGEST_WAIT
        left = (due.next_due_at - self.clock.now()) / SECOND
        if self._worker is not None and left <= self._early and self._early_at != due.next_due_at:
            self._early_at = due.next_due_at
            self.fire_early(due.next_due_at, self._worker)
            return 0.0  # what is due next is known now
        return min(LONGEST_WAIT, max(0.0, left))

    def _without_failing(self, schedules: list[Schedule]) -> list[Schedule]:
        """The schedules that do not wait for their next attempt."""
        if not self._failing:
            return schedules
        now = self.clock.monotonic()
        waiting = {name for name, one in self._failing.items() if one.again_at > now}
        return [schedule for schedule in schedules if schedule.id not in waiting]

    def _ask_due(self, limit: int) -> Due:
        try:
            return self._store.due_schedules(limit)
        except StoreUnavailable as err:
            reported = self._outage.reported if self._outage is not None else set()
            self._outage = Outage(str(err), self.clock.now(), reported)
            raise

    def _emit_delayed(self, schedules: list[Schedule], now: int) -> None:
        """Emit which schedules were due while the store was unavailable."""
        if self._outage is None:
            return
        for schedule in schedules:
            if schedule.due_at is not None and schedule.due_at <= self._outage.until:
                self._emit_unfired(schedule, now, self._outage.error)

    def fire_early(self, at: int, worker: IdleWorker) -> None:
        """Fire schedules of idle queues up to 25 ms early, if they only make a job; the others wait for their time."""
        soon = self._store.due_schedules(BATCH, now=at).schedules
        mine = [one for one in soon if self.partition.has(one) and worker.is_idle_for(one.spec.queue)]
        firings = [firing for schedule in mine if (firing := self._plan(schedule, at, plan_early))]
        try:
            fired = self._record(firings)
        except (StoreSealed, StoreUnavailable):
            raise
        except Exception:  # noqa: BLE001 - a firing that the store rejects is isolated when it is due
            return
        if fired:
            worker.wake()
        for firing, result in zip(firings, fired, strict=True):
            if result.is_accepted:
                self._emit(firing, result, at)

    def fire(self, schedules: list[Schedule], now: int) -> None:
        """Plan each schedule and record the plans in batches; the next batch is planned while one is recorded."""
        if len(schedules) <= BATCH:
            firings = self._decided(schedules, now)
            self._settle(firings, now, lambda: self._record(firings))
            return
        with BackgroundThread() as background:
            sent: tuple[list[Firing], BackgroundCall[list[Fired]]] | None = None
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
        """Handle the store's reply to a batch."""
        try:
            fired = answer()
        except StoreSealed:
            raise
        except StoreUnavailable as err:
            self._outage = self._outage or Outage(str(err), now, set())
            for firing in firings:
                self._emit_unfired(firing.schedule, now, str(err))
            raise  # nothing was fired, so everything is still due
        except Exception as err:  # noqa: BLE001 - one firing that the store rejects must not stop the others
            self._isolate_bad_firing(firings, now, err)
            return
        if fired and self._worker is not None:
            self._worker.wake()
        for firing, result in zip(firings, fired, strict=True):
            self._emit(firing, result, now)

    def _isolate_bad_firing(self, firings: list[Firing], now: int, err: Exception) -> None:
        """Fire one by one. A firing that is rejected alone is tried later; the fifth rejection stops its schedule."""
        if len(firings) > 1:
            for firing in firings:
                self.fire([firing.schedule], now)
        elif firings:
            self._fail(firings[0].schedule, now, err)

    def _fail(self, schedule: Schedule, now: int, err: Exception) -> None:
        """The store rejected this firing alone: emit it, record it, and try again."""
        tries = self._failing.pop(schedule.id, Failing(0, 0.0)).tries + 1
        if tries >= MOST_TRIES:
            self._set_aside(schedule, now, err)
            return
        again_at = self.clock.monotonic() + FIRST_RETRY * 2 ** (tries - 1)
        self._failing[schedule.id] = Failing(tries, again_at)
        error = _words_of(err, schedule)
        self._emit_refused(schedule, now, error, is_fault=True)
        author = Author(record_id=self._new_id(), by="scheduler", verb="could not fire")
        edit = record_fault(schedule, now, error, author)
        if edit is not None:
            self._store.edit_schedules([edit])

    def wait(self, seconds: float) -> None:
        """Listen until shortly before the instant, then wait for it exactly: notifications are a millisecond late."""
        if self._listener is None or seconds <= NEAR:
            super().wait(seconds)
        else:
            is_early = self._worker is not None and seconds > self._early
            self._listener.wait(seconds - (self._early * 0.9 if is_early else NEAR / 2))

    def wake(self) -> None:
        if self._listener is not None:
            self._listener.wake()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _plan(self, schedule: Schedule, now: int, decide: Decide = plan) -> Firing | None:
        """Plan one schedule. If that fails, stop the schedule and record the reason. The others are fired."""
        try:
            return decide(schedule, now, self._new_id)
        except Exception as err:  # noqa: BLE001 - whatever was stored, the others must fire
            self._set_aside(schedule, now, err)
            return None

    def _set_aside(self, schedule: Schedule, now: int, err: Exception) -> None:
        problem = _words_of(err, schedule)
        log.error(
            "schedule %s (%s) cannot be fired and was stopped: %s",
            schedule.id,
            schedule.spec.task,
            problem,
            extra={"rota": {"schedule_id": schedule.id, "task": schedule.spec.task, "error": problem}},
        )
        author = Author(record_id=self._new_id(), by="scheduler", verb="stopped")
        self._store.edit_schedules([with_audit(mark_broken(schedule, now, problem), schedule, author)])
        self.events.emit("schedule.broken", now, schedule_id=schedule.id, error=problem)

    def _emit(self, firing: Firing, result: Fired, now: int) -> None:
        schedule = firing.schedule
        self._failing.pop(schedule.id, None)
        if not result.is_accepted:
            self._emit_refused(schedule, now, "another node fired it first, or it was edited", is_fault=False)
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
            jobs = [shot.job.id for shot in firing.shots if shot.job.ahead is None and shot.job.id in result.jobs]
            self.events.emit(
                "schedule.skipped", now, schedule_id=schedule.id, count=result.skipped, reasons=reasons, jobs=jobs
            )

    def _emit_unfired(self, schedule: Schedule, now: int, error: str) -> None:
        """Emit that a due schedule could not be fired, once per outage; the next turns try again."""
        reported = self._outage.reported if self._outage is not None else set()
        if schedule.id in reported:
            return
        reported.add(schedule.id)
        self._emit_refused(schedule, now, error, is_fault=True)

    def _emit_refused(self, schedule: Schedule, now: int, error: str, *, is_fault: bool) -> None:
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
