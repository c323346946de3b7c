"""Defines collections that are kept in sync, and their tasks, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.inspector.facts.values import filled, utc
from rota.model.sync import Status

if TYPE_CHECKING:
    from rota.inspector.collection_view import CollectionView
    from rota.inspector.sync_task import SyncTask


class CollectionFacts(Struct, kw_only=True):
    """A collection."""

    source: str
    collection: str
    task: str
    schedule: str  # in a sentence
    schedule_id: str
    priority: int
    keep: int
    next_run: datetime | None
    last_status: str | None
    last_finished: datetime | None


class SyncTaskFacts(Struct, kw_only=True):
    """A task of a collection. Times are ISO, in UTC; empty until then, as EventNative's contract requires."""

    id: str
    source: str
    collection: str
    priority: int
    created_at: str
    started_at: str
    finished_at: str
    status: Status
    attempts: int
    error: str  # why it failed, or the error of its last attempt


def collection_facts(view: CollectionView) -> CollectionFacts:
    return filled(
        CollectionFacts,
        view,
        collection=view.name,
        schedule=collection_sentence(view),
        schedule_id=view.schedule.id,
        next_run=utc(view.schedule.next_run),
        last_status=view.schedule.last_status,
        last_finished=view.schedule.last_finished,
    )


def collection_sentence(view: CollectionView) -> str:
    return "on demand" if view.is_on_demand else view.schedule.explain()


def sync_task_facts(task: SyncTask) -> SyncTaskFacts:
    return filled(
        SyncTaskFacts,
        task,
        created_at=iso(task.created_at),
        started_at=iso(task.started_at),
        finished_at=iso(task.finished_at),
    )


def iso(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
