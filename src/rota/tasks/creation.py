"""Passes requests through the creation middleware of their app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.tasks.middleware import Creation, draft_of, passed_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.tasks.job import Job
    from rota.tasks.middleware import JobDraft, Middleware
    from rota.tasks.task import Request


def create_through(
    middleware: Sequence[Middleware],
    requests: Sequence[Request],
    store: Callable[[Sequence[Request]], list[Job[Any]]],
) -> list[Job[Any]]:
    """Enqueue requests through the middleware."""
    if not requests:
        return store(requests)
    drafts = [
        draft_of(one.payload, task=one.task, queue=one.queue, priority=one.priority, key=one.key) for one in requests
    ]

    def store_drafts(wanted: Sequence[JobDraft]) -> list[Job[Any]]:
        return store([_request_of(*pair) for pair in zip(requests, drafts, wanted, strict=True)])

    return Creation(middleware, drafts, store_drafts).go()


def _request_of(request: Request, given: JobDraft, wanted: JobDraft) -> Request:
    if wanted is given:
        return request
    overrides = request.overrides
    if (wanted.queue, wanted.priority) != (given.queue, given.priority):
        overrides = overrides._replace(queue=wanted.queue, priority=wanted.priority)
    payload = passed_payload(request.payload, given, wanted)
    return msgspec.structs.replace(request, payload=payload, overrides=overrides)
