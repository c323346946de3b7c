"""Reads a store and reports what is new since the last read, as server-sent events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.app import internals
from rota.inspector.changes import Change
from rota.inspector.facts.change import change_facts
from rota.inspector.facts.job import LineFacts, line_facts
from rota.inspector.facts.queue import jobs_by_state
from rota.model.jobs.job import State
from rota.model.micros import datetime_of
from rota.store.contract import LARGEST_PAGE, AuditFilter, JobFilter
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rota.app import App
    from rota.model.jobs.job import Job
    from rota.store.contract import Store

NEWEST = 100  # jobs whose moves are reported


class CountsEvent(Struct, kw_only=True):
    """The jobs that are kept, by state, and the nodes that are alive."""

    jobs: dict[str, int]
    paused: list[str]  # queues
    nodes: int


class JobEvent(Struct, kw_only=True):
    """A job that is new, or has moved."""

    id: str
    task: str
    state: State
    queue: str
    schedule_id: str | None
    at: datetime
    progress: str | None


class EndEvent(Struct, kw_only=True):
    """Why a stream ends."""

    reason: str


def event(name: str, data: Any, event_id: int | None = None) -> bytes:
    """One event as its stream carries it."""
    head = b"" if event_id is None else b"id: %d\n" % event_id
    return b"%sevent: %s\ndata: %s\n\n" % (head, name.encode(), msgspec.json.encode(data))


class Watcher:
    """Looks again and again; the first one reports the current state."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._counts: CountsEvent | None = None
        self._jobs: dict[str, tuple[State, str | None]] | None = None
        self._last_audit: str | None = None
        self._has_notes = False

    def look(self) -> bytes:
        """All events since the last look."""
        store = self._app.open()
        return b"".join([*self._count(store), *self._moves(store), *self._changes(store)])

    def standing(self) -> bytes:
        """How things stand, for one who has just begun to listen."""
        return event("counts", self._counts) if self._counts else b""

    def _count(self, store: Store) -> Iterator[bytes]:
        queues, now = store.list_queues(), store.now()
        alive = sum(is_alive(node, now) for node in store.list_nodes())
        paused = sorted(queue.name for queue in queues if queue.is_paused)
        counts = CountsEvent(jobs=jobs_by_state(queues), paused=paused, nodes=alive)
        if counts != self._counts:
            self._counts = counts
            yield event("counts", counts)

    def _moves(self, store: Store) -> Iterator[bytes]:
        """New jobs and moves, of the newest and of those that run."""
        newest = store.list_jobs(JobFilter(), limit=NEWEST).items
        running = store.list_jobs(JobFilter(states=(State.RUNNING,)), limit=NEWEST).items
        found = {job.id: job for job in (*newest, *running)}
        left = [job_id for job_id in self._jobs or {} if job_id not in found and not self._is_over(job_id)]
        found |= {job.id: job for job in store.get_jobs(left[: 2 * NEWEST])}
        before, self._jobs = self._jobs, {job.id: (job.state, job.progress) for job in found.values()}
        if before is not None:
            yield from (_moved(job) for job in reversed(found.values()) if before.get(job.id) != self._jobs[job.id])

    def _is_over(self, job_id: str) -> bool:
        return (self._jobs or {})[job_id][0].is_final

    def _changes(self, store: Store) -> Iterator[bytes]:
        audit_records = store.list_audit_records(AuditFilter(), limit=50).items
        new = []
        for audit in audit_records:
            if audit.id == self._last_audit:
                break
            new.append(audit)
        is_first, self._has_notes = not self._has_notes, True
        self._last_audit = audit_records[0].id if audit_records else None
        if not is_first:
            changes = [Change(audit, internals(self._app).redaction) for audit in reversed(new)]
            yield from (event("change", change_facts(change)) for change in changes)


def new_lines(app: App, after: Mapping[str, int]) -> dict[str, tuple[Sequence[LineFacts], str | None]]:
    """Of each followed job: the lines after a number, and its last state where it has ended and everything was sent."""
    states = {job.id: job.state for job in app.open().get_jobs(list(after))}
    found: dict[str, tuple[Sequence[LineFacts], str | None]] = {}
    for job_id, number in after.items():
        lines = lines_after(app, job_id, number)
        found[job_id] = (lines, _end_of(states.get(job_id)) if len(lines) < LARGEST_PAGE else None)
    return found


def _end_of(state: State | None) -> str | None:
    if state is None:
        return "deleted"
    return state.value if state.is_final else None


def lines_after(app: App, job_id: str, number: int, limit: int = LARGEST_PAGE) -> list[LineFacts]:
    """A page of lines."""
    lines = app.jobs.logs(job_id, after=number, limit=limit)
    return [line_facts(line) for line in lines]


def lines_chunk(lines: Sequence[LineFacts], after: int = 0) -> bytes:
    return b"".join(event("line", line, line.number) for line in lines if line.number > after)


def _moved(job: Job) -> bytes:
    at = job.finished_at or job.started_at or job.queued_at or job.created_at
    fact = JobEvent(
        id=job.id,
        task=job.task,
        state=job.state,
        queue=job.queue,
        schedule_id=job.schedule_id,
        at=datetime_of(at),
        progress=job.progress,
    )
    return event("job", fact)
