"""Locks due documents, hands them to the handler, and writes what becomes of them: one loop for a queue."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.documents.contract import Update, Verdict
from rota.documents.rules import Remove, admit, begin, decide, decide_again, seconds_until
from rota.documents.runs import DocumentRun
from rota.engine.service import Service
from rota.errors import StoreError, StoreSealed, StoreUnavailable
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.documents.contract import LockedDocument, Source, Written
    from rota.documents.reporter import Reporter
    from rota.documents.rules import Decision, Outcome, Timing
    from rota.documents.runs import Caller, Running
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock

log = logging.getLogger("rota.documents")

MAX_BATCH = 500  # documents locked, and ends written, per call
ADOPT_EVERY = 60.0  # seconds between two searches for recurring documents that have no time yet
AFTER_RIVALS = 0.01  # seconds, if other processes took what this one tried to lock; doubled each time in a row
LONGEST_AFTER_RIVALS = 0.64  # seconds; a row may be locked for hours by a transaction of its owner
REFUSED_EVERY = 5.0  # seconds between two tries to write an end that the source refuses
MOST_CHANGES = 10  # times that an owner may change a document between a read and a write, before it is left alone
LAST_LOOK = 0.2  # seconds between two turns of a queue that stops; a handler that ends wakes it at once
LAST_WRITES_FOR = 10.0  # seconds within which a queue that stops tries to write its last ends


class Pace(NamedTuple):
    """How many documents run at once, and how long the loop waits; microseconds."""

    concurrency: int
    lock_for: int
    next_delay: int
    idle_delay: int


class Hooks(NamedTuple):
    """The user's hooks. An error in one of them does not stop the queue."""

    on_idle: Callable[[], None]
    on_stop: Callable[[], None]
    on_fault: Callable[[BaseException], None]  # of the source


