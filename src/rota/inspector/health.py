"""Health: whether this process does its work (live, ready), and whether a whole system does, as its store shows it.

What live and ready answer may be read by anybody: words from a closed set, no address, no name, no error's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from rota.errors import SchemaMismatch, StoreError
from rota.inspector.reading import all_schedules
from rota.model.micros import SECOND
from rota.store.shared.liveness import is_alive
from rota.store.sqlite import SqliteStore
from rota.store.sqlite.identity import is_there

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.schedule import Schedule
    from rota.store.contract import Node as NodeRecord
    from rota.store.contract import Store

BEAT_WITHIN = 15 * SECOND  # nodes beat every 5 s
OK = "ok"
ROLES = ("worker", "scheduler")


class Health(Struct, frozen=True):
    """What was looked at, and how each was found."""

    checks: dict[str, str]

    @property
    def is_well(self) -> bool:
        return all(found == OK for found in self.checks.values())

    @property
    def status(self) -> int:
        """As HTTP says it."""
        return 200 if self.is_well else 503

    @property
    def json(self) -> bytes:
        return msgspec.json.encode({"status": OK if self.is_well else "unhealthy", "checks": self.checks})


class TurningService(Protocol):
    """A service of a node: its name, and whether its loop turns."""

    @property
    def name(self) -> str: ...

    @property
    def is_turning(self) -> bool: ...


class DrainingWorker(Protocol):
    @property
    def is_draining(self) -> bool: ...


class LocalNode(Protocol):
    """What health asks about the node of this process."""

    @property
    def is_healthy(self) -> bool: ...

    @property
    def worker(self) -> DrainingWorker | None: ...

    @property
    def services(self) -> Sequence[TurningService]: ...


def live(node: LocalNode | None) -> Health:
    """Whether the loops of this process turn; one that does not is mended by a restart. None: it has no loops."""
    return Health({} if node is None else {"loops": OK if node.is_healthy else "stuck"})


def ready(store: Callable[[], Store], node: LocalNode | None) -> Health:
    """Whether this process can do its work now: the store takes it, and the services of its roles turn."""
    return Health({"store": _state_of(store), **_roles(node)})


def _state_of(store: Callable[[], Store]) -> str:
    try:
        return OK if store().sealed() is None else "sealed: it is being moved"
    except SchemaMismatch:
        return "its schema is of another version"
    except StoreError:
        return "it does not answer"


def _roles(node: LocalNode | None) -> dict[str, str]:
    """The services of this node that give it a role."""
    if node is None:
        return {}
    if node.worker is not None and node.worker.is_draining:
        return {"worker": "draining"}
    services = [service for service in node.services if service.name in ROLES]
    return {service.name: OK if service.is_turning else "stuck" for service in services}


# A whole system, seen through its store.


class Finding(Struct, frozen=True, kw_only=True):
    """Whether all is well, why one thinks so, and when any node was last heard of, where that was asked."""

    is_well: bool
    reason: str
    beat_at: int | None = None


def why_unusable(store: Store) -> str | None:
    """Why an unopened store cannot be used as it is, with the remedy; None where it can. Asking changes nothing."""
    if not store.features.is_shared:
        return f"a {store.describe()} lives and ends with one process; give the app a store that processes share"
    try:
        if isinstance(store, SqliteStore) and not is_there(store.path):
            return f"there is no store at {store.path}; name it with --store or --app, or make it with `rota migrate`"
        missing = store.pending_migrations()
    except StoreError as err:
        return str(err)
    if missing:
        return f"{store.describe()} has old tables, or none; `rota migrate` brings them up to date"
    return None


def examine(store: Store, ask: Callable[[Store], Finding]) -> Finding:
    """Open a store that nobody has opened yet, ask, and close it."""
    reason = why_unusable(store)
    if reason:
        return Finding(is_well=False, reason=reason)
    try:
        store.open()
        seal = store.sealed()
        if seal is not None:
            return Finding(is_well=False, reason=str(seal.refusal(store.describe())))
        return ask(store)
    except StoreError as err:
        return Finding(is_well=False, reason=str(err))
    finally:
        store.close()


def lacking(store: Store, fresh: list[NodeRecord]) -> list[str]:
    """What waits and has nobody to take it. A paused queue waits because somebody wants it to."""
    taken = {queue for node in fresh for queue in node.queues}
    waiting = [queue.name for queue in store.list_queues() if queue.counts.get("queued") and not queue.is_paused]
    missing = [f"no live worker takes queue {name}" for name in waiting if name not in taken]
    is_fired = any("scheduler" in node.roles for node in fresh)
    if not is_fired and any(_is_expected(schedule) for schedule in all_schedules(store)):
        missing.append("no live node fires schedules")
    return missing


def _is_expected(schedule: Schedule) -> bool:
    return schedule.due_at is not None and schedule.silence is None


def fresh_nodes(nodes: list[NodeRecord], now: int) -> list[NodeRecord]:
    """Those that were heard of within 15 s."""
    return [node for node in nodes if is_alive(node, now) and node.beat_at >= now - BEAT_WITHIN]
