"""Defines how a store is copied to another: it is sealed and exports its records, and the other store imports them.

A sealed store refuses new work and changes of waiting jobs. Jobs that run may still end. Once no job runs, the store no
longer changes. So it can be copied page by page, and a copy that was killed can continue. The store that is being
filled is sealed too: no job runs there before all records have arrived.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.errors import StoreSealed
from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import Job
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract.values import LogLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract.values import Page

Part = Literal["queues", "locks", "entries", "audit_records", "schedules", "occurrences", "jobs", "logs"]


class Seal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a store during a copy: it is being copied to another store, or filled from one."""

    target: str  # for people: no secrets
    source: str = ""  # where this store is the one that is being filled: from which other one
    id: str = ""  # of the move: both stores' seals have the same
    is_done: bool = False  # all was copied; until then it may be unsealed without loss
    at: int = 0

    def refusal(self, store: str) -> StoreSealed:
        """The error of a sealed store for a call that adds or requests work."""
        if self.source:
            return StoreSealed(
                f"{store} is being filled from {self.source} and takes no work before all is there; wait until "
                "`rota copy` has ended, and start it again where it was stopped"
            )
        if self.is_done:
            return StoreSealed(f"all that {store} held was copied to {self.target}; restart with the URL of that store")
        return StoreSealed(
            f"{store} is being copied to {self.target} and takes no more work; restart with the URL of that store once "
            "`rota copy` has ended, or call the move off with `rota copy --undo --from URL --namespace NAME`, with the "
            "URL and the namespace of the store that is being copied"
        )


class Removal(Struct, frozen=True, kw_only=True):
    """How to remove a namespace, and nothing that Rota did not make. For people."""

    words: str  # an instruction that names its tables, collections, schema or keys
    whole: str = ""  # an instruction for the whole place, if the store has looked and found only what Rota made


class QueueRecord(Struct, frozen=True, kw_only=True):
    """The fields of a queue beside its jobs."""

    name: str
    is_paused: bool = False
    totals: dict[str, int] = {}


class LockRecord(Struct, frozen=True, kw_only=True):
    """A lock's name and its last fencing number, which must go on rising."""

    name: str
    number: int


Record = QueueRecord | LockRecord | Entry | AuditRecord | Schedule | Occurrence | Job | LogLine


class MovingVerbs(ABC):
    """Moving: everything that a store holds, out of one and into another."""

    @abstractmethod
    def seal(self, seal: Seal | None) -> None:
        """Take no more work (None: take it again).

        On a sealed store these raise `seal.refusal(self.describe())`, in the same step that would have written:
        add_jobs, add_jobs_in, edit_schedules, edit_entries, fire, an exchange that wants jobs (its settled ones are
        then not taken either), change_jobs, delete_jobs, pause_queue, prune, acquiring a lock. What runs may still be
        settled (also in a transaction), extended, asked to stop, rescued and logged; what it held back is released;
        nodes may record heartbeats; audit records may be added; everything may be read; and records may be loaded.
        """

    @abstractmethod
    def sealed(self) -> Seal | None:
        """The seal as it was given."""

    @abstractmethod
    def removal(self) -> Removal:
        """How to remove the namespace by hand, once it was copied. The store need not be open; asking changes nothing.

        The place of a store may hold tables, collections or keys of its users, and other namespaces. `whole` is about
        all namespaces there: the caller checks that none of them is still needed.
        """

    @abstractmethod
    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        """Everything of one part as it is stored, in an order that a load keeps: jobs by position, a job's
        logs by number, occurrences only if no job is their record."""

    @abstractmethod
    def load(self, records: Sequence[Record]) -> int:
        """Take records as they are, all or none; what is there already is left alone. Says how many were new.

        A job gets a new position, behind those that are there; its other fields stay, but a running one's lease has run
        out (lease_until is 0), whatever the clocks say: its worker is on the other store. Counters of states count
        what is loaded; totals are taken from queue records alone. What is there already: a job or schedule of that
        id, an entry of that kind and name, an audit record of that id, an occurrence of that schedule and through_at, a
        log line of that job and number, a lock with a number as high, a queue with totals as high and that pause.
        """
