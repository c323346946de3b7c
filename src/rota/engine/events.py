"""Carries what happens in the loops to logs, metrics, alerts and hooks: loops emit events, observers subscribe."""

from __future__ import annotations

import logging
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.errors import BadOption
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Died, Returned, TaskUnknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.alerts.incident import Incident
    from rota.model.jobs.job import Job
    from rota.model.jobs.outcome import Outcome
    from rota.model.jobs.settle import Change

log = logging.getLogger("rota.events")

NAMES = frozenset(
    {
        "job.started",
        "job.succeeded",
        "job.failed",
        "job.cancelled",
        "job.retried",
        "job.snoozed",
        "job.returned",  # worker shutdown, or its task is unknown here
        "job.refused",  # a write that came too late
        "job.lost",  # this worker's lease has expired
        "job.rescued",
        "job.enqueued",
        "schedule.fired",
        "schedule.skipped",
        "schedule.refused",  # a firing was refused: another came first, or the store failed
        "schedule.broken",
        "document.started",  # a document was locked, and its handler begins
        "document.done",  # its handler returned, and its next time was written
        "document.failed",  # its handler raised, or its fields cannot be understood; it is tried again at `retry_at`
        "document.ended",  # it was due after its `repeatUntil`, so it did not run
        "document.locked_out",  # its lock was lost or its owner changed it, so nothing was written
        "alert.raised",  # a rule's condition became true, and this node recorded it
        "alert.recovered",  # it is no longer true
        "alert.undelivered",  # a channel did not take a message; it is sent again, unless `is_given_up`
        "store.unavailable",
        "store.back",
        "store.clock_set",  # its clock went ahead or back
        "store.clock_repaired",  # schedules and jobs from a time ahead were moved back
        "store.moved",  # sealed while it is copied to another store, or filled from one
        "service.failed",
        "node.starting",  # a node has an id, and has claimed nothing yet
        "node.started",
        "node.stopped",
        "pruned",
        "tenant.followed",  # schedules follow a tenant whose change another process did not finish
    }
)


class Event(NamedTuple):
    """Something that happened: its name, when (store time, microseconds), and what is known."""

    name: str
    at: int
    data: dict[str, Any]


class Events:
    """The handlers of events. If a handler fails, that is logged, and the others are still called."""

    def __init__(self) -> None:
        self._handlers: tuple[tuple[str, Callable[[Event], None]], ...] = ()
        self._wanted: dict[str, tuple[Callable[[Event], None], ...]] = {}
        self._counters: tuple[Callable[[list[Change], int], None], ...] = ()
        self._start_counters: tuple[Callable[[list[Job], int], None], ...] = ()

    def on(self, pattern: str, handler: Callable[[Event], None]) -> None:
        """Call a handler for every event whose name matches ("job.failed", "job.*")."""
        if not any(fnmatchcase(name, pattern) for name in NAMES):
            raise BadOption(f"no event matches {pattern!r}; known are {', '.join(sorted(NAMES))}")
        self._handlers = (*self._handlers, (pattern, handler))
        self._wanted = {}

    def wants(self, name: str) -> bool:
        """Whether an event of this name has a handler; if not, it need not be built."""
        return bool(self._for(name))

    def count(self, counter: Callable[[list[Change], int], None]) -> None:
        """Call a counter with the reports that the store accepted in one call, and when: cheaper than an event each.

        It gets the jobs as they are stored, with their arguments, so this is no event: no wildcard matches it.
        """
        self._counters = (*self._counters, counter)

    def count_starts(self, counter: Callable[[list[Job], int], None]) -> None:
        """Call a counter with the jobs that this worker starts together, and when."""
        self._start_counters = (*self._start_counters, counter)

    @property
    def are_starts_counted(self) -> bool:
        return bool(self._start_counters)

    @property
    def is_counted(self) -> bool:
        return bool(self._counters)

    def settled(self, changes: list[Change], at: int) -> None:
        for counter in self._counters:
            try:
                counter(changes, at)
            except Exception:
                log.exception("a counter of settled jobs failed")

    def started(self, jobs: list[Job], at: int) -> None:
        for counter in self._start_counters:
            try:
                counter(jobs, at)
            except Exception:
                log.exception("a counter of started jobs failed")

    def emit(self, name: str, at: int, **data: Any) -> None:
        for handler in self._for(name):
            try:
                handler(Event(name, at, data))
            except Exception:
                log.exception("a handler of %s failed", name)

    def _for(self, name: str) -> tuple[Callable[[Event], None], ...]:
        wanted = self._wanted.get(name)
        if wanted is None:
            if name not in NAMES:
                raise LookupError(
                    f"the event {name!r} is not in NAMES, so no handler could subscribe to it; add it there"
                )
            wanted = tuple(handler for pattern, handler in self._handlers if fnmatchcase(name, pattern))
            self._wanted[name] = wanted
        return wanted


def about_start(job: Job) -> dict[str, Any]:
    """What the event `job.started` says."""
    return {"job_id": job.id, "task": job.task, "attempt": job.attempts + 1}


def about_change(change: Change, why_returned: str | None = None) -> dict[str, Any]:
    """What an event about the end of an attempt says."""
    job = change.job
    return {
        "job_id": job.id,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "schedule_id": job.schedule_id,
        "attempt": change.attempts,
        "started_at": job.started_at,
        "run_at": change.run_at,
        "error": change.error,
        "reason": change.cancel_reason or why_returned,
    }


def event_of(state: State, outcome: Outcome) -> str:
    match state:
        case State.SUCCEEDED | State.FAILED | State.CANCELLED:
            return f"job.{state}"
        case State.SCHEDULED if type(outcome).__name__ in {"Failed", "RetryAsked"}:
            return "job.retried"
        case State.SCHEDULED if type(outcome).__name__ == "Snoozed":
            return "job.snoozed"
        case _:
            return "job.returned"


def why_returned(job: Job, outcome: Outcome) -> str | None:
    """Why a worker returned a job; None if it did not."""
    match outcome:
        case TaskUnknown():
            return f"task '{job.task}' is unknown to this worker; it is offered again in 30 s"
        case Returned(reason) | Died(reason):
            return reason
        case _:
            return None


def about_alert(incident: Incident) -> dict[str, Any]:
    """What an event about an incident says."""
    return {
        "alert_id": incident.id,
        "rule": incident.rule,
        "when": incident.when,
        "kind": incident.kind,
        "subject": incident.subject,
        "number": incident.number,
        "text": incident.end_text if incident.state == "ended" else incident.text,
    }
