"""Options that commands share: which app, which store, in which form."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.app import App
from rota.cli.output import FORMS, Output
from rota.cli.target import load_target
from rota.errors import StoreError
from rota.model.micros import span_of
from rota.store.sqlite import SqliteStore
from rota.store.urls import default_store, store_from_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Store

store_option = click.option(
    "--store", "store_url", envvar="ROTA_STORE", metavar="URL", help="Use this store.  [env: ROTA_STORE]"
)
app_option = click.option(
    "--app",
    "target",
    envvar="ROTA_APP",
    metavar="TARGET",
    help="The app: jobs.py, package.module or module:app.  [env: ROTA_APP]",
)
output_option = click.option(
    "-o",
    "--output",
    "out",
    type=click.Choice(FORMS),
    metavar="FORM",
    default="table",
    callback=lambda _context, _option, form: Output(form),
    help="Write data as table, json, jsonl or csv.  [default: table]",
)


def check_duration(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """Refuse a duration that is none, before anything is done."""
    if text is not None:
        span_of(text)
    return text


def on_a_store(function: Callable[..., None]) -> Callable[..., None]:
    """A command about what a store holds: it gets an app on that store, opened, and closed at its end."""

    @app_option
    @store_option
    @wraps(function)
    def command(*, target: str | None, store_url: str | None, **options: Any) -> None:
        app = app_on_store(target, store_url)
        try:
            function(app, **options)
        finally:
            app.close()

    return command


def app_on_store(target: str | None, store_url: str | None) -> App:
    """The app that a target names, or a bare one, with a store open that exists."""
    app = load_target(target).app if target else App()
    if store_url or not target:
        app.use_store(_existing(find_store(store_url, app.namespace)))
    return open_shared(app)


def open_shared(app: App) -> App:
    """Open the app's store; refuse one that other processes cannot see."""
    if not app.open().features.is_shared:
        raise StoreError(
            f"a {app.open().describe()} lives and ends with one process, so this command cannot see into it; "
            "give the app a store that processes share, such as sqlite:///jobs.db"
        )
    return app


def find_store(url: str | None, namespace: str) -> Store:
    """The store of --store, whose relative path starts here; or this folder's own."""
    if url is None:
        return default_store(Path.cwd(), namespace=namespace)
    return store_from_url(url, namespace=namespace, folder=Path.cwd())


def _existing(store: Store) -> Store:
    """Refuse to make an empty store where somebody only wants to look into one."""
    if isinstance(store, SqliteStore) and not store.path.exists():
        raise StoreError(
            f"there is no store at {store.path}; name it with --store URL or ROTA_STORE, name the app with --app or "
            "ROTA_APP, or make it with `rota migrate`"
        )
    return store
