"""Defines app.jobs: the verbs about existing jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.errors import BadOption, JobNotFound, Refused, ResultTimeout
from rota.inspector.facts.why import JobWhyFacts, job_why_facts
from rota.inspector.surroundings import why_waits
from rota.keywords import known_keywords_of_verbs
from rota.model.jobs.job import State, history_of
from rota.model.jobs.settle import cancel, retry_by_hand
from rota.model.micros import datetime_of, optional_instant, timeout_of
from rota.model.option_names import FOR_VERBS
from rota.model.reasons import reason_by_hand
from rota.operations.audit import RANDOM, AuditedChange, add_audit_records
from rota.sentences import sentence
from rota.store.contract import LARGEST_PAGE, JobFilter, Page, check_limit
from rota.tasks.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta
    from random import Random

    from rota.model.jobs.job import Job as JobRecord
    from rota.store.contract import Store

TRIES = 5  # a job may move while a decision about it is made


class HistoryLine(NamedTuple):
    """One move of a job."""

    state: str
    at: datetime
    reason: str
    data: dict[str, Any] | None


class LogEntry(NamedTuple):
    """One line that a job wrote."""

    number: int
    at: datetime
    level: str
    text: str


History = list[HistoryLine]
Logs = list[LogEntry]


class StoreJobReader:
    """Reads jobs for the handles that `enqueue`, `app.jobs` and `app.schedules` return."""

    def __init__(self, store: Callable[[], Store], decode: Callable[[str, bytes | None], Any]) -> None:
        self._store = store
        self.decode = decode
        self.before_wait: Callable[[JobRecord], None] | None = None  # a kit refuses to wait: nothing would run

    def read(self, job_id: str) -> JobRecord:
        """The job as the store keeps it; JobNotFound if there is none."""
        found = self._store().get_jobs([job_id])
        if not found:
            raise JobNotFound(sentence("missing.job", "no job has the id {job!r}; it may have been pruned", job=job_id))
        return found[0]

    def wait(self, job_id: str, timeout: str | timedelta | float | None = None) -> JobRecord:
        """The job once it has ended. It is read often at first, then less often."""
        deadline = None if timeout is None else time.monotonic() + timeout_of(timeout)
        pause = 0.002
        while not (record := self.read(job_id)).state.is_final:
            if self.before_wait is not None:
                self.before_wait(record)
            if deadline is not None and time.monotonic() >= deadline:
                raise result_timeout(record, timeout)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.25)
        return record


def result_timeout(job: JobRecord, timeout: str | timedelta | float | None) -> ResultTimeout:
    """The error of a caller whose wait for a job's result has ended without one."""
    waited = f"{timeout} s" if isinstance(timeout, (int, float)) else timeout
    err = ResultTimeout(f"job {job.id} ({job.task}) is still {job.state} after {waited}; it goes on")
    err.job_id = job.id
    return err


def _state(name: str) -> State:
    try:
        return State(name)
    except ValueError as err:
        raise BadOption(f"no job is ever {name!r}; states are {', '.join(State)}") from err


