"""health: one answer, yes or no, for whoever restarts things."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.cli.endings import FAILED
from rota.cli.operate import store_of
from rota.cli.options import app_option, output_option, store_option
from rota.cli.schedule_page import read_schedules
from rota.cli.words import count, listed, relative
from rota.errors import StoreError
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.cli.output import Output
    from rota.store.contract import Node, Store

BEAT_WITHIN = 15 * SECOND  # nodes beat every 5 s


class HealthFacts(Struct, kw_only=True):
    """Whether all is well, and why one thinks so."""

    healthy: bool
    reason: str
    beat_at: datetime | None = None  # the last of any node; asked for by --live and --ready


@click.command()
@click.option("--live", is_flag=True, help="Also ask for a node that was heard of within 15 s.")
@click.option(
    "--ready",
    is_flag=True,
    help="Also ask for live nodes that take what waits: a worker for each queue, a scheduler for schedules.",
)
@app_option
@store_option
@output_option
def health(target: str | None, store_url: str | None, out: Output, *, live: bool, ready: bool) -> None:
    """Exit with 0 if the store answers, else with 1 and why."""
    store = store_of(target, store_url)
    facts = _examine(store, _ready if ready else _live if live else _answers)
    verdict = click.style("healthy", fg="green") if facts.healthy else click.style("unhealthy", fg="red")
    out.page(facts, lambda: [f"{verdict}: {facts.reason}"])
    click.get_current_context().exit(0 if facts.healthy else FAILED)


def why_unusable(store: Store) -> str | None:
    """Why an unopened store cannot be used as it is, with the remedy; None where it can. Asking changes nothing."""
    if not store.features.is_shared:
        return f"a {store.describe()} lives and ends with one process; give the app a store that processes share"
    if isinstance(store, SqliteStore) and not store.path.exists():
        return f"there is no store at {store.path}; name it with --store or --app, or make it with `rota migrate`"
    try:
        missing = store.pending_migrations()
    except StoreError as err:
        return str(err)
    if missing:
        return f"{store.describe()} has old tables, or none; `rota migrate` brings them up to date"
    return None


def _examine(store: Store, ask: Callable[[Store], HealthFacts]) -> HealthFacts:
    reason = why_unusable(store)
    if reason:
        return HealthFacts(healthy=False, reason=reason)
    try:
        store.open()
        seal = store.sealed()
        if seal is not None:
            return HealthFacts(healthy=False, reason=str(seal.refusal(store.describe())))
        return ask(store)
    except StoreError as err:
        return HealthFacts(healthy=False, reason=str(err))
    finally:
        store.close()


def _answers(store: Store) -> HealthFacts:
    store.list_nodes()
    return HealthFacts(healthy=True, reason=f"{store.describe()} answers")


def _live(store: Store) -> HealthFacts:
    """Whether any node says that it is there."""
    now, nodes = store.now(), store.list_nodes()
    last = max((node.beat_at for node in nodes), default=None)
    if last is None:
        return HealthFacts(healthy=False, reason="no node is running; `rota run TARGET` starts one")
    heard = relative(datetime_of(last), datetime_of(now))
    fresh = len(_fresh(nodes, now))
    reason = f"{count(fresh, 'node')} alive, heard of {heard}" if fresh else f"no node was heard of since {heard}"
    return HealthFacts(healthy=bool(fresh), reason=reason, beat_at=optional_datetime(last))


def _ready(store: Store) -> HealthFacts:
    """Whether live nodes take all that waits."""
    facts = _live(store)
    if not facts.healthy:
        return facts
    missing = _missing(store, _fresh(store.list_nodes(), store.now()))
    reason = f"{listed(missing)}; `rota nodes list` shows who does what" if missing else f"{facts.reason}, ready"
    return HealthFacts(healthy=not missing, reason=reason, beat_at=facts.beat_at)


def _missing(store: Store, fresh: list[Node]) -> list[str]:
    """What waits and has nobody to take it. A paused queue waits because somebody wants it to."""
    taken = {queue for node in fresh for queue in node.queues}
    waiting = [queue.name for queue in store.list_queues() if queue.counts.get("queued") and not queue.is_paused]
    missing = [f"no live worker takes queue {name}" for name in waiting if name not in taken]
    is_fired = any("scheduler" in node.roles for node in fresh)
    if not is_fired and any(shown.state == "on" for shown in read_schedules(store)):
        missing.append("no live node fires schedules")
    return missing


def _fresh(nodes: list[Node], now: int) -> list[Node]:
    return [node for node in nodes if node.beat_at >= now - BEAT_WITHIN]
