"""health: one answer, yes or no, for whoever restarts things."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.cli.endings import FAILED
from rota.cli.operate import store_of
from rota.cli.options import app_option, output_option, store_option
from rota.cli.words import count, relative
from rota.errors import StoreError
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from rota.cli.output import Output
    from rota.store.contract import Store

BEAT_WITHIN = 15 * SECOND  # nodes beat every 5 s


class HealthFacts(Struct, kw_only=True):
    """Whether all is well, and why one thinks so."""

    healthy: bool
    reason: str
    beat_at: datetime | None = None  # the last of any node; asked for by --live


@click.command()
@click.option("--live", is_flag=True, help="Also ask for a node that was heard of within 15 s.")
@app_option
@store_option
@output_option
def health(target: str | None, store_url: str | None, out: Output, *, live: bool) -> None:
    """Exit with 0 if the store answers, else with 1 and why."""
    store = store_of(target, store_url)
    facts = _examine(store, needs_node=live)
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


def _examine(store: Store, *, needs_node: bool) -> HealthFacts:
    reason = why_unusable(store)
    if reason:
        return HealthFacts(healthy=False, reason=reason)
    try:
        store.open()
        return _ask(store, needs_node=needs_node)
    except StoreError as err:
        return HealthFacts(healthy=False, reason=str(err))
    finally:
        store.close()


def _ask(store: Store, *, needs_node: bool) -> HealthFacts:
    now = store.now()
    beats = [node.beat_at for node in store.list_nodes()]
    if not needs_node:
        return HealthFacts(healthy=True, reason=f"{store.describe()} answers")
    last = max(beats, default=None)
    if last is None:
        return HealthFacts(healthy=False, reason="no node is running; `rota run TARGET` starts one")
    heard = relative(datetime_of(last), datetime_of(now))
    fresh = sum(beat >= now - BEAT_WITHIN for beat in beats)
    reason = f"{count(fresh, 'node')} alive, heard of {heard}" if fresh else f"no node was heard of since {heard}"
    return HealthFacts(healthy=bool(fresh), reason=reason, beat_at=optional_datetime(last))
