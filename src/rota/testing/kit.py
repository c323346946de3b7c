"""Runs the jobs and schedules of an app under test, step by step, in the test's own thread, on the test's clock.

The engine is the real one; only time, the store and the threads are the test's. What happens at one instant happens
in this order: lost jobs are rescued, schedules fire, jobs run.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from rota.app import internals
from rota.engine.executors.run import current_run
from rota.errors import BadOption, Refused
from rota.model.micros import datetime_of
from rota.tasks.job import Job
from rota.testing.clock import ManualClock
from rota.testing.expectations import matching, mismatch
from rota.testing.failures import RunawayJobs
from rota.testing.given_calls import GivenCalls
from rota.testing.kit_store import KitStore
from rota.testing.lost_reports import CrashedAfter, DeliveredTwice
from rota.testing.stepper import Stepper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from rota.app import App
    from rota.model.jobs.job import Job as JobRecord
    from rota.tasks.task import Task
    from rota.testing.failures import Failure
    from rota.testing.lost_reports import LostReports
    from rota.testing.stepper import KitWorker

MOST_AT_ONCE = 10_000  # jobs at one instant


class Kit:
    """`with Kit(app, clock) as kit:` puts the app on a memory store that lives as long as the block.

    `inline` runs a job as soon as it is enqueued. `raise_errors` raises what a task raised inside the test.
    `keep_logs` writes what tasks print to their jobs' logs, as a worker does. Without it, that is output of the test.
    """

    def __init__(
        self,
        app: App,
        clock: ManualClock | None = None,
        *,
        inline: bool = False,
        raise_errors: bool = False,
        keep_logs: bool = False,
    ) -> None:
        self.app = app
        self.clock = clock or ManualClock()
        self._is_inline = inline
        self._raises = raise_errors
        self._keeps_logs = keep_logs
        self._store = KitStore(self.clock)
        self._given = GivenCalls()
        self._stepper: Stepper | None = None
        self._own_store: Any = None

    def __enter__(self) -> Self:
        app = self.app
        if internals(app).store.is_open:
            raise Refused(
                f"{app!r} has its store open already ({app.open().describe()}); a kit gives it another one. "
                "Call app.close() first, and enqueue nothing while modules are imported"
            )
        self._store = KitStore(self.clock)
        self._own_store = internals(app).store.use(self._store)
        internals(app).develop(is_dev=True)
        self._given = GivenCalls()
        if internals(app).middleware:  # which may change the arguments that are stored
            internals(app).middleware.insert(0, self._given)
        self._stepper = Stepper(app, self._store, self.clock, app.settings.lease, keeps_logs=self._keeps_logs)
        try:
            app.open()
            app.schedules.sync()
        except BaseException:
            self._restore_store()
            raise
        self._store.after_adding = self._run_inline if self._is_inline else None
        internals(app).job_reader.before_wait = _refuse_to_wait
        return self

    def __exit__(self, *error: object) -> None:
        self._restore_store()

    # Moving.

    def run_due(self, *, raise_errors: bool | None = None) -> list[Job[Any]]:
        """Run everything that is due now, and what that makes due; return the jobs that ended.

        The clock stands still, except for jobs whose report is lost: it moves to the end of their lease.
        """
        before = len(self._store.ended)
        self._pass_until(self.clock.micros(), raises=raise_errors)
        self._outlast_leases(raises=raise_errors)
        return self._handles(self._store.ended[before:])

    def run_next(self, *, raise_errors: bool | None = None) -> Job[Any] | None:
        """Fire what is due and run one job; None if there is none to run."""
        stepper = self._running()
        stepper.fire()
        job = self._step(stepper, raises=raise_errors) or self._wake(stepper, raises=raise_errors)
        if job is None and stepper.worker.lost:
            self.clock.move_to(min(stepper.worker.lost.values()))
            stepper.fire()
            job = self._step(stepper, raises=raise_errors)
        return None if job is None else next(handle for handle in reversed(self.jobs) if handle.id == job.id)

    def travel(self, duration: str | timedelta, *, raise_errors: bool | None = None) -> list[Job[Any]]:
        """Let time pass, stopping at every instant at which something is due; return the jobs that ended.

        Inside a task, this is the time that the task takes: everything else continues meanwhile.
        """
        end = ManualClock(self.clock.now)
        end.travel(duration)
        return self.travel_to(end.now, raise_errors=raise_errors)

    def travel_to(self, instant: str | datetime, *, raise_errors: bool | None = None) -> list[Job[Any]]:
        """Like `travel`, to an instant."""
        end = ManualClock(self.clock.now)
        end.travel_to(instant)
        before = len(self._store.ended)
        self._pass_until(end.micros(), raises=raise_errors)
        return self._handles(self._store.ended[before:])

    # Reading.

    @property
    def jobs(self) -> list[Job[Any]]:
        """Every job that was ever added, oldest first, also those that were removed at their end."""
        return self._handles(self._store.seen)

    @property
    def failures(self) -> list[Failure]:
        """Every attempt that failed, whatever became of its job."""
        return list(self._running().worker.failures)

    def fired(self, schedule_id: str) -> list[datetime]:
        """The nominal times for which a schedule has made jobs, in order; with look-ahead, also times to come."""
        known = {job.schedule_id for job in self._store.seen} | set(internals(self.app).deploy.names)
        if schedule_id not in known and not self._store.get_schedules([schedule_id]):
            raise BadOption(
                f"no schedule has the id {schedule_id!r}; known are {', '.join(sorted(filter(None, known)))}"
            )
        made = [job.fire_at for job in self._store.seen if job.schedule_id == schedule_id and job.fire_at is not None]
        return [datetime_of(at) for at in sorted(made)]

    def enqueued(self, task: Task[Any, Any] | str | None = None) -> list[Job[Any]]:
        """The jobs that code has enqueued, whether they have run or not, without those that schedules made."""
        jobs = self._handles([job for job in self._store.seen if job.made_by is None])
        return jobs if task is None else matching(jobs, self._task(task), (), {}, self._given.call_of)

    def assert_enqueued(self, task: Task[Any, Any] | str, /, *args: Any, count: int = 1, **kwargs: Any) -> None:
        """Fail unless so many jobs of this task were enqueued, with these arguments, or any if none are given."""
        __tracebackhide__ = True  # pytest shows the test's own line
        wanted, jobs = self._task(task), self.enqueued()
        given = self._given.call_of
        found = len(matching(jobs, wanted, args, kwargs, given))
        if found != count:
            raise AssertionError(mismatch(wanted.name, args, kwargs, count=count, found=found, jobs=jobs, given=given))

    def assert_not_enqueued(self, task: Task[Any, Any] | str, /, *args: Any, **kwargs: Any) -> None:
        """Fail if a job of this task was enqueued (with these arguments, if some are given)."""
        __tracebackhide__ = True
        self.assert_enqueued(task, *args, count=0, **kwargs)

    # Proving that a task may run twice.

    def deliver_twice(self, task: Task[Any, Any] | str) -> LostReports:
        """Each job of this task runs, has its report lost, is rescued when its lease is over, and runs again."""
        return DeliveredTwice(self._running().rules, self._task(task).name)

    def crash_after(self, task: Task[Any, Any] | str, n: int = 1) -> LostReports:
        """The next n runs of this task do their work and die before they report it; their jobs run again."""
        if n < 1:
            raise BadOption(f"n={n!r} must be at least 1")
        return CrashedAfter(self._running().rules, self._task(task).name, n)

    # Parts of these.

    def _pass_until(self, end: int, *, raises: bool | None = None) -> None:
        """Run what is due at every instant from now to `end`. A task that runs beside another one sleeps until then."""
        stepper = self._running()
        if stepper.side_runs.sleep_until(end):
            return
        self._run_all_due(stepper, end, raises=raises)
        while (at := stepper.next_at()) is not None and at <= end:
            self.clock.move_to(at)
            self._run_all_due(stepper, end, raises=raises)
        self.clock.move_to(max(end, self.clock.micros()))

    def _outlast_leases(self, *, raises: bool | None = None) -> None:
        """If a report was lost, let time pass until its job is rescued and has run again."""
        lost = self._running().worker.lost
        while lost:
            self._pass_until(max(lost.values()), raises=raises)

    def _run_all_due(self, stepper: Stepper, end: int, *, raises: bool | None) -> None:
        """Run everything that is due at this instant, and at those to which tasks move the clock.

        If a task has moved it beyond `end`, occurrences after `end` are left for the next call: a task that outlasts
        its interval always makes another one due.
        """
        instant, ran = None, 0
        while ran < MOST_AT_ONCE:
            now = self.clock.micros()
            if now != instant:
                stepper.fire()
                instant, ran = now, ran if now > end else 0
            if not self._do_one(stepper, end, raises=raises):
                return
            ran += 1
        raise RunawayJobs(
            f"{MOST_AT_ONCE:,} jobs ran at {self.clock.now.isoformat()} and there are more; the last to end was of "
            f"{self._store.ended[-1].task}. Does a task enqueue itself without a delay?"
        )

    def _do_one(self, stepper: Stepper, end: int, *, raises: bool | None) -> bool:
        """Do one thing that is due at this instant; False if there is none."""
        is_job_due = self.clock.micros() <= end or self._store.has_due(end)
        return bool(
            (is_job_due and self._step(stepper, raises=raises))
            or self._wake(stepper, raises=raises)
            or stepper.fire()  # a task may have made a schedule due
        )

    def _step(self, stepper: Stepper, *, raises: bool | None, is_inline: bool = False) -> JobRecord | None:
        """Run one job. Inside a task, it runs beside that task, unless the enqueuing itself runs it."""
        with self._raising(stepper.worker, raises=raises):
            return stepper.run_one(is_beside=current_run() is not None and not is_inline)

    def _wake(self, stepper: Stepper, *, raises: bool | None) -> JobRecord | None:
        """Let one job continue whose task has let its time pass."""
        with self._raising(stepper.worker, raises=raises):
            return stepper.wake_one()

    @contextmanager
    def _raising(self, worker: KitWorker, *, raises: bool | None) -> Iterator[None]:
        """Raise what a task raises meanwhile, if it is of the test (Ctrl-C, pytest.fail) or `raises` asks for it."""
        failed_before = len(worker.failures)
        yield
        if worker.interrupts:
            raise worker.interrupts.pop()
        if (self._raises if raises is None else raises) and len(worker.failures) > failed_before:
            raise worker.failures[failed_before].cause

    def _run_inline(self) -> None:
        stepper = self._running()
        while self._step(stepper, raises=None, is_inline=True) is not None:
            pass
        self._outlast_leases()

    def _handles(self, records: list[JobRecord]) -> list[Job[Any]]:
        return [Job(internals(self.app).job_reader, record.id, record=record) for record in records]

    def _task(self, task: Task[Any, Any] | str) -> Task[Any, Any]:
        return internals(self.app).registry.get(task if isinstance(task, str) else task.name)

    def _running(self) -> Stepper:
        if self._stepper is None:
            raise Refused("this kit is not in use; write `with Kit(app, clock) as kit:`")
        return self._stepper

    def _restore_store(self) -> None:
        """Give the app its own store again, unopened, as it was."""
        stepper, self._stepper = self._stepper, None
        if stepper is not None:
            stepper.close()
        self._store.after_adding = None
        internals(self.app).job_reader.before_wait = None
        self.app.close()
        internals(self.app).develop(is_dev=False)
        if self._given in internals(self.app).middleware:
            internals(self.app).middleware.remove(self._given)
        internals(self.app).store.use(self._own_store)


def _refuse_to_wait(job: JobRecord) -> None:
    """Refuse to wait: in a kit only the test makes jobs run, so the wait would never end."""
    raise Refused(
        f"job {job.id} ({job.task}) is {job.state}, and in a kit nothing runs by itself: call kit.run_due(), or "
        "kit.travel(…) to its time, before you ask for the result; Kit(app, inline=True) runs jobs as they are enqueued"
    )
