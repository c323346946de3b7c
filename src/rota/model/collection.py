"""Checks the names of sources and collections, and derives the ids of their schedules and tasks. Both directions are
exact, so that an index finds either from the other."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct

from rota.errors import BadName, BadOption

if TYPE_CHECKING:
    from rota.model.jobs.job import Job

LOWEST, HIGHEST = 1, 50  # of a collection's priority
MANUAL = 50  # added to the priority of a sync started by hand: it runs before all that schedules made
KEEP = 100  # tasks of a collection that are kept once they have ended, by default
MOST_KEPT = 100_000
HEAD = "sync__"

_PART = "[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*"
_NAME = re.compile(f"{_PART}(?:[_.]{_PART})*", re.ASCII)
_DOT = "_-_"  # no name has it: a part between two _ never is a lone dash
_LONGEST = 127  # of a schedule's id


class Sync(Struct, frozen=True, array_like=True):
    """Which collection a schedule keeps in sync: at most one of its tasks is live, however it was started."""

    source: str
    collection: str
    keep: int = KEEP  # of its ended tasks, the newest so many stay

    @property
    def schedule_id(self) -> str:
        return f"{head_of(self.source)}{_packed(self.collection)}"

    def task_id(self, fresh: str) -> str:
        """source_collection_UUID, for a fresh id of a job."""
        digest = blake2b(fresh.encode(), digest_size=16).digest()
        return f"{self.source}_{self.collection}_{UUID(bytes=digest, version=4)}"


def check_sync(sync: Sync) -> Sync:
    """Refuse names that no id could be made of, and a number of kept tasks that is none."""
    for kind, name in (("source", sync.source), ("collection", sync.collection)):
        check_part(kind, name)
    if len(sync.schedule_id) > _LONGEST:
        raise BadName(f"{sync.source}/{sync.collection}: both names together are too long; use about 110 characters")
    if isinstance(sync.keep, bool) or not isinstance(sync.keep, int) or not 1 <= sync.keep <= MOST_KEPT:
        raise BadOption(f"keep={sync.keep!r} must be a whole number from 1 to {MOST_KEPT:,}")
    return sync


PART_CHARACTERS = "letters and digits, with single . _ or - between them, 100 characters at most"


def check_part(kind: str, name: object) -> str:
    """The name of a source or of a collection."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > 100:
        raise BadName(f"{kind} name {name!r}: use {PART_CHARACTERS}")
    return name


def check_level(priority: object) -> int:
    """A collection's priority."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not LOWEST <= priority <= HIGHEST:
        raise BadOption(f"priority {priority!r} of a collection must be a whole number from {LOWEST} to {HIGHEST}")
    return priority


def head_of(source: str) -> str:
    """The prefix of the ids of all schedules of a source."""
    return f"{HEAD}{_packed(source)}__"


def sync_of(schedule_id: str | None) -> tuple[str, str] | None:
    """The source and the collection that a schedule's id names; None if it names none."""
    if schedule_id is None or not schedule_id.startswith(HEAD):
        return None
    source, _, collection = schedule_id.removeprefix(HEAD).partition("__")
    return _unpacked(source), _unpacked(collection)


def collection_of(job: Job) -> tuple[str, str] | None:
    """The source and the collection that a job keeps in sync; None if it is another job."""
    names = sync_of(job.schedule_id)
    return names if names is not None and job.id.startswith("_".join((*names, ""))) else None


def _packed(name: str) -> str:
    return name.replace(".", _DOT)


def _unpacked(part: str) -> str:
    return part.replace(_DOT, ".")
