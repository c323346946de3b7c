"""Worker: claims jobs, has them run, and reports how they ended: what ended and what is wanted go in one call.

It claims what its free slots can take, and a little more when jobs are short: as much as ends in about 50 ms. While a
batch runs, the next is fetched; long jobs are never hoarded. Where a long line of short jobs waits, a second lane asks
beside the first, so that the store is busy with one batch while the worker is busy with the other.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.engine.executors.loop import LoopExecutor
from rota.engine.executors.processes import ProcessExecutor, Recycling
from rota.engine.executors.run import Host, Run
from rota.engine.executors.runner import success
from rota.engine.executors.sources import refuse_while_loading
from rota.engine.executors.threads import ThreadExecutor
from rota.engine.service import Service
from rota.engine.worker.early import EarlyRuns
from rota.engine.worker.exchange_client import BATCH, ExchangeClient
from rota.engine.worker.prefetch import PrefetchLimit
from rota.engine.worker.quarantine import Quarantine, is_suspect
from rota.engine.worker.reporter import Reporter
from rota.engine.worker.serial_thread import SerialThread
from rota.errors import StoreError, StoreMoved
from rota.model.micros import SECOND
from rota.model.outcome import Died, Failed, GivenBack, TaskUnknown
from rota.model.redaction import DEFAULT, Redaction
from rota.model.settle import settle
from rota.model.state import State
from rota.store.contract import Exchange

if TYPE_CHECKING:
    from random import Random

    from rota.engine.events import Events
    from rota.engine.executors import Executor
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.exchange_client import CompletedExchange
    from rota.engine.worker.reporter import Report
    from rota.model.job import Job
    from rota.model.outcome import Outcome
    from rota.store.contract import Exchanged, Listener, Refusal, Store
    from rota.tasks.task import Registry

log = logging.getLogger("rota.worker")

FULL_BATCH = 32  # jobs that a claim wanted and got: there are more of them, and they are short
POLL = 2.0  # seconds: the net under the bell
AHEAD = 25_000  # microseconds before their time that an idle worker claims jobs, which begin on time then
NEAR = 0.002  # seconds before an instant in which no bell of another process is heard
TOO_LONG = GivenBack("given back: the jobs before it take longer than was thought")
SHORT_PAUSE = 0.001  # seconds: the line is empty, so what was claimed begins, and may end, before the next question


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What a worker works on, and how much at once."""

    queues: tuple[str, ...] = ("default",)
    concurrency: int = 16
    lease_for: int = 30 * SECOND
    poll: float = POLL
    redaction: Redaction = DEFAULT  # what is hidden in the texts of its jobs
    recycle_jobs: int | None = None  # when a child process is replaced: after so many jobs, …
    recycle_age: int | None = None  # … at this age (microseconds), …
    recycle_memory: int | None = None  # … or with more bytes than this; None leaves it at Recycling's own

    @property
    def recycling(self) -> Recycling:
        usual = Recycling()
        return Recycling(
            jobs=usual.jobs if self.recycle_jobs is None else self.recycle_jobs,
            age=usual.age if self.recycle_age is None else self.recycle_age / SECOND,
            memory=usual.memory if self.recycle_memory is None else self.recycle_memory,
        )


