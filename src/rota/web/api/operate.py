"""Queues, nodes, numbers, changes and tokens over HTTP: what an operator asks for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rota.client.queues import QueueView
from rota.client.tokens import Role, TokenView
from rota.errors import TokenNotFound
from rota.inspector.changes import list_changes
from rota.inspector.facts import ChangeFacts, NodeFacts, change_facts, filled, node_facts
from rota.model.micros import datetime_of, optional_datetime
from rota.model.state import State
from rota.store.contract import Page
from rota.store.shared.liveness import is_alive
from rota.web.route import Ask, Route, Watch
from rota.web.types import Body, Duration, Instant, Name, NamesQuery, NotesQuery

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


class NewTokenBody(Body, frozen=True, kw_only=True):
    """For whom, what they may do, and for how long."""

    name: Name
    role: Role = "read"
    ttl: Duration | None = None


class QueueFacts(Struct, kw_only=True):
    """A queue in numbers."""

    name: str
    state: Literal["open", "paused"]
    counts: dict[str, int]  # the jobs that are kept, by state
    totals: dict[str, int]  # jobs that ever ended, by state
    oldest_at: datetime | None  # since when the first in line has been waiting


class QueuesFacts(Struct, kw_only=True):
    """All queues."""

    items: list[QueueFacts]


class NodesFacts(Struct, kw_only=True):
    """All nodes."""

    items: list[NodeFacts]


class StatsFacts(Struct, kw_only=True):
    """The store in numbers; all are kept, none is counted."""

    store: str
    at: datetime
    jobs: dict[str, int]  # that are kept, by state
    totals: dict[str, int]  # that ever ended, by state
    nodes: dict[str, int]  # alive, silent
    running: int  # jobs that live nodes say they run …
    concurrency: int  # … of so many at once
    oldest_at: datetime | None
    oldest_queue: str | None


class TokenFacts(Struct, kw_only=True):
    """A token, without its secret."""

    id: str
    name: str
    role: Role
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    problem: str | None  # why its record cannot be read, if it cannot


class NewTokenFacts(TokenFacts, kw_only=True):
    """A token that was just made. Its secret is shown this once."""

    secret: str


def list_queues(ask: Ask) -> QueuesFacts:
    return QueuesFacts(items=[queue_facts(queue) for queue in ask.app.queues.list()])


def pause_queue(ask: Ask) -> QueueFacts:
    ask.app.queues.pause(ask.path.queue, by=ask.by)
    return _queue(ask)


def resume_queue(ask: Ask) -> QueueFacts:
    ask.app.queues.resume(ask.path.queue, by=ask.by)
    return _queue(ask)


def list_nodes(ask: Ask) -> NodesFacts:
    store = ask.app.open()
    now = store.now()
    return NodesFacts(items=[node_facts(node, now) for node in store.list_nodes()])


def get_stats(ask: Ask) -> StatsFacts:
    store = ask.app.open()
    now, queues, nodes = store.now(), store.list_queues(), store.list_nodes()
    alive = [node for node in nodes if is_alive(node, now)]
    waiting = [queue for queue in queues if queue.oldest_at is not None]
    oldest = min(waiting, key=lambda queue: queue.oldest_at or 0, default=None)
    return StatsFacts(
        store=store.describe(),
        at=datetime_of(now),
        jobs={state.value: sum(queue.counts.get(state.value, 0) for queue in queues) for state in State},
        totals={
            state.value: sum(queue.totals.get(state.value, 0) for queue in queues) for state in State if state.is_final
        },
        nodes={"alive": len(alive), "silent": len(nodes) - len(alive)},
        running=sum(node.running for node in alive),
        concurrency=sum(node.concurrency for node in alive),
        oldest_at=optional_datetime(oldest.oldest_at) if oldest else None,
        oldest_queue=oldest.name if oldest else None,
    )


def list_all_changes(ask: Ask) -> Page[ChangeFacts]:
    query: ChangesQuery = ask.query
    page = list_changes(
        ask.app.open(),
        ask.app.redaction,
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
    return Page([token_facts(view) for view in page.items], page.cursor)


def create_token(ask: Ask) -> NewTokenFacts:
    body: NewTokenBody = ask.body
    made = ask.app.tokens.create(body.name, role=body.role, ttl=body.ttl, by=ask.by)
    return NewTokenFacts(**{name: getattr(made, name) for name in NewTokenFacts.__struct_fields__})


def revoke_token(ask: Ask) -> None:
    if not ask.app.tokens.revoke(ask.path.token_id, by=ask.by):
        raise TokenNotFound(f"no token has the id {ask.path.token_id!r}")


def queue_facts(queue: QueueView) -> QueueFacts:
    return filled(QueueFacts, queue, state="paused" if queue.is_paused else "open")


def token_facts(view: TokenView) -> TokenFacts:
    return TokenFacts(**{name: getattr(view, name) for name in TokenFacts.__struct_fields__})


def _queue(ask: Ask) -> QueueFacts:
    return queue_facts(ask.app.queues.get(ask.path.queue) or QueueView(name=ask.path.queue))


_API = "/api/v1"

ROUTES = (
    Route(method="GET", path=f"{_API}/queues", role="read", handle=list_queues, answer=QueuesFacts,
          says="Queues in numbers."),
    Route(method="POST", path=f"{_API}/queues/{{queue}}/pause", role="operate", handle=pause_queue, params=QueuePath,
          answer=QueueFacts, says="Let no worker take jobs from a queue; what runs goes on."),
    Route(method="POST", path=f"{_API}/queues/{{queue}}/resume", role="operate", handle=resume_queue,
          params=QueuePath, answer=QueueFacts, says="Let workers take jobs from a queue again."),
    Route(method="GET", path=f"{_API}/nodes", role="read", handle=list_nodes, answer=NodesFacts, says="All nodes."),
    Route(method="GET", path=f"{_API}/stats", role="read", handle=get_stats, answer=StatsFacts,
          says="The store in numbers."),
    Route(method="GET", path=f"{_API}/changes", role="read", handle=list_all_changes, query=ChangesQuery,
          answer=Page[ChangeFacts], says="Who changed what, and when; newest first."),
    Route(method="GET", path=f"{_API}/events", role="read", handle=watch_events, streams="always",
          says="What happens, as server-sent events: counts, job, change, end."),
    Route(method="GET", path=f"{_API}/tokens", role="admin", handle=list_tokens, query=NamesQuery,
          answer=Page[TokenFacts], says="Tokens, without their secrets."),
    Route(method="POST", path=f"{_API}/tokens", role="admin", handle=create_token, body=NewTokenBody, status=201,
          answer=NewTokenFacts, says="Make a token; its secret is shown this once."),
    Route(method="DELETE", path=f"{_API}/tokens/{{token_id}}", role="admin", handle=revoke_token, params=TokenPath,
          status=204, says="Let nobody in with a token any more."),
)  # fmt: skip
