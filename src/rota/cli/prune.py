"""Runs `prune`: deletes all jobs and records whose retention is over, now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from rota.app import App, internals
from rota.cli.options import app_on_store, app_option, output_option, store_option
from rota.cli.words import count, listed
from rota.config.loader import resolve
from rota.store.contract import Pruned

if TYPE_CHECKING:
    from rota.cli.output import Output
    from rota.store.contract import Retention, Store

BATCH = 500  # at a time: others want to write too


class PrunedFacts(Struct, kw_only=True):
    """The numbers of deleted records."""

    jobs: int
    occurrences: int
    nodes: int
    audit_records: int


@click.command(
    epilog="Nodes prune by themselves, a little every minute. The app or rota.yaml sets how long records are kept."
)
@click.option("--defaults", is_flag=True, help="Without an app: use the retention that App() has here.")
@app_option
@store_option
@output_option
def prune(target: str | None, store_url: str | None, out: Output, *, defaults: bool) -> None:
    """Delete jobs and records whose retention is over."""
    if not target and not defaults and not _is_said():
        raise click.UsageError(
            "how long things are kept is the app's or rota.yaml's to say: name the app with --app or ROTA_APP, write "
            "`retention` into rota.yaml, or take what App() keeps with --defaults"
        )
    app = app_on_store(target, store_url)
    try:
        retention = internals(App() if defaults else app).configuration.retention
        pruned = _prune(app.open(), retention)
    finally:
        app.close()
    facts = msgspec.convert(pruned, PrunedFacts, from_attributes=True)
    out.page(facts, lambda: [_sentence(pruned)])


def _is_said() -> bool:
    """Whether the settings give any retention."""
    origins = resolve(Path.cwd()).origins
    return any(origin.kind != "default" for path, origin in origins.items() if path.startswith("retention."))


def _prune(store: Store, retention: Retention) -> Pruned:
    """Prune batch by batch until nothing is left."""
    total = Pruned()
    while (pruned := store.prune(retention, BATCH)).total:
        total += pruned
    return total


def _sentence(pruned: Pruned) -> str:
    if not pruned.total:
        return "nothing was kept long enough to be removed"
    parts = [
        (pruned.jobs, "job"),
        (pruned.occurrences, "occurrence"),
        (pruned.nodes, "silent node"),
        (pruned.audit_records, "audit record"),
    ]
    return f"removed {listed([count(number, noun) for number, noun in parts if number])}"
