"""prune: removes what was kept long enough, now and to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.cli.options import app_on_store, app_option, output_option, store_option
from rota.cli.words import count, listed
from rota.store.contract import Pruned, Retention

if TYPE_CHECKING:
    from rota.cli.output import Output
    from rota.store.contract import Store

BATCH = 500  # at a time: others want to write too


class PrunedFacts(Struct, kw_only=True):
    """How much was removed."""

    jobs: int
    occurrences: int
    nodes: int


@click.command(epilog="Nodes prune by themselves, a little every minute. How long things are kept, the app says.")
@click.option("--defaults", is_flag=True, help="Without an app: keep things for as long as App() does.")
@app_option
@store_option
@output_option
def prune(target: str | None, store_url: str | None, out: Output, *, defaults: bool) -> None:
    """Remove jobs and records that were kept long enough."""
    if not target and not defaults:
        raise click.UsageError(
            "how long things are kept is the app's to say: name it with --app or ROTA_APP, "
            "or take what App() keeps with --defaults"
        )
    app = app_on_store(target, store_url)
    try:
        retention = Retention() if defaults else app.retention
        pruned = _prune(app.open(), retention)
    finally:
        app.close()
    facts = PrunedFacts(jobs=pruned.jobs, occurrences=pruned.occurrences, nodes=pruned.nodes)
    out.page(facts, lambda: [_sentence(pruned)])


def _prune(store: Store, retention: Retention) -> Pruned:
    """Batch after batch, until nothing is left."""
    total = Pruned()
    while (pruned := store.prune(retention, BATCH)).total:
        total = Pruned(total.jobs + pruned.jobs, total.occurrences + pruned.occurrences, total.nodes + pruned.nodes)
    return total


def _sentence(pruned: Pruned) -> str:
    if not pruned.total:
        return "nothing was kept long enough to be removed"
    parts = [(pruned.jobs, "job"), (pruned.occurrences, "occurrence"), (pruned.nodes, "silent node")]
    return f"removed {listed([count(number, noun) for number, noun in parts if number])}"
