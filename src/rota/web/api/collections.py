"""Starts, shows, lists and cancels tasks of collections kept in sync, over HTTP. Paths and fields are those of
EventNative's contract; both /tasks and /tasks/ answer, without a redirect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from rota.client.sources import MOST_LINES
from rota.errors import CollectionNotFound, SourceNotFound
from rota.inspector.facts.collection import CollectionFacts, SyncTaskFacts, collection_facts, iso, sync_task_facts
from rota.model.sync import Status
from rota.web.refusals import Refusal, code_of
from rota.web.route import Answer, Ask, Route
from rota.web.types import Instant, JobId, Limit, Query, ReasonBody

if TYPE_CHECKING:
    from rota.errors import NotFound

Part = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9]+(-+[A-Za-z0-9]+)*([_.][A-Za-z0-9]+(-+[A-Za-z0-9]+)*)*\Z",
        max_length=100,
        description="letters and digits, with single . _ or - between them",
    ),
]

Position = Annotated[  # MongoDB's have 19 digits
    str, Meta(pattern=r"^([0-9]{1,18}|[1-8][0-9]{18}|9[01][0-9]{17})\Z", description="the cursor of the page before")
]


class SourcesFacts(Struct, kw_only=True):
    """All collections, by source."""

    items: list[CollectionFacts]


class SyncTaskPath(Struct, frozen=True):
    """Which task."""

    task_id: JobId


class SyncTasksQuery(Query, frozen=True, kw_only=True):
    """Which tasks: start and end bound their creation, inclusive."""

    source: Part
    start: Instant
    end: Instant
    status: Status | None = None
    collection: Part | None = None
    limit: Limit = 200
    cursor: Position | None = None


class SyncStartQuery(Query, frozen=True, kw_only=True):
    """Which collection."""

    source: Part
    collection: Part


class SyncLogsQuery(Query, frozen=True, kw_only=True):
    """Which lines: those written from start to end, inclusive."""

    start: Instant | None = None
    end: Instant | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES)] = MOST_LINES


class SyncLine(Struct, kw_only=True):
    """One line that a task wrote: stdout is info, stderr is error, logging has its own levels."""

    time: str
    message: str
    level: str


class SyncTasks(Struct, kw_only=True):
    """Tasks, newest first."""

    tasks: list[SyncTaskFacts]
    cursor: str | None  # where the next page begins


class SyncLogs(Struct, kw_only=True):
    """Lines in the order in which they were written; identical ones are all there."""

    logs: list[SyncLine]


class SyncStarted(Struct, kw_only=True):
    """The task that waits or runs now."""

    task_id: str


def list_sync_tasks(ask: Ask) -> SyncTasks:
    query: SyncTasksQuery = ask.query
    try:
        page = ask.app.sources.tasks(
            query.source,
            query.collection,
            status=query.status,
            start=query.start,
            end=query.end,
            limit=query.limit,
            cursor=query.cursor,
        )
    except (SourceNotFound, CollectionNotFound) as err:
        raise _missing(err) from err
    return SyncTasks(tasks=[sync_task_facts(task) for task in page.items], cursor=page.cursor)


def start_sync_task(ask: Ask) -> Answer:
    try:
        task = ask.app.sources.run(ask.query.source, ask.query.collection, by=ask.by)
    except (SourceNotFound, CollectionNotFound) as err:
        raise _missing(err) from err
    return Answer(SyncStarted(task_id=task.id), 200 if task.existed else 201)


def list_sync_tasks_slash(ask: Ask) -> SyncTasks:
    return list_sync_tasks(ask)


def start_sync_task_slash(ask: Ask) -> Answer:
    return start_sync_task(ask)


def get_sync_task(ask: Ask) -> SyncTaskFacts:
    return sync_task_facts(ask.app.sources.task(ask.path.task_id))


def get_sync_task_logs(ask: Ask) -> SyncLogs:
    query: SyncLogsQuery = ask.query
    lines = ask.app.sources.logs(ask.path.task_id, start=query.start, end=query.end, limit=query.limit)
    return SyncLogs(logs=[SyncLine(time=iso(line.at), message=line.text, level=line.level) for line in lines])


def cancel_sync_task(ask: Ask) -> SyncTaskFacts:
    return sync_task_facts(ask.app.sources.cancel(ask.path.task_id, reason=ask.body.reason, by=ask.by))


def _missing(err: NotFound) -> Refusal:
    field = "source" if isinstance(err, SourceNotFound) else "collection"
    return Refusal(404, code_of(err), str(err), field=field)


def list_sources(ask: Ask) -> SourcesFacts:
    found = [collection for source in ask.app.sources.list() for collection in source.collections]
    return SourcesFacts(items=[collection_facts(collection) for collection in found])


_TASK = "/tasks/{task_id}"
_UNKNOWN = {404: "There is no such source or collection."}
_ALREADY = {200: "One waits or runs already: it is answered.", **_UNKNOWN}

ROUTES = (
    Route(method="GET", path="/api/v1/sources", role="read", handle=list_sources, answer=SourcesFacts,
          says="All sources and their collections."),
    Route(method="GET", path="/tasks", role="read", handle=list_sync_tasks, query=SyncTasksQuery, answer=SyncTasks,
          says="Tasks of a source, newest first.", also=_UNKNOWN),
    Route(method="GET", path="/tasks/", role="read", handle=list_sync_tasks_slash, query=SyncTasksQuery,
          answer=SyncTasks, says="The same as /tasks.", also=_UNKNOWN),
    Route(method="POST", path="/tasks", role="operate", handle=start_sync_task, query=SyncStartQuery,
          answer=SyncStarted, status=201, says="Start a task, unless one waits or runs.", also=_ALREADY),
    Route(method="POST", path="/tasks/", role="operate", handle=start_sync_task_slash, query=SyncStartQuery,
          answer=SyncStarted, status=201, says="The same as /tasks.", also=_ALREADY),
    Route(method="GET", path=_TASK, role="read", handle=get_sync_task, params=SyncTaskPath, answer=SyncTaskFacts,
          says="A task of a collection."),
    Route(method="GET", path=f"{_TASK}/logs", role="read", handle=get_sync_task_logs, params=SyncTaskPath,
          query=SyncLogsQuery, answer=SyncLogs, says="What a task wrote, in order."),
    Route(method="POST", path=f"{_TASK}/cancel", role="operate", handle=cancel_sync_task, params=SyncTaskPath,
          body=ReasonBody, answer=SyncTaskFacts, says="Cancel a task that waits, or ask one that runs to stop.",
          also={409: "the task has ended already"}),
)  # fmt: skip
