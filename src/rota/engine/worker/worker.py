"""Claims jobs, has executors run them, and settles them: finished jobs and new claims go in one call.

It claims a job for each free slot, and prefetches more if jobs are short: as many as end in about 50 ms. While a batch
runs, the next one is fetched. Long jobs are never prefetched. If many short jobs wait, a second thread exchanges in
parallel, so that the store works on one batch while the worker runs the other.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.background import BackgroundThread
from rota.engine.events import about_change, about_start, event_of, why_returned
from rota.engine.executors.loop import LoopExecutor
from rota.engine.executors.processes import ProcessExecutor, Recycling
from rota.engine.executors.run import Host, Run, success
from rota.engine.executors.sources import refuse_while_loading
from rota.engine.executors.threads import ThreadExecutor
from rota.engine.service import Service
from rota.engine.worker.capacity import MAX_BATCH, Capacity, EarlyRuns, HeldRuns, PrefetchLimit, Quarantine
from rota.engine.worker.exchange_client import ExchangeClient
from rota.errors import StoreError, StoreSealed, StoreUnavailable
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Died, Failed, Returned
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.model.reasons import reason_text
from rota.model.secrets.redaction import DEFAULT, Redaction
from rota.store.contract import Exchange

if TYPE_CHECKING:
    from random import Random

    from rota.background import BackgroundCall
    from rota.engine.events import Events
    from rota.engine.executors import Executor
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.exchange_client import CompletedExchange, Report
    from rota.model.jobs.job import Job
    from rota.model.jobs.outcome import Outcome
    from rota.store.contract import Listener, Refusal, Store
    from rota.tasks.task import Registry

log = logging.getLogger("rota.worker")

FULL_BATCH = 32  # claimed jobs from which on it pays to exchange again at once
POLL = 2.0  # seconds; fallback when a notification is lost
NEAR = 0.002  # seconds before an instant in which notifications of other processes are ignored
SHORT_PAUSE = 0.001  # seconds; the queue is empty, so claimed jobs start, and may end, before the next exchange
TOO_LONG = Returned(reason_text("slow"))


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """Which jobs a worker runs, and how many at once."""

    queues: tuple[str, ...] = ("default",)
    concurrency: int = 16
    lease_for: int = 30 * SECOND
    poll: float = POLL
    early_by: int = 25_000  # microseconds before their time that an idle worker claims jobs: they start on time
    redaction: Redaction = DEFAULT  # what is hidden in the texts of its jobs
    recycle_jobs: int | None = None  # a child process is replaced after so many jobs, …
    recycle_age: int | None = None  # … at this age (microseconds), …
    recycle_memory: int | None = None  # … or with more bytes than this; None: the default of Recycling

    @property
    def recycling(self) -> Recycling:
        usual = Recycling()
        return Recycling(
            jobs=usual.jobs if self.recycle_jobs is None else self.recycle_jobs,
            age=usual.age if self.recycle_age is None else self.recycle_age / SECOND,
            memory=usual.memory if self.recycle_memory is None else self.recycle_memory,
        )


class Executors(NamedTuple):
    """Where a worker's tasks run."""

    threads: Executor
    loop: Executor
    processes: Executor


