"""Turns the real services of a node over one store, step by step, in the caller's thread."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from rota.app import internals
from rota.engine.services import NodeSettings, build_services
from rota.engine.store_clock import StoreClock
from rota.engine.worker.worker import Executors, Worker, WorkerSettings
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Undecodable
from rota.model.micros import SECOND, datetime_of
from rota.tasks.job import Job
from rota.tasks.signals import JobSignal
from rota.testing.failures import Failure
from rota.testing.inline_executor import InlineExecutor
from rota.testing.side_runs import SideRuns

if TYPE_CHECKING:
    from rota.app import App
    from rota.engine.executors.run import Run
    from rota.engine.worker.exchange_client import CompletedExchange
    from rota.model.jobs.job import Job as JobRecord
    from rota.model.jobs.outcome import Outcome
    from rota.tasks.job import JobReader
    from rota.testing.clock import ManualClock
    from rota.testing.kit_store import KitStore
    from rota.testing.lost_reports import LostReports

HOLDER = "kit"
MOST_RUNNING = 1_000  # jobs at a time, each letting time pass


class Stepper:
    """The services of one node, of which the worker, scheduler, rescuer and lease keeper turn on demand."""

    def __init__(self, app: App, store: KitStore, clock: ManualClock, lease_for: int, *, keeps_logs: bool) -> None:
        self._store = store
        self._clock = clock
        self.rules: list[LostReports] = []
        self.side_runs = SideRuns()
        executor = InlineExecutor(
            self._note,
            self._serve_sleeping_runs,
            self.side_runs,
            keeps_logs=keeps_logs,
            run_coroutine=internals(app).run_in_kit,
        )
        work = WorkerSettings(
            concurrency=MOST_RUNNING,
            lease_for=lease_for,
            early_by=0,  # on a manual clock, nothing starts late
            redaction=internals(app).redaction,
        )
        services = build_services(
            store,
            internals(app).registry,
            internals(app).events,
            _ExactClock(clock),
            NodeSettings(work=work),
            node_id=HOLDER,
            random=_Unjittered(),
            executors=Executors(executor, executor, executor),
            worker_type=KitWorker,
        )
        assert isinstance(services.worker, KitWorker)
        assert services.lease_keeper is not None
        assert services.scheduler is not None
        self.worker = services.worker
        self.worker.serve(store, internals(app).job_reader, executor, self.rules)
        self._keeper = services.lease_keeper
        self._scheduler = services.scheduler
        self._rescuer = services.rescuer

    def fire(self) -> bool:
        """Rescue lost jobs and fire every due schedule; return whether one was due."""
        self._serve_sleeping_runs()
        expired = [job_id for job_id, until in self.worker.lost.items() if until <= self._clock.micros()]
        if expired:
            while self._rescuer.turn() == 0.0:
                pass
            for job_id in expired:
                del self.worker.lost[job_id]
        has_fired = False
        while self._scheduler.turn() == 0.0:
            has_fired = True
        return has_fired

    def run_one(self, *, is_beside: bool) -> JobRecord | None:
        """Run the first ready job, and report it. One that runs beside another task may let time pass itself."""
        return self.worker.run_one(is_beside=is_beside)

    def wake_one(self) -> JobRecord | None:
        """Let a run continue that has slept long enough; None if there is none."""
        run = self.side_runs.wake(self._clock.micros())
        self.worker.send_reports()
        return run.job if run else None

    def next_at(self) -> int | None:
        """The next instant at which something is to be done."""
        runs = (run for run in self.worker.runs.values() if run.deadline is not None and not run.is_over)
        instants = [
            self._store.due_schedules(1).next_due_at,
            self.worker.next_due_at,
            self.side_runs.next_at,
            *self.worker.lost.values(),
            *(round((run.deadline or 0) * SECOND) + 1 for run in runs),
        ]
        return min((at for at in instants if at is not None and at > self._clock.micros()), default=None)

    def close(self) -> None:
        self.side_runs.close()
        self._scheduler.close()
        self.worker.close()

    def _serve_sleeping_runs(self) -> None:
        """Renew the leases of jobs whose task lets time pass, and apply their timeouts and cancels."""
        if self.worker.runs:
            self._keeper.turn()

    def _note(self, run: Run, error: BaseException) -> None:
        self.worker.raised[run] = error


class KitWorker(Worker):
    """The real worker, which claims one job at a time, and may die before its report."""

    def serve(self, store: KitStore, reader: JobReader, executor: InlineExecutor, rules: list[LostReports]) -> None:
        """Run the jobs of a kit."""
        self.failures: list[Failure] = []
        self.interrupts: list[BaseException] = []  # Ctrl-C, pytest.fail(): the test's, not the job's
        self.lost: dict[str, int] = {}  # jobs whose report was lost, and when their lease expires
        self.raised: dict[Run, BaseException] = {}  # what tasks raised, until it is reported
        self.next_due_at: int | None = None
        self._reader = reader
        self._kit_store = store
        self._rules = rules
        self._executor = executor
        self.capacity.most = 0  # nothing is claimed but by run_one()

    def run_one(self, *, is_beside: bool) -> JobRecord | None:
        """Claim one job and run it; None if none is due."""
        self.capacity.most = 1
        try:
            done = self._exchange()
        finally:
            self.capacity.most = 0
        self.next_due_at = done.reply.next_due_at
        self._executor.is_beside = is_beside
        self.dispatch(done.reply.claimed)
        self.send_reports()
        return done.reply.claimed[0] if done.reply.claimed else None

    def send_reports(self) -> None:
        while self.client.has_reports:
            self._exchange()

    def _exchange(self) -> CompletedExchange:
        """Exchange for every queue that has a job: a kit serves them all."""
        self.client.request = msgspec.structs.replace(self.client.request, queues=self._kit_store.queues)
        done = self.client.exchange()
        self.settle(done)
        self.client.confirm_dispatched(done)
        return done

    def report(self, run: Run, outcome: Outcome) -> None:
        error = self.raised.pop(run, None)
        if error is not None and _is_the_tests(error):
            self.interrupts.append(error)
        if run.started is not None and any(rule.loses(run) for rule in self._rules):
            self._die(run)
            return
        if isinstance(outcome, (Failed, Undecodable)):
            job = Job[Any](self._reader, run.job.id, record=run.job)
            at = datetime_of(self.clock.now())
            self.failures.append(Failure(job=job, attempt=run.job.attempts + 1, at=at, text=outcome.error, error=error))
        super().report(run, outcome)

    def _die(self, run: Run) -> None:
        """The work is done and its report is lost: the lease expires, and the job is rescued."""
        self.runs.remove(run)
        for job in self._kit_store.get_jobs([run.job.id]):
            if job.state is State.RUNNING and job.lease_until is not None:  # not ended by the task's own transaction
                self.lost[job.id] = job.lease_until


class _ExactClock(StoreClock):
    """The manual clock to the microsecond: nothing passes between two replies."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock.micros, clock.monotonic)

    def now(self) -> int:
        return self._ask()


class _Unjittered(Random):
    """Always 0, so that a back-off lasts as long as it was declared to."""

    def random(self) -> float:
        return 0.0


def _is_the_tests(error: BaseException) -> bool:
    return not isinstance(error, (Exception, JobSignal, SystemExit, GeneratorExit)) and (
        type(error).__name__ != "CancelledError"
    )
