"""Guards: what must still be true of a job for a decision about it to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.settle import Change
    from rota.store.mongo.space import Document


def held_by(holder: str) -> Callable[[Change], Document]:
    """Whether this worker still has the lease that its report is about."""
    return lambda change: {"state": "running", "holder": holder, "lease_no": change.job.lease_no}


def is_same(change: Change) -> Document:
    """Whether the job still is what the change was decided on: cancelled and retried meanwhile, its past is longer."""
    was = change.job
    return {"state": was.state.value, "lease_no": was.lease_no, "key": was.key, "past": was.past or None}


def has_lapsed(now: int) -> Callable[[Change], Document]:
    return lambda change: {**is_same(change), "lease_until": {"$lte": now}}
