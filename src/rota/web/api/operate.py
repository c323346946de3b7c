"""Serves queues, nodes, numbers, changes and tokens over HTTP: the requests of operators."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from rota.app import internals
from rota.errors import TokenNotFound
from rota.inspector.changes import list_changes
from rota.inspector.facts.change import ChangeFacts, change_facts
from rota.inspector.facts.failure import FailuresFacts, read_failures
from rota.inspector.facts.node import NodeFacts, node_facts
from rota.inspector.facts.queue import QueueFacts, queues_facts
from rota.inspector.facts.series import SeriesFacts, read_series
from rota.inspector.facts.stats import StatsFacts, read_stats
from rota.inspector.facts.token import NewTokenFacts, TokenFacts, new_token_facts, token_facts
from rota.model.token import Role
from rota.store.contract import Page, QueueInfo
from rota.web.route import Ask, Route, Watch
from rota.web.types import DURATION, Body, Duration, Instant, Name, NamesQuery, NotesQuery, Query, ReasonBody

TokenId = Annotated[str, Meta(pattern=r"^[0-9a-f]{12}\Z")]


class QueuePath(Struct, frozen=True):
    """Which queue."""

    queue: Name


class TokenPath(Struct, frozen=True):
    """Which token."""

    token_id: TokenId


class ChangesQuery(NotesQuery, frozen=True, kw_only=True):
    """Which changes."""

    subject: (
        Annotated[
            str,
            Meta(
                pattern=r"^[a-z]{1,20}:[A-Za-z0-9._:-]{1,255}\Z",
                description="what was changed, such as schedule:daily, job:ID, queue:mail, tenant:acme or token:ID",
            ),
        ]
        | None
    ) = None
    since: Instant | None = None
    until: Instant | None = None


class SeriesQuery(Query, frozen=True, kw_only=True):
    """How much of the past."""

    last: Annotated[str, Meta(pattern=DURATION, description="such as 1h or 90m; at most 24h")] = "1h"


class FailuresQuery(Query, frozen=True, kw_only=True):
    """How much of the past."""

    last: Duration = "24h"


class NewTokenBody(Body, frozen=True, kw_only=True):
    """A name, a role, and how long the token is valid."""

    name: Name
    role: Role = "read"
    ttl: Duration | None = None


class QueuesFacts(Struct, kw_only=True):
    """All queues."""

    items: list[QueueFacts]


class NodesFacts(Struct, kw_only=True):
    """All nodes."""

    items: list[NodeFacts]


def list_queues(ask: Ask) -> QueuesFacts:
    store = ask.app.open()
    return QueuesFacts(items=queues_facts(store, store.list_queues()))


def pause_queue(ask: Ask) -> QueueFacts:
    ask.app.queues.pause(ask.path.queue, reason=ask.body.reason, by=ask.by)
    return _queue(ask)


def resume_queue(ask: Ask) -> QueueFacts:
    ask.app.queues.resume(ask.path.queue, by=ask.by)
    return _queue(ask)


def list_nodes(ask: Ask) -> NodesFacts:
    store = ask.app.open()
    now = store.now()
    return NodesFacts(items=[node_facts(node, now) for node in store.list_nodes()])


def get_stats(ask: Ask) -> StatsFacts:
    return read_stats(ask.app.open())


def get_series(ask: Ask) -> SeriesFacts:
    return read_series(ask.app.open(), ask.query.last)


def get_failures(ask: Ask) -> FailuresFacts:
    return read_failures(ask.app.open(), ask.query.last)


def list_all_changes(ask: Ask) -> Page[ChangeFacts]:
    query: ChangesQuery = ask.query
    page = list_changes(
        ask.app.open(),
        internals(ask.app).redaction,
        query.subject,
        since=query.since,
        until=query.until,
        limit=query.limit,
        cursor=query.cursor,
    )
    return Page([change_facts(change) for change in page.items], page.cursor)


def watch_events(ask: Ask) -> Watch:
    ask.app.open()
    return Watch()


def list_tokens(ask: Ask) -> Page[TokenFacts]:
    page = ask.app.tokens.list(limit=ask.query.limit, cursor=ask.query.cursor)
    now = ask.app.open().now()
    return Page([token_facts(token, now) for token in page.items], page.cursor)


def create_token(ask: Ask) -> NewTokenFacts:
    body: NewTokenBody = ask.body
    made = ask.app.tokens.create(body.name, role=body.role, ttl=body.ttl, by=ask.by)
    return new_token_facts(made, ask.app.open().now())


def revoke_token(ask: Ask) -> None:
    if not ask.app.tokens.revoke(ask.path.token_id, by=ask.by):
        raise TokenNotFound(f"no token has the id {ask.path.token_id!r}")


def _queue(ask: Ask) -> QueueFacts:
    name = ask.path.queue
    store = ask.app.open()
    found = (queue for queue in store.list_queues() if queue.name == name)
    return queues_facts(store, [next(found, QueueInfo(name=name))])[0]


_API = "/api/v1"

ROUTES = (
    Route(method="GET", path=f"{_API}/queues", role="read", handle=list_queues, answer=QueuesFacts,
          says="Queues in numbers."),
    Route(method="POST", path=f"{_API}/queues/{{queue}}/pause", role="operate", handle=pause_queue, params=QueuePath,
          body=ReasonBody, answer=QueueFacts,
          says="Pause a queue: workers claim no jobs from it; running jobs continue."),
    Route(method="POST", path=f"{_API}/queues/{{queue}}/resume", role="operate", handle=resume_queue,
          params=QueuePath, answer=QueueFacts, says="Resume a queue."),
    Route(method="GET", path=f"{_API}/nodes", role="read", handle=list_nodes, answer=NodesFacts, says="All nodes."),
    Route(method="GET", path=f"{_API}/stats", role="read", handle=get_stats, answer=StatsFacts,
          says="The store in numbers."),
    Route(method="GET", path=f"{_API}/stats/series", role="read", handle=get_series, query=SeriesQuery,
          answer=SeriesFacts, says="Throughput and latency over time, in at most 120 points."),
    Route(method="GET", path=f"{_API}/failures", role="read", handle=get_failures, query=FailuresQuery,
          answer=FailuresFacts, says="Failed jobs grouped by cause; the newest 1,000 are grouped."),
    Route(method="GET", path=f"{_API}/changes", role="read", handle=list_all_changes, query=ChangesQuery,
          answer=Page[ChangeFacts], says="Who changed what, and when; newest first."),
    Route(method="GET", path=f"{_API}/events", role="read", handle=watch_events, streams="always",
          says="What happens, as server-sent events: counts, job, change, end."),
    Route(method="GET", path=f"{_API}/tokens", role="admin", handle=list_tokens, query=NamesQuery,
          answer=Page[TokenFacts], says="Tokens, without their secrets."),
    Route(method="POST", path=f"{_API}/tokens", role="admin", handle=create_token, body=NewTokenBody, status=201,
          answer=NewTokenFacts, says="Create a token; its secret is shown only now."),
    Route(method="DELETE", path=f"{_API}/tokens/{{token_id}}", role="admin", handle=revoke_token, params=TokenPath,
          status=204, says="Revoke a token; it takes effect at once."),
)  # fmt: skip
