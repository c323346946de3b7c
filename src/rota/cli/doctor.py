"""Runs `doctor`: reports problems, present and coming, and what to do about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.app import App, internals
from rota.cli.checks import Check, Examination, examine, show_checks
from rota.cli.endings import FAILED
from rota.cli.options import app_option, find_store, output_option, store_option
from rota.cli.target import load_target
from rota.errors import StoreError
from rota.inspector.health import why_unusable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.cli.output import Output
    from rota.store.contract import Store


@click.command()
@app_option
@store_option
@click.option("--recount", is_flag=True, help="Count all jobs and check all schedules, however many there are.")
@output_option
def doctor(target: str | None, store_url: str | None, out: Output, *, recount: bool) -> None:
    """Report problems and their fixes; exit with 1 if any."""
    app = load_target(target).app if target else App()
    is_named = target is not None and not store_url
    store = internals(app).store.find() if is_named else find_store(store_url, app.settings.namespace)
    found = list(_checks(store, app if target else None, reads_all=recount))
    show_checks(found, out)
    click.get_current_context().exit(FAILED if any(check.verdict == "problem" for check in found) else 0)


def _checks(store: Store, app: App | None, *, reads_all: bool) -> Iterator[Check]:
    reason = why_unusable(store)
    if reason:
        yield Check("store", "problem", reason, "the other checks need it; mend this, then ask again")
        return
    try:
        store.open()
        seal = store.sealed()
        if seal is not None:
            finding, _, todo = str(seal.refusal(store.describe())).partition("; ")
            yield Check("store", "problem", finding, todo)
            return
        yield Check("store", "ok", f"{store.describe()} answers; its tables are current")
        yield from examine(Examination(store, app, reads_all=reads_all))
    except StoreError as err:
        yield Check("store", "problem", str(err), "repair the store, then run it again")
    finally:
        store.close()