@known_keywords_of_verbs("app.jobs", FOR_VERBS)
class Jobs:
    """app.jobs"""

    def __init__(self, store: Callable[[], Store], reader: StoreJobReader, random: Random = RANDOM) -> None:
        self._store = store
        self._reader = reader
        self._random = random  # for the ids of audit records

    def get(self, job_id: str) -> Job[Any]:
        """The job of that id; JobNotFound if there is none."""
        return self._handle(self.read(job_id))

    def list(
        self,
        *,
        state: str | tuple[str, ...] | None = None,
        task: str | None = None,
        queue: str | None = None,
        schedule: str | None = None,
        key: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job[Any]]:
        """Jobs, newest first, a page at a time. `task="mail.*"` matches by prefix."""
        states = (state,) if isinstance(state, str) else state or ()
        where = JobFilter(
            states=tuple(_state(name) for name in states),
            task=task,
            queue=queue,
            schedule_id=schedule,
            key=key,
            since=optional_instant("since", since),
            until=optional_instant("until", until),
        )
        page = self._store().list_jobs(where, cursor=cursor, limit=check_limit(limit))
        return Page([self._handle(record) for record in page.items], page.cursor)

    def history(self, job_id: str) -> History:
        """Every move of a job, oldest first."""
        moves = history_of(self.read(job_id))
        return [HistoryLine(move.state.value, datetime_of(move.at), move.reason, move.data) for move in moves]

    def why(self, job_id: str) -> JobWhyFacts:
        """The state of a job, what it waits for, and what to do: an outcome, a sentence, a fix."""
        return job_why_facts(why_waits(self._store(), self.read(job_id)))

    def logs(
        self,
        job_id: str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        after: int = 0,
        limit: int = LARGEST_PAGE,
    ) -> Logs:
        """The output and log lines of a job, in order: those after the line number `after`, or between two instants."""
        lines = self._store().list_logs(
            job_id,
            after=after,
            start=optional_instant("start", start),
            end=optional_instant("end", end),
            limit=check_limit(limit),
        )
        return [LogEntry(line.number, datetime_of(line.at), line.level, line.text) for line in lines]

    def result(self, job_id: str, *, timeout: str | timedelta | float | None = None) -> Any:
        """The result of a job's task. Waits for it."""
        return Job[Any](self._reader, job_id).result(timeout)

    def wait(self, job_id: str, timeout: str | timedelta | float | None = None) -> JobRecord:
        """The job once it has ended. It is read often at first, then less often."""
        return self._reader.wait(job_id, timeout)

    def cancel(self, job_id: str, *, reason: str = "", by: str = "") -> Job[Any]:
        """Cancel a waiting job immediately; ask a running one to stop. Its history says by whom, and the reason."""
        why = reason_by_hand("cancelled", by, reason)
        store = self._store()
        for _ in range(TRIES):
            record = self.read(job_id)
            if record.state.is_final:
                raise Refused(
                    sentence(
                        "refused.ended", "job {job} has ended already: it is {state}", job=job_id, state=record.state
                    )
                )
            if record.state is State.RUNNING:
                done = bool(store.request_cancels([job_id], why))
            else:
                done = not store.change_jobs([cancel(record, store.now(), why)])
            if done:
                verb = "asked to stop" if record.state is State.RUNNING else "cancelled"
                self.note(job_id, verb, by, {"state": record.state.value}, {"reason": reason or why})
                return self.get(job_id)
        raise Refused(sentence("refused.moving", "job {job} kept moving; try again", job=job_id))

    def retry(self, job_id: str, *, reason: str = "", by: str = "") -> Job[Any]:
        """Put a failed or cancelled job back into its queue, with fresh budgets. Its history says who did, and the
        reason."""
        why = reason_by_hand("retried", by, reason)
        store = self._store()
        record = self.read(job_id)
        if store.change_jobs([retry_by_hand(record, store.now(), why)]):
            raise Refused(
                sentence(
                    "refused.job_changed",
                    "job {job} was changed by somebody else meanwhile; look at it again",
                    job=job_id,
                )
            )
        self.note(job_id, "retried", by, {"state": record.state.value}, {"reason": reason or why})
        return self.get(job_id)

    def delete(self, job_id: str, *, by: str = "") -> None:
        """Remove a job that has ended. Its occurrence, if it has one, stays in the ledger."""
        record = self.read(job_id)
        if not self._store().delete_jobs([job_id]):
            raise Refused(
                sentence(
                    "refused.delete",
                    "job {job} is {state}; cancel it first, then delete it",
                    job=job_id,
                    state=record.state,
                )
            )
        self.note(job_id, "deleted", by, {"state": record.state.value, "task": record.task}, {})

    def note(self, job_id: str, verb: str, by: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Record who changed a job by hand. `app.changes()` and its history of changes show it."""
        add_audit_records(self._store(), "job", [AuditedChange(job_id, verb, before, after)], by, self._random)

    def read(self, job_id: str) -> JobRecord:
        """The job as the store keeps it; JobNotFound if there is none."""
        return self._reader.read(job_id)

    def _handle(self, record: JobRecord) -> Job[Any]:
        return Job(self._reader, record.id, record=record)
