"""One namespace's collections in one database, all with the same care for what is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson.codec_options import CodecOptions
from pymongo import ReadPreference, WriteConcern

if TYPE_CHECKING:
    from pymongo.collection import Collection
    from pymongo.database import Database

Document = dict[str, Any]

DURABLE = WriteConcern("majority", j=True)  # answered when a majority has it in its journal
QUICK = WriteConcern(1)  # answered at once: a later durable write of the same server covers it
SENT = WriteConcern(0)  # not answered at all


class Space:
    """The collections by what they hold."""

    def __init__(self, database: Database[Document], namespace: str, concern: WriteConcern = DURABLE) -> None:
        self.namespace = namespace
        self.database: Database[Document] = database.with_options(
            codec_options=CodecOptions(), read_preference=ReadPreference.PRIMARY, write_concern=concern
        )
        self.jobs = self.named("job")
        self.schedules = self.named("schedule")
        self.ledger = self.named("ledger")
        self.entries = self.named("entry")
        self.notes = self.named("note")
        self.counts = self.named("count")
        self.nodes = self.named("node")
        self.locks = self.named("lock")
        self.logs = self.named("log")
        self.notifications = self.named("notifications")
        self.meta = self.named("meta")

    def named(self, name: str) -> Collection[Document]:
        return self.database[f"{self.namespace}_{name}"]

    def with_concern(self, concern: WriteConcern) -> Space:
        return Space(self.database, self.namespace, concern)
