"""Runs `health`: answers yes or no, for supervisors and deployments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from rota.cli.endings import FAILED
from rota.cli.operate import store_of
from rota.cli.options import app_option, output_option, store_option
from rota.cli.words import count, listed, relative
from rota.errors import BadOption
from rota.inspector.health import OK, Finding, check_work, examine
from rota.inspector.own_nodes import IS_SUPPORTED, check_own_nodes
from rota.inspector.reading import clock_record
from rota.model.clock.record import recent_steps
from rota.model.micros import datetime_of
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from rota.cli.output import Output
    from rota.inspector.own_nodes import OwnFinding
    from rota.store.contract import Store


_NO_NODE = {"store": OK, "nodes": "none is alive"}


@click.command()
@click.option("--live", is_flag=True, help="Also require a node with a heartbeat within 20 s.")
@click.option(
    "--ready",
    is_flag=True,
    help="Also require live nodes for all work: a worker for each queue with jobs, a scheduler for schedules.",
)
@click.option(
    "--self",
    "own",
    is_flag=True,
    help="Ask the nodes of this container or host instead, whether they run and are not frozen; not the store.",
)
@click.option(
    "--pid",
    type=click.IntRange(1),
    metavar="PID",
    help="With --self: only the node of this process, or of its children.  [default: all nodes here]",
)
@app_option
@store_option
@output_option
def health(
    target: str | None, store_url: str | None, out: Output, pid: int | None, *, live: bool, ready: bool, own: bool
) -> None:
    """Exit with 0 if the store answers, else 1 and the reason."""
    if own:
        _check_self(out, pid, is_alone=not (live or ready or store_url))
        return
    if pid is not None:
        raise click.UsageError("--pid needs --self")
    store = store_of(target, store_url)
    ask = _ready if ready else _live if live else _answers
    _report(out, examine(store, lambda opened: _with_clock(opened, ask(opened))))


def _check_self(out: Output, pid: int | None, *, is_alone: bool) -> None:
    """Ask only this process: a restart of the container would not bring back an unreachable store."""
    if not is_alone:
        raise click.UsageError("--self asks no store; leave --live, --ready and --store out")
    if not IS_SUPPORTED:
        raise BadOption("--self needs Linux; ask /live of --metrics-port instead")
    _report(out, check_own_nodes(pid))


def _report(out: Output, found: Finding | OwnFinding) -> None:
    verdict = click.style("healthy", fg="green") if found.is_well else click.style("unhealthy", fg="red")
    out.page(found.facts, lambda: [f"{verdict}: {found.reason}"])
    click.get_current_context().exit(0 if found.is_well else FAILED)


def _answers(store: Store) -> Finding:
    store.list_nodes()
    return Finding(checks={"store": OK}, reason=f"{store.describe()} answers")


def _with_clock(store: Store, found: Finding) -> Finding:
    """The finding, with the last time that the store's clock was set, if that is less than a day ago."""
    steps = recent_steps(clock_record(store), store.now())
    if not steps:
        return found
    return msgspec.structs.replace(found, reason=f"{found.reason}; {steps[-1].words}")


def _live(store: Store) -> Finding:
    """Whether any node sends heartbeats."""
    now, nodes = store.now(), store.list_nodes()
    last = max((node.beat_at for node in nodes), default=None)
    if last is None:
        return Finding(checks=_NO_NODE, reason="no node is running; `rota run TARGET` starts one")
    heard = relative(datetime_of(last), datetime_of(now))
    alive = len(live_nodes(nodes, now))
    reason = f"{count(alive, 'node')} alive, heard of {heard}" if alive else f"no node was heard of since {heard}"
    return Finding(checks={"store": OK, "nodes": OK} if alive else _NO_NODE, reason=reason, beat_at=last)


def _ready(store: Store) -> Finding:
    """Whether live nodes serve all queues with waiting jobs."""
    found = _live(store)
    if not found.is_well:
        return found
    checks = check_work(store, live_nodes(store.list_nodes(), store.now()))
    missing = [result for result in checks.values() if result != OK]
    reason = f"{listed(missing)}; `rota nodes list` shows who does what" if missing else f"{found.reason}, ready"
    return Finding(checks={**found.checks, **checks}, reason=reason, beat_at=found.beat_at)