class Feeder(Service):
    """In each turn, writes the ends of runs, locks documents for the free slots, and starts their handlers."""

    name = "document queue"

    def __init__(
        self,
        source: Source[Any],
        caller: Caller,
        events: Events,
        clock: StoreClock,
        *,
        running: Running,
        reporter: Reporter,
        pace: Pace,
        timing: Timing,
        hooks: Hooks,
    ) -> None:
        super().__init__(events, clock)
        self.running = running
        self.is_idle = False
        self.caller = caller
        self._source = source
        self._reporter = reporter
        self._pace = pace
        self._timing = timing
        self._hooks = hooks
        self._ended: deque[DocumentRun] = deque()
        self._resting: deque[float] = deque()  # when a slot is free again, if next_delay keeps it
        self._woken = threading.Event()
        self._adopts_at = 0.0
        self._rivals = 0  # times in a row that others took what was due
        self._alone = 0  # ends that are written one by one, because the source refused their batch
        self._refused: list[DocumentRun] = []  # their ends were refused alone; tried again until their locks end
        self._refused_until = 0.0
        self.has_ended = threading.Event()

    # What other threads call.

    def wake(self) -> None:
        self._woken.set()

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)

    def done(self, run: DocumentRun) -> None:
        """A handler has ended, in whatever thread."""
        run.is_over = True
        self._ended.append(run)
        self._woken.set()

    # The loop.

    def turn(self) -> float:
        try:
            return self._turn()
        except StoreError as err:
            if not self._is_away:  # an outage is reported once
                self._hooks.on_fault(err)
            raise

    def _turn(self) -> float:
        self._woken.clear()
        self._write_ends()
        pause = self._lock_more()
        return min(pause, REFUSED_EVERY) if self._refused else pause

    def _lock_more(self) -> float:
        """Lock documents for the free slots and start them; the seconds until the next turn."""
        room = self._room()
        if room <= 0:
            return self._until_a_slot_is_free()
        asked_at = time.monotonic()
        batch = self._source.lock_next(min(room, MAX_BATCH), self._pace.lock_for, self._pace.idle_delay)
        self.clock.sync(batch.now, asked_at)
        for err in batch.refused:
            log.error("%s; the other documents run", err)
            self._hooks.on_fault(err)
        was_overtaken = not batch.documents and batch.next_due is not None and batch.next_due <= batch.now
        self._rivals = self._rivals + 1 if was_overtaken else 0
        if batch.documents:
            self.is_idle = False
            self._begin(batch.documents, batch.now)
            return 0.0
        if was_overtaken:
            return float(min(LONGEST_AFTER_RIVALS, AFTER_RIVALS * 2 ** min(self._rivals - 1, 10)))
        self._adopt()
        self._note_idle()
        pause = self._pace.idle_delay / SECOND
        return pause if batch.next_due is None else min(pause, seconds_until(batch.next_due, self.clock.now()) + 0.001)

    def close(self) -> None:
        """Wait for running handlers, write their ends, and call the user's hook."""
        gives_up_at: float | None = None
        while self.running and (gives_up_at is None or time.monotonic() < gives_up_at):
            self._woken.wait(LAST_LOOK)
            self._woken.clear()
            try:
                self._write_ends()
            except Exception as err:  # noqa: BLE001 - whatever it is, stop() must not wait for ever
                log.warning("%s stops and cannot write what it has done: %s", self._source.name, err)
            if self.running.have_ended and gives_up_at is None:
                gives_up_at = time.monotonic() + LAST_WRITES_FOR
        self.caller.stop()
        self.is_idle = False
        try:
            self._hooks.on_stop()
        finally:  # last: a caller that waits for the end must find that the last hook has run
            self.has_ended.set()

    def _room(self) -> int:
        now = time.monotonic()
        while self._resting and self._resting[0] <= now:
            self._resting.popleft()
        return self._pace.concurrency - len(self.running) - len(self._resting)

    def _until_a_slot_is_free(self) -> float:
        """The seconds until a slot is free, if `next_delay` keeps one. A run that ends wakes the loop."""
        return max(0.0, self._resting[0] - time.monotonic()) if self._resting else 3600.0

    def _begin(self, documents: list[LockedDocument[Any]], now: int) -> None:
        runs = []
        for locked in documents:
            run = DocumentRun(locked, now)
            self.running.add(run)
            refusal = admit(locked, now, self._timing)
            if refusal is None:
                runs.append(run)
                self._reporter.started(run)
            else:
                run.outcome = refusal
                self._ended.append(run)
                run.is_over = True
        if runs:
            self.caller.submit(*runs)

    def _note_idle(self) -> None:
        """Call the hook once per idle period."""
        if self.running or self.is_idle:
            return
        self.is_idle = True
        self._hooks.on_idle()

    def _adopt(self) -> None:
        """Start recurring documents that have no time yet."""
        if time.monotonic() < self._adopts_at:
            return
        self._adopts_at = time.monotonic() + ADOPT_EVERY
        now = self.clock.now()
        adopted = self._source.adopt(MAX_BATCH)
        updates = [one for one in (begin(locked, now, self._timing) for locked in adopted) if isinstance(one, Update)]
        if updates:
            self._source.update(updates)
            self._adopts_at = 0.0  # there may be more

    # Ends.

    def _write_ends(self) -> None:
        self._try_refused_again()
        while self._ended:
            with self.running.writing:
                runs = [self._ended.popleft() for _ in range(1 if self._alone else min(len(self._ended), MAX_BATCH))]
                self._alone = max(0, self._alone - 1)
                try:
                    self._write(runs)
                except BaseException as err:
                    if not self._was_refused(runs, err):
                        raise
                    continue
            self._drop(runs)

    def _was_refused(self, runs: list[DocumentRun], err: BaseException) -> bool:
        """Keep ends that were not written. Whether the source refuses them: one bad document must not stop others."""
        is_refusal = isinstance(err, StoreError) and not isinstance(err, (StoreUnavailable, StoreSealed))
        if is_refusal and len(runs) == 1:
            self._refuse(runs[0], err)
            return True
        for run in runs:
            run.was_sent = True
        self._ended.extendleft(reversed(runs))
        self._alone = len(runs) if is_refusal else 0
        return is_refusal

    def _refuse(self, run: DocumentRun, err: BaseException) -> None:
        """Try again until the lock ends. Then the document is due again, and runs again."""
        run.was_sent = False
        now = self.clock.now()
        if run.locked.locked_until <= now:
            self._reporter.locked_out(run, now, f"its end cannot be written: {err}")
            self._drop([run])
            return
        if not run.was_refused:
            run.was_refused = True
            log.error("%s refuses the end of %r: %s", self._source.name, run.locked.id, err)
            self._hooks.on_fault(err)
        self._refused.append(run)
        self._refused_until = time.monotonic() + REFUSED_EVERY

    def _try_refused_again(self) -> None:
        if self._refused and time.monotonic() >= self._refused_until:
            self._ended.extend(self._refused)
            self._alone = len(self._ended)
            self._refused.clear()

    def _drop(self, runs: list[DocumentRun]) -> None:
        self._rest(len(runs))
        for run in runs:
            self.running.drop(run)

    def _write(self, runs: list[DocumentRun]) -> None:
        now = self.clock.now()
        left = [(run, decide(run.locked, _outcome(run), now, self._timing)) for run in runs if not run.is_lost]
        for run in runs:
            if run.is_lost:
                self._reporter.locked_out(run, self.clock.now(), "its lock was lost while it ran")
        for _ in range(MOST_CHANGES):
            left = self._write_once(left)
            if not left:
                return
        for run, _ in left:
            self._reporter.locked_out(run, self.clock.now(), "its owner changes it all the time")

    def _write_once(self, decided: list[tuple[DocumentRun, Decision]]) -> list[tuple[DocumentRun, Decision]]:
        """Write decisions; those whose document was changed by its owner come back with a new decision."""
        replies = self._send([decision for _, decision in decided])
        now = self.clock.now()
        again: list[tuple[DocumentRun, Decision]] = []
        for (run, decision), reply in zip(decided, replies, strict=True):
            if reply.verdict is Verdict.CHANGED and reply.fresh is not None:
                again.append((run, decide_again(run.locked, reply.fresh, _outcome(run), now, self._timing)))
            elif reply.verdict is Verdict.APPLIED or run.was_sent:
                self._reporter.ended(run, decision, now)
            else:
                self._reporter.locked_out(
                    run, self.clock.now(), "another process holds its lock, or its owner changed or removed it"
                )
        return again

    def _send(self, decisions: list[Decision]) -> list[Written[Any]]:
        updates = [one for one in decisions if isinstance(one, Update)]
        removals = [one.locked for one in decisions if isinstance(one, Remove)]
        updated = iter(self._source.update(updates) if updates else [])
        removed = iter(self._source.remove(removals) if removals else [])
        return [next(removed if isinstance(one, Remove) else updated) for one in decisions]

    def _rest(self, ended: int) -> None:
        if self._pace.next_delay:
            self._resting.extend([time.monotonic() + self._pace.next_delay / SECOND] * ended)


def _outcome(run: DocumentRun) -> Outcome:
    assert run.outcome is not None  # noqa: S101 - it has ended
    return run.outcome
