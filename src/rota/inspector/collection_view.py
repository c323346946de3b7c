"""Shows a collection that is kept in sync, and its source, to callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.inspector.schedule_view import ScheduleView

if TYPE_CHECKING:
    from rota.model.collection import Sync
    from rota.model.schedules.schedule import Schedule


class CollectionView:
    """A collection as it was when it was read, with its schedule."""

    def __init__(self, schedule: Schedule, sync: Sync) -> None:
        self.schedule = ScheduleView(schedule)
        self.source = sync.source
        self.name = sync.collection
        self.keep = sync.keep
        self.priority = schedule.spec.priority
        self.task = schedule.spec.task

    @property
    def is_on_demand(self) -> bool:
        """Whether it is only started by hand."""
        return self.schedule.record.spec.trigger.startswith("once ")

    def __repr__(self) -> str:
        return f"<collection {self.source}/{self.name}>"


class SourceView(NamedTuple):
    """A source and its collections, by name."""

    name: str
    collections: list[CollectionView]