class Worker(Service):
    """The claiming loop. Its runs are shared with the lease keeper and the log keeper."""

    name = "worker"

    def __init__(
        self,
        store: Store,
        registry: Registry,
        events: Events,
        clock: StoreClock,
        *,
        holder: str,
        settings: WorkerSettings,
        random: Random,
        executors: Executors | None = None,
    ) -> None:
        refuse_while_loading()
        super().__init__(events, clock)
        self.holder = holder
        self.settings = settings
        self.runs = HeldRuns(events, clock)
        self.drained = threading.Event()  # draining, and nothing is left
        self.is_idle = threading.Event()  # nothing to claim, nothing running
        self.executors = executors or Executors(
            threads=ThreadExecutor(settings.concurrency),
            loop=LoopExecutor(),
            processes=ProcessExecutor(settings.concurrency, settings.recycling),
        )
        self._store = store
        self._registry = registry
        self._host = Host(self.report, clock.now, clock.monotonic, end_in=self._end_in, redaction=settings.redaction)
        self._quarantine = Quarantine(self.runs, self._is_apart)
        prefetch = PrefetchLimit(settings.concurrency, clock.monotonic)
        self.capacity = Capacity(self.runs, prefetch, self._quarantine)
        request = Exchange(
            holder=holder, queues=settings.queues, lease_for=settings.lease_for, ahead=settings.early_by, is_idle=True
        )
        self.client = ExchangeClient(store, clock, self.runs, self.capacity, random, request)
        self._early = EarlyRuns()
        self._second_thread = BackgroundThread("rota-worker-2")
        self._second: BackgroundCall[None] | None = None  # the exchanges in parallel, while there are some
        self._is_second_awaited = False
        self._listener: Listener | None = None
        self._starts_claimed = threading.Lock()  # held from taking a job that the store claimed until its run is held
        self._event = threading.Event()

    @property
    def early_by(self) -> int:
        return self.settings.early_by

    @property
    def is_draining(self) -> bool:
        return self.capacity.is_draining

    def turn(self) -> float:
        self._event.clear()
        if self._begin_on_time() or self._begin_claimed():
            return SHORT_PAUSE
        if self.is_sealed and self._store.sealed() is None:
            self.note_unsealed()
        try:
            done = self.client.exchange()
        except StoreSealed as err:
            self.note_sealed(err)
            done = self.client.exchange()  # which claims nothing now, and still settles finished jobs
        except StoreUnavailable:
            self._note_drained()  # nothing is lost: it has no job, and no outcome that the store must record
            raise
        self._apply(done)
        if self._is_full_batch(done):
            self.is_idle.clear()
            self._close_listener()
            self._exchange_in_parallel()
            return 0.0
        has_asked = done.request.want > 0 or self._second is not None
        if self._second is not None:
            self._end_second(self._second)
        if self.is_draining and has_asked:
            return 0.0  # the store may yet claim a job for this worker when one is added; a request for none ends that
        self._return_excess()
        pause = self._pause(done)
        first = self._early.next_at
        return pause if first is None else min(pause, self._until(first))

    def _is_full_batch(self, done: CompletedExchange) -> bool:
        """Whether more short jobs like these wait, so that it pays to exchange again at once."""
        if self.is_draining or self.is_sealed or self._quarantine.is_careful:
            return False
        return len(done.reply.claimed) >= max(FULL_BATCH, done.request.want)

    def _exchange_in_parallel(self) -> None:
        if self._second is not None and self._second.is_done:
            second, self._second = self._second, None
            second.result()  # raises what it raised
        if self._second is None and self.capacity.free() >= FULL_BATCH:
            self._second = self._second_thread.begin(self._exchange_while_full)

    def _exchange_while_full(self) -> None:
        """Runs in the second thread: exchange, as long as batches are full and the loop does the same."""
        while not self._is_second_awaited:
            done = self.client.exchange()
            self._apply(done)
            if not self._is_full_batch(done):
                return

    def _end_second(self, second: BackgroundCall[None]) -> None:
        self._is_second_awaited = True
        try:
            second.result()
        finally:
            self._is_second_awaited = False
            self._second = None

    def _return_excess(self) -> None:
        """Return jobs that were claimed when jobs were short and cannot start soon, because they are long now."""
        if len(self.runs) <= 2 * self.settings.concurrency:
            return
        waiting = self.runs.not_started
        number = self.capacity.prefetch.excess(len(waiting))
        for run in waiting[len(waiting) - number :]:
            run.return_unless_begun(TOO_LONG)

    def _apply(self, done: CompletedExchange) -> None:
        self.settle(done)
        self.dispatch(done.reply.claimed, done.sent_at)
        self.client.confirm_dispatched(done)

    def dispatch(self, jobs: list[Job], sent_at: float | None = None, *, are_due: bool = False) -> None:
        """Start runs for claimed jobs; the claim was sent at that monotonic time.

        Jobs that are due by the store's clock start at once, also if this worker's estimate of that clock is behind.
        """
        is_careful = self._quarantine.inspect(jobs)
        renewed_at = self.clock.monotonic() if sent_at is None else sent_at
        lease_end = renewed_at + self.settings.lease_for / SECOND
        ready: list[Run] = []
        for job in jobs:
            run = Run(job, self._host, renewed_at, lease_end)
            self.runs.hold(run)
            if self.is_draining:
                run.finish(Returned())
                continue
            problem = run.prepare(self._registry)
            if problem is not None:
                run.finish(problem)
                continue
            if not is_careful or not self._quarantine.is_suspect(job):
                ready.append(run)
            elif not self._quarantine.accept(run):
                run.finish(Returned(reason_text("alone")))
        suspect = self._quarantine.release()
        if suspect is not None:
            ready.append(suspect)
        (self._submit if are_due else self._start)(ready)

    def _start(self, runs: list[Run]) -> None:
        """Start runs now, or on time if they were claimed early. (After a clock was set back, none waits.)"""
        now = self.clock.now()
        early = [run for run in runs if now < run.job.run_at <= now + self.early_by]
        for run in early:
            self._early.add(run)
        self._submit([run for run in runs if run not in early] if early else runs)

    def _begin_on_time(self) -> bool:
        """Start the early runs whose time has come; whether there were some."""
        if self._early.next_at is None:
            return False
        runs = self._early.take_due(self.clock.now())
        self._submit(runs)
        return bool(runs)

    def _begin_claimed(self) -> bool:
        """Start a job that the store has claimed for this worker when it was added; whether there was one."""
        listener = self._listener
        if listener is None:
            return False
        with self._starts_claimed:
            jobs = listener.take_claimed(self.holder)
            now, at = self.clock.now(), self.clock.monotonic()
            for job in jobs:
                claimed_at = at - max(0, now - (job.started_at or now)) / SECOND
                if at < claimed_at + self.settings.lease_for / SECOND:  # else the rescuer has it
                    self.is_idle.clear()
                    self.dispatch([job], claimed_at, are_due=True)
        return bool(jobs)

    def _begin_at_once(self) -> None:
        """Start such a job in the listener's thread: the loop need not wake for it."""
        try:
            self._begin_claimed()
        except Exception:
            log.exception("a job that was claimed for this worker could not be started; it runs again later")

    def _submit(self, runs: list[Run]) -> None:
        """Give runs to their executors, those of one executor together."""
        if self.events.wants("job.started"):
            self._emit_started(runs)
        if runs and self.events.are_starts_counted:
            self.events.started([run.job for run in runs], self.clock.now())
        by_executor: dict[Executor, list[Run]] = {}
        for run in runs:
            by_executor.setdefault(self._executor_of(run), []).append(run)
        self.capacity.executors.update(by_executor)
        for executor, mine in by_executor.items():
            _submit_to(executor, mine)

    def _emit_started(self, runs: list[Run]) -> None:
        now = self.clock.now()
        for job in (run.job for run in runs):
            self.events.emit("job.started", now, **about_start(job))

    def is_idle_for(self, queue: str) -> bool:
        """Whether it is idle and waits for jobs of this queue."""
        return self.is_idle.is_set() and queue in self.settings.queues

    @property
    def is_woken(self) -> bool:
        """Whether wake() was called since the last turn began."""
        return self._event.is_set()

    def report(self, run: Run, outcome: Outcome) -> None:
        """A run has ended; any thread may report it."""
        self.capacity.prefetch.count_ended()
        if isinstance(outcome, Failed) and outcome.met_seal and self._finds_store_sealed():
            outcome = Returned(reason_text("copied_store"))
        self.client.report(run, outcome)
        self.wake()

    def drain(self) -> None:
        """Claim no more jobs, and return those that have not started."""
        self.capacity.is_draining = True
        for run in list(self.runs.values()):
            run.return_unless_begun()
        self.wake()

    def return_running(self) -> None:
        """Return all jobs that still run: other workers will run them."""
        for run in list(self.runs.values()):
            run.finish(self._outcome_at_stop(run))
            run.stop("the worker is shutting down")

    def note_sealed(self, err: StoreSealed) -> None:
        self.capacity.is_sealed = True
        super().note_sealed(err)

    def note_unsealed(self) -> None:
        self.capacity.is_sealed = False
        super().note_unsealed()

    def wake(self) -> None:
        if not self._event.is_set():  # a busy worker gets a thousand outcomes a turn; waking it once is enough
            self._event.set()
        if self._listener is not None:
            self._listener.wake()

    def wait(self, seconds: float) -> None:
        """Listen until shortly before the instant, then wait for it exactly: notifications are a millisecond late."""
        until = self.clock.monotonic() + seconds
        listener = self._listener
        if listener is not None and seconds > NEAR and (self._event.is_set() or listener.wait(seconds - NEAR)):
            return
        self._event.wait(max(0.0, until - self.clock.monotonic()))

    def close(self) -> None:
        self._close_listener()
        self._second_thread.close()
        for executor in self.executors:
            executor.stop()

    def _outcome_at_stop(self, run: Run) -> Outcome:
        """The outcome of a run that is stopped. One that blocks its loop would block the next worker's too."""
        loop = self.executors.loop
        if isinstance(loop, LoopExecutor) and loop.blocker is run:
            return Died(
                "its worker was stopped while it blocked the event loop; await what it waits for, or make it a plain "
                "function (def)"
            )
        return Returned()

    def _executor_of(self, run: Run) -> Executor:
        if run.task is not None and run.task.is_async:
            return self.executors.loop
        return self.executors.processes if self._is_apart(run.job) else self.executors.threads

    def _is_apart(self, job: Job) -> bool:
        """Whether it runs in a child process."""
        task = self._registry.find(job.task)
        return task is not None and task.options.executor == "process"

    def _finds_store_sealed(self) -> bool:
        """Whether it was this worker's own store that a task found sealed."""
        try:
            return self._store.sealed() is not None
        except StoreError:
            return False

    def _pause(self, done: CompletedExchange) -> float:
        """How long the loop may sleep: not at all while there is something to do."""
        reply = done.reply
        if reply.claimed or self.client.has_reports:
            self.is_idle.clear()
            if len(reply.claimed) == MAX_BATCH:
                self._close_listener()
            if self.client.has_reports:
                return 0.0
            if len(reply.claimed) < done.request.want:
                return SHORT_PAUSE
            return 0.0 if self.capacity.free() else self.settings.poll
        if self.runs:
            self.is_idle.clear()
        elif self.is_draining:
            self._note_drained()
        elif self.is_sealed or (done.request.want and (reply.next_due_at is None or reply.next_due_at > reply.now)):
            self.is_idle.set()
        if self._listener is None and self.capacity.free():
            self._listener = self._store.listen("jobs")
            self._listener.call_when_claimed(self._begin_at_once)
            return 0.0  # exchange once more: jobs that came before it listened sent no notification to it
        if reply.next_due_at is None or not self.capacity.free():
            return self.settings.poll  # a full worker is woken by the run that ends
        return min(self.settings.poll, self._until_exchange(reply.next_due_at, reply.now, done.request.ahead))

    def _note_drained(self) -> None:
        if self.is_draining and (self._second is None or self._second.is_done):
            with self._starts_claimed:  # the listener's thread may have taken a job
                if not self.runs:
                    self.drained.set()

    def _until_exchange(self, due_at: int, replied_at: int, early_by: int) -> float:
        """Seconds until the next exchange for a job that was not claimed; an idle worker may claim it early."""
        if due_at <= replied_at:
            return SHORT_PAUSE
        is_early = not self.runs and due_at > replied_at + early_by
        return self._until(due_at - self.early_by * 9 // 10 if is_early else due_at)

    def _until(self, instant: int) -> float:
        """Seconds until then, by the store's clock."""
        return max(0.0, (instant - self.clock.now()) / SECOND)

    def _close_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def settle(self, done: CompletedExchange) -> None:
        """Remove the runs whose reports the store has accepted or refused, and emit their events."""
        reports, refusals = done.reports, {refusal.id: refusal for refusal in done.reply.refused}
        if reports and self.events.is_counted:
            self._count_settled(reports, refusals)
        is_success_wanted = self.events.wants("job.succeeded")
        for report in reports:
            refusal = refusals.get(report.change.id)
            if refusal is None and report.change.state is State.SUCCEEDED and not is_success_wanted:
                self.runs.remove(report.run)
                continue
            if refusal is not None and refusal.why == "cancel":
                self.client.report_again(report, refusal.reason)
                continue
            self.runs.remove(report.run)
            was_refused = refusal is not None and not report.run.ended_in  # ended by the task's own transaction
            self._emit(report, was_refused=was_refused)

    def _count_settled(self, reports: list[Report], refusals: dict[str, Refusal]) -> None:
        accepted = [report.change for report in reports if _was_accepted(report, refusals.get(report.change.id))]
        self.events.settled(accepted, self.clock.now())

    def _end_in(self, run: Run, transaction: object, result: object) -> bool:
        """End a run's job with the transaction of its task."""
        outcome = success(result, run)
        keep = run.task is None or run.task.options.keep
        change = settle(run.job, outcome, run.policy, self.clock.now(), 0.0, keep=keep, secrets=run.secrets)
        return self._store.settle_in(transaction, self.holder, change)

    def _emit(self, report: Report, *, was_refused: bool) -> None:
        change = report.change
        name = "job.refused" if was_refused else event_of(change.state, report.outcome)
        if self.events.wants(name):
            self.events.emit(
                name,
                self.clock.now(),
                **about_change(change, why_returned(change.job, report.outcome)),
            )


def _submit_to(executor: Executor, runs: list[Run]) -> None:
    """Give runs to their executor. If it cannot start them, as without a thread left, their jobs are returned: a run
    that is held has its lease renewed for ever."""
    try:
        executor.submit(*runs)
    except BaseException:
        for run in runs:
            run.return_unless_begun()
        raise


def _was_accepted(report: Report, refusal: Refusal | None) -> bool:
    """Whether the job ended as its worker says: by this report, or before it with the task's own transaction."""
    return refusal is None or (report.run.ended_in and refusal.why == "lease")
