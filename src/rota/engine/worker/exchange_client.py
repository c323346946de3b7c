"""Sends finished runs to the store and claims new jobs, in one `exchange` call.

Thread-safe. Jobs that were requested but not yet dispatched count against the worker's capacity. If the store is
unavailable or sealed, the same reports are sent again, unchanged, by the next call.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.engine.executors.run import words_of
from rota.engine.worker.log_keeper import flush_lines, flush_progress
from rota.errors import StoreMoved, StoreUnavailable
from rota.failpoints import reach
from rota.model.outcome import Undecodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.executors.run import Run
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.reporter import Report, Reporter
    from rota.store.contract import Exchange, Exchanged, Store

log = logging.getLogger("rota.worker")

BATCH = 300  # jobs told, and wanted, at once: of fewer, much of the price is the waking of threads


class CompletedExchange(NamedTuple):
    """One exchange: what was asked, the reports in it, when it was sent (monotonic), and what came back."""

    ask: Exchange
    reports: list[Report]
    at: float
    reply: Exchanged


class ExchangeClient:
    """Takes what has ended to the store, and brings what it gives."""

    def __init__(
        self,
        store: Store,
        clock: StoreClock,
        reporter: Reporter,
        usual: Callable[[], Exchange],
        *,
        room: Callable[[int], int],
        drop_lost: Callable[[Run], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._reporter = reporter
        self._usual = usual  # who asks, of which queues, for how long
        self._room = room  # how many jobs to want, with so many on their way
        self._drop_lost = drop_lost
        self._unsent: deque[list[Report]] = deque()  # what the store has not answered for
        self._batch = BATCH  # reports sent at once: one, after a batch that the store could not digest
        self._in_transit = 0  # jobs that were asked for, or came and are not dispatched yet
        self._lock = threading.Lock()

    def ask(self) -> CompletedExchange:
        """One exchange with the store; whatever it cannot digest is taken apart."""
        reports = self._take()
        want = self._reserve_capacity()
        came = 0
        try:
            asked = self._exchange(reports, want)
            came = len(asked.reply.claimed)
        finally:
            self._release_capacity(want - came)
        self._batch = min(BATCH, self._batch * 2)
        return asked

    def confirm_dispatched(self, asked: CompletedExchange) -> None:
        """What that exchange brought is dispatched."""
        self._release_capacity(len(asked.reply.claimed))

    def _take(self) -> list[Report]:
        try:
            return self._unsent.popleft()
        except IndexError:
            return self._reporter.take(self._batch, self._clock.now())

    def _reserve_capacity(self) -> int:
        with self._lock:
            want = self._room(self._in_transit)
            self._in_transit += want
        return want

    def _release_capacity(self, number: int) -> None:
        with self._lock:
            self._in_transit -= number

    def _exchange(self, reports: list[Report], want: int) -> CompletedExchange:
        settled = [report.change for report in reports]
        ask = msgspec.structs.replace(self._usual(), settled=settled, want=want)
        at = self._clock.monotonic()
        try:
            self._flush_logs(reports)
            reach("exchange.before")
            reply = self._store.exchange(ask)
        except (StoreUnavailable, StoreMoved):
            self._unsent.append(reports)
            raise
        except Exception as err:
            self._isolate_bad_report(reports, err)
            raise
        self._clock.sync(reply.now, at)
        return CompletedExchange(ask, reports, at, reply)

    def _flush_logs(self, reports: list[Report]) -> None:
        for report in reports:
            if report.run.log is not None or report.run.progress is not None:
                self._flush_log(report.run)

    def _flush_log(self, run: Run) -> None:
        """Lines that the store cannot digest are dropped, and that is told: they must not keep the job from ending."""
        try:
            flush_lines(self._store, run, is_over=True)
            flush_progress(self._store, self._usual().holder, [run])
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("the last lines of job %s (%s) could not be kept", run.job.id, run.job.task)

    def _isolate_bad_report(self, reports: list[Report], err: Exception) -> None:
        """A batch that the store cannot digest: send its reports one by one, and end the one that is to blame."""
        self._batch = 1
        if len(reports) > 1:
            for report in reports:
                self._reporter.put(report.run, report.outcome)
        elif reports and not isinstance(reports[0].outcome, Undecodable):
            self._reporter.put(reports[0].run, Undecodable(f"its end could not be recorded: {words_of(err)}"))
        elif reports:
            self._drop_lost(reports[0].run)  # its lease runs out, and others see to it
