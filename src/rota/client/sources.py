"""Defines app.sources: the verbs about collections that are kept in sync, and about their tasks."""

from __future__ import annotations

import heapq
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Unpack, cast

from rota.client.jobs import LogEntry
from rota.errors import BadOption, CollectionNotFound, SourceNotFound, TaskNotFound
from rota.inspector.collection_view import CollectionView, SourceView
from rota.inspector.reading import newest_jobs, sync_schedules
from rota.inspector.sync_task import SyncTask
from rota.keywords import known_keywords_of_verbs
from rota.model.collection import Sync, check_part, collection_of, head_of
from rota.model.micros import check_instant, datetime_of, optional_instant
from rota.model.option_names import FOR_VERBS
from rota.model.schedules.schedule import Schedule
from rota.model.sync import STATES, Status
from rota.operations.collections import CollectionWords, SourceWords, declare_source
from rota.operations.run_now import start_task
from rota.sentences import sentence
from rota.store.contract import LARGEST_PAGE, JobFilter, Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from rota.client.jobs import Jobs
    from rota.model.jobs.job import Job, State
    from rota.model.schedules.schedule import ScheduleSpec
    from rota.store.contract import Store
    from rota.tasks.task import Decorator, Task

MOST_TASKS = 1_000  # in one answer
MOST_LINES = 20_000  # of one task in one answer: more than an attempt may write


Views = list[SourceView]
Lines = list[LogEntry]
Found = list[Schedule]


@known_keywords_of_verbs("app.sources", FOR_VERBS)
class Sources:
    """app.sources"""

    def __init__(
        self,
        store: Callable[[], Store],
        jobs: Jobs,
        new_id: Callable[[], str],
        task_of: Callable[[Any], AbstractContextManager[Task[Any, Any]]],
        makers: dict[str, Callable[[str], ScheduleSpec]],
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._new_id = new_id
        self._task_of = task_of
        self._makers = makers  # the schedules that the app declares: a collection is one of them

    def declare(
        self, name: str, collections: Sequence[str | CollectionWords], **options: Unpack[SourceWords]
    ) -> Decorator:
        """Register a function that is called with (source, collection) to keep each collection in sync."""

        def decorate(function: Any) -> Any:
            with self._task_of(function) as task:
                declare_source(self._makers, name, task, collections, options)
            return task

        return cast("Decorator", decorate)

    def list(self) -> Views:
        """All sources that the store knows, by name, except those that no code declares any more."""
        found = [
            CollectionView(schedule, schedule.spec.sync)
            for schedule in sync_schedules(self._store())
            if schedule.spec.sync is not None and not schedule.origin.is_retired
        ]
        found.sort(key=lambda one: (one.source, one.name))
        return [SourceView(name, [*group]) for name, group in groupby(found, key=lambda one: one.source)]

    def get(self, source: str) -> SourceView:
        """The source of that name; SourceNotFound if there is none."""
        schedules = [one for one in self._schedules(source) if not one.origin.is_retired]
        if not schedules:
            raise SourceNotFound(sentence("missing.source", "no source has the name {source!r}", source=source))
        views = [CollectionView(one, one.spec.sync) for one in schedules if one.spec.sync is not None]
        return SourceView(source, sorted(views, key=lambda one: one.name))

    def run(self, source: str, collection: str, *, by: str = "") -> SyncTask:
        """Start a task immediately, before those of schedules. If one waits or runs already, that one is returned."""
        started = start_task(self._store(), self._find(source, collection), self._new_id, by)
        return SyncTask(started.job, existed=started.existed)

    def task(self, task_id: str) -> SyncTask:
        """The task of that id; TaskNotFound if there is none."""
        found = self._store().get_jobs([task_id])
        if not found or collection_of(found[0]) is None:
            raise TaskNotFound(f"no task has the id {task_id!r}; it may have been kept no longer")
        return SyncTask(found[0])

    def tasks(
        self,
        source: str,
        collection: str | None = None,
        *,
        status: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[SyncTask]:
        """Tasks of a source or of one collection, newest first; start and end bound their creation, inclusive."""
        schedules = self._schedules(source) if collection is None else [self._find(source, collection, is_over=True)]
        if not schedules:
            raise SourceNotFound(sentence("missing.source", "no source has the name {source!r}", source=source))
        limit = max(1, min(limit, MOST_TASKS))
        where = JobFilter(
            states=_states(status),
            since=optional_instant("start", start),
            until=_past_end(end),
        )
        each = [self._newest(schedule.id, where, cursor, limit + 1) for schedule in schedules]
        merged = list(islice(heapq.merge(*each, key=lambda job: -job.seq), limit + 1))
        shown = merged[:limit]
        return Page([SyncTask(job) for job in shown], str(shown[-1].seq) if len(merged) > limit else None)

    def logs(
        self, task_id: str, *, start: datetime | None = None, end: datetime | None = None, limit: int = MOST_LINES
    ) -> Lines:
        """The output and log lines of a task between two instants, inclusive, in order; identical lines are all
        included."""
        self.task(task_id)
        return [*islice(self._lines(task_id, start, end), max(1, min(limit, MOST_LINES)))]

    def cancel(self, task_id: str, *, reason: str = "", by: str = "") -> SyncTask:
        """Cancel a waiting task, or ask a running one to stop; its collection is free once it has ended."""
        self.task(task_id)
        return SyncTask(self._jobs.cancel(task_id, reason=reason, by=by).record)

    def _lines(self, task_id: str, start: datetime | None, end: datetime | None) -> Iterator[LogEntry]:
        last = 0
        since, until = optional_instant("start", start), _past_end(end)
        while True:
            lines = self._store().list_logs(task_id, after=last, start=since, end=until, limit=LARGEST_PAGE)
            yield from (LogEntry(line.number, datetime_of(line.at), line.level, line.text) for line in lines)
            if len(lines) < LARGEST_PAGE:
                return
            last = lines[-1].number

    def _newest(self, schedule_id: str, where: JobFilter, cursor: str | None, limit: int) -> Iterator[Job]:
        return (job for job in newest_jobs(self._store(), schedule_id, where, cursor, limit) if collection_of(job))

    def _schedules(self, source: str) -> Found:
        return [*sync_schedules(self._store(), head_of(check_part("source", source)))]

    def _find(self, source: str, collection: str, *, is_over: bool = False) -> Schedule:
        """The schedule of a collection, also one that no code declares any more if its past is requested."""
        sync = Sync(check_part("source", source), check_part("collection", collection))
        found = self._store().get_schedules([sync.schedule_id])
        if found and found[0].spec.sync is not None and (is_over or not found[0].origin.is_retired):
            return found[0]
        if not any(not one.origin.is_retired for one in self._schedules(source)):
            raise SourceNotFound(sentence("missing.source", "no source has the name {source!r}", source=source))
        raise CollectionNotFound(
            sentence(
                "missing.collection",
                "source {source!r} has no collection {collection!r}",
                source=source,
                collection=collection,
            )
        )


def _states(status: str | None) -> tuple[State, ...]:
    if status is None:
        return ()
    if status not in tuple(Status):
        raise BadOption(f"no task is ever {status!r}; it is {', '.join(Status)}")
    return STATES[Status(status)]


def _past_end(end: datetime | None) -> int | None:
    """An inclusive end as the first instant after it."""
    return None if end is None else check_instant("end", end) + 1