class Worker(Service):
    """The claiming loop. Its runs are shared with the lease keeper."""

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
        threads: Executor | None = None,
        loop: Executor | None = None,
        processes: Executor | None = None,
    ) -> None:
        refuse_while_loading()
        super().__init__(events, clock)
        self.holder = holder
        self.settings = settings
        self.runs: dict[str, Run] = {}  # claimed and not yet settled, by job id
        self.is_draining = False
        self.drained = threading.Event()  # draining, and nothing is left
        self.is_idle = threading.Event()  # nothing to claim, nothing running
        self.threads: Executor = threads or ThreadExecutor(settings.concurrency)
        self.loop: Executor = loop or LoopExecutor()
        self.processes: Executor = processes or ProcessExecutor(settings.concurrency, settings.recycling)
        self._store = store
        self._registry = registry
        self._reporter = Reporter(random)
        self._prefetch = PrefetchLimit(settings.concurrency, clock.monotonic)
        self._host = Host(self.report, clock.now, clock.monotonic, end_in=self._end_in, redaction=settings.redaction)
        self._second_thread = SerialThread("rota-worker-2")
        self._client = ExchangeClient(
            store, clock, self._reporter, self._usual, room=self._want, drop_lost=self.drop_lost
        )
        self._quarantine = Quarantine()
        self._early = EarlyRuns()
        self._listener: Listener | None = None
        self._event = threading.Event()

    def turn(self) -> float:
        self._event.clear()
        if self._begin_on_time():
            return SHORT_PAUSE
        if self.is_moved and self._store.sealed() is None:
            self.note_unsealed()
        try:
            asked = self._client.ask()
        except StoreMoved as err:
            self.note_sealed(err)
            asked = self._client.ask()  # wanting nothing any more: what has ended is settled still
        self._apply(asked)
        if self._is_full_batch(asked):
            self.is_idle.clear()
            self._close_listener()
            if self._second_thread.is_free and self._want() >= FULL_BATCH:
                self._second_thread.give(self._exchange_in_parallel)
            return 0.0
        self._second_thread.finish()
        self._give_back_excess()
        pause = self._pause(asked)
        first = self._early.next_at
        return pause if first is None else min(pause, self._until(first))

    def exchange(self) -> Exchanged:
        """Tell the store what ended and take what fits. Where the call fails, the same reports are sent again."""
        asked = self._client.ask()
        self._settle(asked.reports, asked.reply.refused)
        self._client.confirm_dispatched(asked)
        return asked.reply

    def _usual(self) -> Exchange:
        """What every question says. Who has work at hand leaves what is due in a moment to others."""
        return Exchange(
            holder=self.holder,
            queues=self.settings.queues,
            lease_for=self.settings.lease_for,
            ahead=0 if self.runs else AHEAD,
        )

    def _is_full_batch(self, asked: CompletedExchange) -> bool:
        """Whether there are more jobs like these, and short ones: it pays to ask for them at once."""
        claimed = asked.reply.claimed
        is_plain = not (self.is_draining or self.is_moved or self._quarantine.is_careful)
        return is_plain and len(claimed) >= max(FULL_BATCH, asked.ask.want)

    def _exchange_in_parallel(self) -> None:
        """Ask and work off beside the loop, as long as there is a crowd and the loop does the same."""
        while not self._second_thread.is_awaited:
            asked = self._client.ask()
            self._apply(asked)
            if not self._is_full_batch(asked):
                return

    def _give_back_excess(self) -> None:
        """What was claimed when jobs were short, and cannot begin soon because they are long now, is for others."""
        if len(self.runs) <= 2 * self.settings.concurrency:
            return
        waiting = [run for run in self.runs.values() if run.started is None and not run.is_over]
        number = self._prefetch.excess(len(waiting))
        for run in waiting[len(waiting) - number :]:
            run.give_back_unless_begun(TOO_LONG)

    def _apply(self, asked: CompletedExchange) -> None:
        self._settle(asked.reports, asked.reply.refused)
        self.dispatch(asked.reply.claimed, asked.at)
        self._client.confirm_dispatched(asked)

    def dispatch(self, jobs: list[Job], asked_at: float | None = None) -> None:
        """Start runs for claimed jobs, which were asked for at that time (monotonic)."""
        self._quarantine.look_at(jobs)
        is_careful = self._quarantine.is_careful
        renewed_at = self.clock.monotonic() if asked_at is None else asked_at
        lease_end = renewed_at + self.settings.lease_for / SECOND
        ready: list[Run] = []
        for job in jobs:
            older = self.runs.get(job.id)
            if older is not None:
                self.drop_lost(older)  # its lease is gone: the store has just given out a newer one
            run = Run(job, self._host, renewed_at, lease_end)
            self.runs[job.id] = run
            if self.is_draining:
                run.finish(GivenBack())
                continue
            problem = run.prepare(self._registry)
            if problem is not None:
                run.finish(problem)
                continue
            if not is_careful or not is_suspect(job):
                ready.append(run)
            elif not self._quarantine.takes(run):
                run.finish(GivenBack("given back: its next death parks it, so it must run alone"))
        suspect = self._quarantine.release(len(self.runs))
        if suspect is not None:
            ready.append(suspect)
        self._start(ready)

    def _start(self, runs: list[Run]) -> None:
        """Have them begin, now or on time. (A clock that was set back makes nobody wait.)"""
        now = self.clock.now()
        early = [run for run in runs if now < run.job.run_at <= now + AHEAD]
        for run in early:
            self._early.put(run)
        self._submit([run for run in runs if run not in early] if early else runs)

    def _begin_on_time(self) -> bool:
        """Have those begin whose time has come; whether there were some."""
        if self._early.next_at is None:
            return False
        runs = self._early.released(self.clock.now())
        self._submit(runs)
        return bool(runs)

    def _submit(self, runs: list[Run]) -> None:
        """Give runs to their executors, those of one executor together."""
        if self.events.wants("job.started"):
            self._emit_started(runs)
        by_executor: dict[Executor, list[Run]] = {}
        for run in runs:
            by_executor.setdefault(self._executor_of(run), []).append(run)
        for executor, mine in by_executor.items():
            executor.submit(*mine)

    def _emit_started(self, runs: list[Run]) -> None:
        now = self.clock.now()
        for job in (run.job for run in runs):
            self.events.emit("job.started", now, job_id=job.id, task=job.task, attempt=job.attempts + 1)

    def is_idle_for(self, queue: str) -> bool:
        """Whether it has nothing to do but to wait for jobs of this queue."""
        return self.is_idle.is_set() and queue in self.settings.queues

    def report(self, run: Run, outcome: Outcome) -> None:
        """A run has ended; any thread may say so."""
        self._prefetch.ended()
        if isinstance(outcome, Failed) and outcome.met_seal and self._is_sealed():
            outcome = GivenBack("given back: it needed the store, which is being moved")
        self._reporter.put(run, outcome)
        self.wake()

    def drain(self) -> None:
        """Claim no more, and give back what was not begun."""
        self.is_draining = True
        for run in list(self.runs.values()):
            run.give_back_unless_begun()
        self.wake()

    def give_back(self) -> None:
        """Let go of everything that still runs: others will do it."""
        for run in list(self.runs.values()):
            run.finish(self._fate_of(run))
            run.stop("the worker is shutting down")

    def drop_lost(self, run: Run) -> None:
        """A run whose lease is gone: whatever it still does is nobody's business."""
        run.is_over = True
        self._remove(run)
        self.events.emit("job.lost", self.clock.now(), job_id=run.job.id, task=run.job.task)
        run.lose()

    def wake(self) -> None:
        if not self._event.is_set():  # a busy worker is told of a thousand endings a turn; once is enough
            self._event.set()
        if self._listener is not None:
            self._listener.wake()

    def wait(self, seconds: float) -> None:
        """Listen until shortly before it is time, then wait for the very moment: bells are a millisecond late."""
        until = self.clock.monotonic() + seconds
        if (
            self._listener is not None
            and seconds > NEAR
            and (self._event.is_set() or self._listener.wait(seconds - NEAR))
        ):
            return
        self._event.wait(max(0.0, until - self.clock.monotonic()))

    def close(self) -> None:
        self._close_listener()
        self._second_thread.stop()
        self.threads.stop()
        self.loop.stop()
        self.processes.stop()

    def _fate_of(self, run: Run) -> Outcome:
        """What becomes of a run that is let go. One that blocks its loop would block the next one's too, for ever."""
        if isinstance(self.loop, LoopExecutor) and self.loop.blocker is run:
            return Died(
                "its worker was stopped while it blocked the event loop; await what it waits for, or make it a plain "
                "function (def)"
            )
        return GivenBack()

    def _executor_of(self, run: Run) -> Executor:
        if run.task is not None and run.task.is_async:
            return self.loop
        is_apart = run.task is not None and run.task.options.executor == "process"
        return self.processes if is_apart else self.threads

    def _is_sealed(self) -> bool:
        """Whether it was this worker's own store that a task found sealed."""
        try:
            return self._store.sealed() is not None
        except StoreError:
            return False

    def _want(self, coming: int = 0) -> int:
        """How many jobs to claim, with so many on their way."""
        if self.is_draining or self.is_moved:
            return 0
        held = coming + sum(not run.is_over for run in list(self.runs.values()))  # what has ended needs no slot
        return self._quarantine.limit(
            max(0, min(BATCH, self._prefetch.room(held, self.threads.stuck + self.loop.stuck + self.processes.stuck)))
        )

    def _pause(self, asked: CompletedExchange) -> float:
        """How long the loop may sleep: not at all while there is something to do."""
        reply = asked.reply
        if reply.claimed or self._reporter:
            self.is_idle.clear()
            if len(reply.claimed) == BATCH:
                self._close_listener()
            if self._reporter:
                return 0.0
            if len(reply.claimed) < asked.ask.want:
                return SHORT_PAUSE
            return 0.0 if self._want() else self.settings.poll
        if self.runs:
            self.is_idle.clear()
        elif self.is_draining:
            self.drained.set()
        elif self.is_moved or (asked.ask.want and (reply.next_due_at is None or reply.next_due_at > reply.now)):
            self.is_idle.set()
        if self._listener is None and self._want():
            self._listener = self._store.listen("jobs")
            return 0.0  # look once more: what came before the bell was hung did not ring
        if reply.next_due_at is None or not self._want():
            return self.settings.poll  # a full worker is woken by the run that ends
        return min(self.settings.poll, self._until_asking(reply.next_due_at, reply.now, asked.ask.ahead))

    def _until_asking(self, due_at: int, asked_at: int, ahead: int) -> float:
        """Seconds until it is worth asking for a job that did not come; an idle worker may ask ahead of its time."""
        if due_at <= asked_at:
            return SHORT_PAUSE
        is_early = not self.runs and due_at > asked_at + ahead
        return self._until(due_at - AHEAD * 9 // 10 if is_early else due_at)

    def _until(self, instant: int) -> float:
        """Seconds until then, by the store's clock."""
        return max(0.0, (instant - self.clock.now()) / SECOND)

    def _close_listener(self) -> None:
        bell, self._listener = self._listener, None
        if bell is not None:
            bell.close()

    def _settle(self, reports: list[Report], refused: list[Refusal]) -> None:
        refusals = {refusal.id: refusal for refusal in refused}
        if reports and self.events.is_counted:
            self._count_settled(reports, refusals)
        is_success_told = self.events.wants("job.succeeded")
        for report in reports:
            refusal = refusals.get(report.change.id)
            if refusal is None and report.change.state is State.SUCCEEDED and not is_success_told:
                self._remove(report.run)
                continue
            if refusal is not None and refusal.why == "cancel":
                self._reporter.put_back(report, refusal.reason)
                continue
            self._remove(report.run)
            was_refused = refusal is not None and not report.run.ended_in  # ended by the task's own transaction
            self._emit(report, was_refused=was_refused)

    def _count_settled(self, reports: list[Report], refusals: dict[str, Refusal]) -> None:
        taken = [report.change for report in reports if _was_taken(report, refusals.get(report.change.id))]
        self.events.settled(taken, self.clock.now())

    def _end_in(self, run: Run, transaction: object, result: object) -> bool:
        """End a run's job with the transaction of its task."""
        outcome = success(result, run)
        keep = run.task is None or run.task.options.keep
        change = settle(run.job, outcome, run.policy, self.clock.now(), 0.0, keep=keep, secrets=run.secrets)
        return self._store.settle_in(transaction, self.holder, change)

    def _remove(self, run: Run) -> None:
        """Forget this run, and not a newer one of the same job."""
        self._quarantine.release_suspect(run)
        if self.runs.get(run.job.id) is run:
            del self.runs[run.job.id]

    def _emit(self, report: Report, *, was_refused: bool) -> None:
        change, job = report.change, report.change.job
        name = "job.refused" if was_refused else _event_of(change.state, report.outcome)
        if self.events.wants(name):
            self.events.emit(
                name,
                self.clock.now(),
                job_id=job.id,
                task=job.task,
                queue=job.queue,
                priority=job.priority,
                schedule_id=job.schedule_id,
                attempt=change.attempts,
                started_at=job.started_at,
                run_at=change.run_at,
                error=change.error,
                reason=change.cancel_reason or _why_returned(job, report.outcome),
            )


def _why_returned(job: Job, outcome: Outcome) -> str | None:
    """Why a worker gave a job back; None where it did not."""
    match outcome:
        case TaskUnknown():
            return f"task '{job.task}' is unknown to this worker; it is offered again in 30 s"
        case GivenBack(reason):
            return reason
        case _:
            return None


def _was_taken(report: Report, refusal: Refusal | None) -> bool:
    """Whether the job ended as its worker says: by this report, or before it with the task's own transaction."""
    return refusal is None or (report.run.ended_in and refusal.why == "lease")


def _event_of(state: State, outcome: Outcome) -> str:
    match state:
        case State.SUCCEEDED | State.FAILED | State.CANCELLED:
            return f"job.{state}"
        case State.SCHEDULED if type(outcome).__name__ in {"Failed", "RetryAsked"}:
            return "job.retried"
        case State.SCHEDULED if type(outcome).__name__ == "Snoozed":
            return "job.snoozed"
        case _:
            return "job.returned"
