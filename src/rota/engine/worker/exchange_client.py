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
from rota.engine.worker.capacity import MAX_BATCH
from rota.engine.worker.log_keeper import flush_lines, flush_progress
from rota.errors import StoreError, StoreSealed, StoreUnavailable
from rota.failpoints import reach
from rota.model.jobs.outcome import Succeeded, Undecodable
from rota.model.jobs.settle import settle, was_recorded

if TYPE_CHECKING:
    from random import Random

    from rota.engine.executors.run import Run
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.capacity import Capacity, HeldRuns
    from rota.model.jobs.outcome import Outcome
    from rota.model.jobs.settle import Change
    from rota.store.contract import Exchange, Exchanged, Store

log = logging.getLogger("rota.worker")


class Report:
    """A run that has ended and the change that follows; kept until the store has accepted or refused it."""

    __slots__ = ("change", "outcome", "run")

    def __init__(self, run: Run, outcome: Outcome, change: Change) -> None:
        self.run = run
        self.outcome = outcome
        self.change = change


class CompletedExchange(NamedTuple):
    """One exchange: the request, the reports in it, the monotonic time it was sent, and the reply."""

    request: Exchange
    reports: list[Report]
    sent_at: float
    reply: Exchanged


class ExchangeClient:
    """The worker's side of `Store.exchange`."""

    def __init__(
        self, store: Store, clock: StoreClock, runs: HeldRuns, capacity: Capacity, random: Random, request: Exchange
    ) -> None:
        self._store = store
        self._clock = clock
        self._runs = runs
        self._capacity = capacity
        self._random = random
        self.request = request  # the part that all requests share: holder, queues, lease, how early
        self._ended: deque[tuple[Run, Outcome]] = deque()  # not yet decided on
        self._unanswered: deque[list[Report]] = deque()  # batches without a reply
        self._batch = MAX_BATCH  # reports per call: one, after a batch that the store rejected
        self._in_transit = 0  # jobs that were requested, or claimed and not yet dispatched
        self._lock = threading.Lock()

    def report(self, run: Run, outcome: Outcome) -> None:
        """Send this outcome with one of the next exchanges. Any thread may call it."""
        self._ended.append((run, outcome))

    def report_again(self, report: Report, cancel_reason: str) -> None:
        """The job was cancelled while its outcome was on its way: decide again, knowing that."""
        report.run.job = msgspec.structs.replace(report.run.job, cancel_reason=cancel_reason)
        self.report(report.run, report.outcome)

    @property
    def has_reports(self) -> bool:
        return bool(self._ended)

    def exchange(self) -> CompletedExchange:
        """Send one batch of reports and claim as many jobs as the worker has capacity for."""
        is_repeated = bool(self._unanswered)
        reports = self._next_batch()
        wanted = self._reserve_capacity()
        claimed = 0
        try:
            done = self._exchange(reports, wanted)
            if is_repeated and done.reply.refused:
                done = self._without_recorded(done)
            claimed = len(done.reply.claimed)
        finally:
            self._release_capacity(wanted - claimed)
        self._batch = min(MAX_BATCH, self._batch * 2)
        return done

    def confirm_dispatched(self, done: CompletedExchange) -> None:
        """Stop counting the claimed jobs as in transit: the worker has dispatched them."""
        self._release_capacity(len(done.reply.claimed))

    def _next_batch(self) -> list[Report]:
        try:
            return self._unanswered.popleft()
        except IndexError:
            return self._decide(self._clock.now())

    def _decide(self, now: int) -> list[Report]:
        """The next reports, decided at `now`. A run that lost its lease has nothing to report."""
        reports: list[Report] = []
        while self._ended and len(reports) < self._batch:
            run, outcome = self._ended.popleft()
            if not run.is_lost:
                reports.append(Report(run, outcome, self._change(run, outcome, now)))
        return reports

    def _change(self, run: Run, outcome: Outcome, now: int) -> Change:
        keep = run.task is None or run.task.options.keep
        if run.stop_reason is not None and run.job.cancel_reason is None and isinstance(outcome, Succeeded):
            run.job = msgspec.structs.replace(run.job, cancel_reason=run.stop_reason)  # the cancel came too late
        secrets = () if isinstance(outcome, Succeeded) else run.secrets  # a result is redacted when it is shown
        return settle(run.job, outcome, run.policy, now, self._random.random(), keep=keep, secrets=secrets)

    def _reserve_capacity(self) -> int:
        with self._lock:
            wanted = self._capacity.free(self._in_transit)
            self._in_transit += wanted
        return wanted

    def _release_capacity(self, number: int) -> None:
        with self._lock:
            self._in_transit -= number

    def _exchange(self, reports: list[Report], wanted: int) -> CompletedExchange:
        settled = [report.change for report in reports]
        request = msgspec.structs.replace(self._request(len(reports)), settled=settled, want=wanted)
        sent_at = self._clock.monotonic()
        try:
            self._flush_logs(reports)
            reach("exchange.before")
            reply = self._store.exchange(request)
        except (StoreUnavailable, StoreSealed):
            self._unanswered.append(reports)
            raise
        except Exception as err:
            self._isolate_bad_report(reports, err)
            raise
        self._clock.sync(reply.now, sent_at)
        return CompletedExchange(request, reports, sent_at, reply)

    def _without_recorded(self, done: CompletedExchange) -> CompletedExchange:
        """Take back refusals of reports that the first call recorded, whose reply was lost."""
        changes = {report.change.id: report.change for report in done.reports}
        ids = [refusal.id for refusal in done.reply.refused if refusal.why == "lease"]
        try:
            jobs = {job.id: job for job in self._store.get_jobs(ids)}
        except StoreError:  # the reply has new jobs, which must start; the refusals stay
            return done
        recorded = {job_id for job_id in ids if was_recorded(changes[job_id], jobs.get(job_id))}
        refused = [refusal for refusal in done.reply.refused if refusal.id not in recorded]
        return done._replace(reply=msgspec.structs.replace(done.reply, refused=refused))

    def _request(self, number: int) -> Exchange:
        """The request that sends so many reports. A worker with jobs leaves jobs that are due within 25 ms to others.
        One that reports its last runs is idle for jobs that are added next."""
        if not self._runs:
            return self.request
        return msgspec.structs.replace(self.request, ahead=0, is_idle=len(self._runs) <= number)

    def _flush_logs(self, reports: list[Report]) -> None:
        for report in reports:
            if report.run.log is not None or report.run.progress is not None:
                self._flush_log(report.run)

    def _flush_log(self, run: Run) -> None:
        """Write the run's last log lines and progress. Drop what the store rejects: it must not block the outcome."""
        try:
            flush_lines(self._store, run, is_over=True)
            flush_progress(self._store, self.request.holder, [run])
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("the last log lines of job %s (%s) could not be stored", run.job.id, run.job.task)

    def _isolate_bad_report(self, reports: list[Report], err: Exception) -> None:
        """Retry in batches of 1, 2, 4, …. A report that is rejected alone fails its job. If that is rejected too, drop
        the run: its lease expires, and the rescuer takes the job."""
        self._batch = 1
        if len(reports) > 1:
            for report in reports:
                self.report(report.run, report.outcome)
        elif reports and not isinstance(reports[0].outcome, Undecodable):
            self.report(reports[0].run, Undecodable(f"its end could not be recorded: {words_of(err)}"))
        elif reports:
            self._runs.lose(reports[0].run)
