"""APScheduler 3 with its jobs in a SQLite file: what it adds and changes is a commit each."""

from datetime import UTC, datetime, timedelta

from apscheduler.executors.base import BaseExecutor
from apscheduler.schedulers.base import BaseScheduler
from sqlalchemy import event
from timetable import Timetable, main

FAR = datetime(2099, 1, 1, tzinfo=UTC)
NOOP = "apscheduler_schedules:noop"


def noop() -> None: ...


class Quiet(BaseScheduler):
    """Wakes up when it is told to."""

    def wakeup(self) -> None: ...

    def shutdown(self, **_: object) -> None: ...


class Counted(BaseExecutor):
    """Counts what it is given, which is its fastest."""

    jobs = 0

    def _do_submit_job(self, job, _) -> None:
        self.jobs += 1
        self._run_job_success(job.id, [])


class APScheduler(Timetable):
    """One scheduler, started."""

    def __init__(self) -> None:
        self.executor = Counted()
        self.scheduler = Quiet(timezone=UTC)
        self.scheduler.add_executor(self.executor)
        self.scheduler.add_jobstore("sqlalchemy", url="sqlite:///apscheduler.db")
        self.scheduler.start()
        self.engine = self.scheduler._jobstores["default"].engine  # noqa: SLF001

    def add(self, start: int, stop: int) -> None:
        for number in range(start, stop):  # it has no other way
            when = FAR + timedelta(seconds=number * 7919 % 31_536_000)
            self.scheduler.add_job(NOOP, "date", run_date=when, id=f"far-{number}")

    def add_due(self, count: int) -> None:
        now = datetime.now(UTC)
        event.listen(self.engine, "connect", hasty)
        self.engine.dispose()
        for number in range(count):
            self.scheduler.add_job(
                NOOP, "interval", days=1, id=f"due-{number}", next_run_time=now, misfire_grace_time=None
            )
        self.be_durable()

    def fill(self, start: int, stop: int) -> None:
        event.listen(self.engine, "connect", hasty)
        self.engine.dispose()
        self.add(start, stop)
        self.be_durable()

    def be_durable(self) -> None:
        event.remove(self.engine, "connect", hasty)
        self.engine.dispose()

    def wake(self) -> None:
        self.scheduler._process_jobs()  # noqa: SLF001

    def fire(self) -> int:
        self.wake()
        return self.executor.jobs


def hasty(connection, _) -> None:
    connection.execute("PRAGMA synchronous = OFF")


if __name__ == "__main__":
    main(APScheduler)
