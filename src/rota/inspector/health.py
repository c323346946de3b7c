"""Checks whether this process does its work (live, ready), and whether a whole system does, as its store shows it.

Anyone may read the answers of live and ready: words from a closed set, no address, no name, no error's text.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from msgspec import Struct

from rota.errors import SchemaMismatch, StoreError
from rota.inspector.reading import all_schedules
from rota.model.micros import optional_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Node as NodeRecord
    from rota.store.contract import Store

OK: Literal["ok"] = "ok"
SEALED = "sealed: it is being copied to another store, or was"
UNANSWERED = "it does not answer"
ROLES = ("worker", "scheduler")


class HealthFacts(Struct, kw_only=True):
    """Whether all checks passed, and the result of each: "ok", or the problem."""

    status: Literal["ok", "unhealthy"]
    checks: dict[str, str]


class SystemHealthFacts(HealthFacts, kw_only=True):
    """The health of a whole system, seen through its store; for operators, so it may name things."""

    reason: str
    beat_at: datetime | None  # the last heartbeat of any node, if nodes were checked


class Health(Struct, frozen=True):
    """The checks, and the result of each."""

    checks: dict[str, str]

    @property
    def is_well(self) -> bool:
        return all(result == OK for result in self.checks.values())

    @property
    def status(self) -> int:
        """The same as an HTTP status."""
        return 200 if self.is_well else 503

    @property
    def facts(self) -> HealthFacts:
        return HealthFacts(status=OK if self.is_well else "unhealthy", checks=self.checks)

    @property
    def json(self) -> bytes:
        return msgspec.json.encode(self.facts)


class TurningService(Protocol):
    """A service of a node: its name, and whether its loop is running."""

    @property
    def name(self) -> str: ...

    @property
    def is_turning(self) -> bool: ...


class DrainingWorker(Protocol):
    @property
    def is_draining(self) -> bool: ...


class LocalNode(Protocol):
    """The facts about the node of this process that health uses."""

    @property
    def is_healthy(self) -> bool: ...

    @property
    def worker(self) -> DrainingWorker | None: ...

    @property
    def services(self) -> Sequence[TurningService]: ...


def live(node: LocalNode | None) -> Health:
    """Whether the loops of this process are running; a restart repairs one that is not. None: it has no loops."""
    return Health({} if node is None else {"loops": OK if node.is_healthy else "stuck"})


def ready(store: Callable[[], Store], node: LocalNode | None) -> Health:
    """Whether this process can do its work now: the store accepts it, and the services of its roles are running."""
    return Health({"store": _state_of(store), **_roles(node)})


def _state_of(store: Callable[[], Store]) -> str:
    try:
        return OK if store().sealed() is None else SEALED
    except SchemaMismatch:
        return "its schema is of another version"
    except StoreError:
        return UNANSWERED


def _roles(node: LocalNode | None) -> dict[str, str]:
    """The services of this node that give it a role."""
    if node is None:
        return {}
    if node.worker is not None and node.worker.is_draining:
        return {"worker": "draining"}
    services = [service for service in node.services if service.name in ROLES]
    return {service.name: OK if service.is_turning else "stuck" for service in services}


# A whole system, seen through its store.


class Finding(Health, frozen=True, kw_only=True):
    """The result of each check of a system, the reason in words, and the last heartbeat, if nodes were checked."""

    reason: str
    beat_at: int | None = None

    @property
    def facts(self) -> SystemHealthFacts:
        same = super().facts
        at = optional_datetime(self.beat_at)
        return SystemHealthFacts(status=same.status, checks=same.checks, reason=self.reason, beat_at=at)


def why_unusable(store: Store) -> str | None:
    """Why an unopened store cannot be used as it is, with the remedy; None if it can. Asking changes nothing."""
    if not store.features.is_shared:
        return f"a {store.describe()} lives and ends with one process; give the app a store that processes share"
    try:
        if store.is_missing():
            return f"there is no store at {store.path}; name it with --store or --app, or make it with `rota migrate`"
        missing = store.pending_migrations()
    except StoreError as err:
        return str(err)
    if missing:
        return f"{store.describe()} has old tables, or none; `rota migrate` brings them up to date"
    return None


def examine(store: Store, ask: Callable[[Store], Finding]) -> Finding:
    """Open a store that is not open yet, check it, and close it."""
    reason = why_unusable(store)
    if reason:
        return Finding(checks={"store": "it cannot be used"}, reason=reason)
    try:
        store.open()
        seal = store.sealed()
        if seal is not None:
            return Finding(checks={"store": SEALED}, reason=str(seal.refusal(store.describe())))
        return ask(store)
    except StoreError as err:
        return Finding(checks={"store": UNANSWERED}, reason=str(err))
    finally:
        store.close()


def check_work(store: Store, alive: list[NodeRecord]) -> dict[str, str]:
    """Whether live nodes claim all jobs that are ready. Jobs of a paused queue wait because an operator paused it."""
    taken = {queue for node in alive for queue in node.queues}
    waiting = [queue.name for queue in store.list_queues() if queue.counts.get("queued") and not queue.is_paused]
    untaken = [f"no live worker takes queue {name}" for name in waiting if name not in taken]
    is_fired = any("scheduler" in node.roles for node in alive)
    is_needed = not is_fired and any(_is_expected(schedule) for schedule in all_schedules(store))
    return {
        "queues": " and ".join(untaken) or OK,
        "schedules": "no live node fires schedules" if is_needed else OK,
    }


def _is_expected(schedule: Schedule) -> bool:
    return schedule.due_at is not None and schedule.silence is None
