"""health: one answer, yes or no, for whoever restarts things."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from rota.cli.endings import FAILED
from rota.cli.operate import store_of
from rota.cli.options import app_option, output_option, store_option
from rota.cli.words import count, listed, relative
from rota.inspector.health import Finding, examine, fresh_nodes, lacking
from rota.inspector.reading import clock_record
from rota.model.clock_record import recent_steps
from rota.model.micros import datetime_of, optional_datetime

if TYPE_CHECKING:
    from rota.cli.output import Output
    from rota.store.contract import Store


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
    ask = _ready if ready else _live if live else _answers
    found = examine(store, lambda opened: _with_clock(opened, ask(opened)))
    facts = HealthFacts(healthy=found.is_well, reason=found.reason, beat_at=optional_datetime(found.beat_at))
    verdict = click.style("healthy", fg="green") if facts.healthy else click.style("unhealthy", fg="red")
    out.page(facts, lambda: [f"{verdict}: {facts.reason}"])
    click.get_current_context().exit(0 if facts.healthy else FAILED)


def _answers(store: Store) -> Finding:
    store.list_nodes()
    return Finding(is_well=True, reason=f"{store.describe()} answers")


def _with_clock(store: Store, found: Finding) -> Finding:
    """The finding, with the last time that the store's clock was set, if that is less than a day ago."""
    steps = recent_steps(clock_record(store), store.now())
    if not steps:
        return found
    return msgspec.structs.replace(found, reason=f"{found.reason}; {steps[-1].words}")


def _live(store: Store) -> Finding:
    """Whether any node says that it is there."""
    now, nodes = store.now(), store.list_nodes()
    last = max((node.beat_at for node in nodes), default=None)
    if last is None:
        return Finding(is_well=False, reason="no node is running; `rota run TARGET` starts one")
    heard = relative(datetime_of(last), datetime_of(now))
    fresh = len(fresh_nodes(nodes, now))
    reason = f"{count(fresh, 'node')} alive, heard of {heard}" if fresh else f"no node was heard of since {heard}"
    return Finding(is_well=bool(fresh), reason=reason, beat_at=last)


def _ready(store: Store) -> Finding:
    """Whether live nodes take all that waits."""
    found = _live(store)
    if not found.is_well:
        return found
    missing = lacking(store, fresh_nodes(store.list_nodes(), store.now()))
    reason = f"{listed(missing)}; `rota nodes list` shows who does what" if missing else f"{found.reason}, ready"
    return Finding(is_well=not missing, reason=reason, beat_at=found.beat_at)
