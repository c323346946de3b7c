"""Defines the options that commands share: settings, app, store and output format."""

from __future__ import annotations

import os
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rota.app import App, internals
from rota.cli.output import FORMS, Output, warn
from rota.cli.target import load_target, make_importable, target_from
from rota.cli.words import listed
from rota.config.environment import CONFIG
from rota.config.loader import resolve
from rota.errors import BadDuration, BadSettings, StoreError
from rota.model.micros import fine_span_of, span_of
from rota.operations.audit import whoami
from rota.operations.copy import with_namespace
from rota.store.urls import store_from_url
from rota.triggers.duration import OR_IN_PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Store


Missing = Literal["refuse", "make", "imagine"]  # what is done about a SQLite file that is not there


def _use_config(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Make it ROTA_CONFIG while the command runs, so that the processes which it starts read the same file."""
    if name is None:
        return
    path = Path(name).expanduser().absolute()
    if not path.exists() and not context.resilient_parsing:
        raise BadSettings(f"--config names {path}, and there is no such file")
    before = os.environ.get(CONFIG)
    os.environ[CONFIG] = str(path)
    context.call_on_close(
        lambda: os.environ.pop(CONFIG, None) if before is None else os.environ.update({CONFIG: before})
    )


def known_target(context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """The target that was named, else the one that the settings name. The folder of rota.yaml is importable."""
    try:
        found = resolve(Path.cwd())
    except BadSettings:
        if context.resilient_parsing:
            return given
        raise
    if found.folder is not None:
        make_importable(found.folder)
    return given or target_from(found)


config_option = click.option(
    "--config",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_use_config,
    help="Read this file.  [env: ROTA_CONFIG; default: the rota.yaml of this project]",
)
_store_option = click.option("--store", "store_url", metavar="URL", help="Use this store.  [env: ROTA_STORE]")
app_option = click.option(
    "--app",
    "target",
    metavar="TARGET",
    callback=known_target,
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
by_option = click.option(
    "--by",
    metavar="NAME",
    callback=lambda _context, _option, name: name or whoami(),
    help="Who makes this change, for the record.  [default: you, at this host]",
)


def store_option(function: Callable[..., None]) -> Callable[..., None]:
    """The options --store and --config."""
    return _store_option(config_option(function))


def check_duration(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Refuse a text that is no duration, before anything is done."""
    return _checked(span_of, context, option, text)


def check_fine_duration(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Like check_duration, but also accepts less than a second."""
    return _checked(fine_span_of, context, option, text)


def _checked(
    span: Callable[[str], int], context: click.Context, option: click.Parameter, text: str | None
) -> str | None:
    if text is not None:
        try:
            span(text)
        except BadDuration as err:
            raise click.BadParameter(str(err).removesuffix(OR_IN_PYTHON), context, option) from err
    return text


def on_a_store(function: Callable[..., None]) -> Callable[..., None]:
    """A command about what a store holds: it gets an app on that store, opened, and closed at its end."""
    return _on_a_store(function, "refuse")


def on_a_store_to_be(function: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that the life of a store may begin with: the store of an app is made if it is missing."""
    return _on_a_store(function, "make")


def on_a_store_or_none(function: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that shows what a first start would do: an app without a store is seen on an empty one."""
    return _on_a_store(function, "imagine")


def _on_a_store(function: Callable[..., None], missing: Missing) -> Callable[..., None]:
    @app_option
    @store_option
    @wraps(function)
    def command(*, target: str | None, store_url: str | None, **options: Any) -> None:
        app = app_on_store(target, store_url, missing)
        try:
            function(app, **options)
        finally:
            app.close()

    return command


def app_on_store(target: str | None, store_url: str | None, missing: Missing = "refuse") -> App:
    """The app that a target names, or a bare one, with a store open. `missing` is about the SQLite file of an app."""
    app = load_target(target).app if target else App()
    internals(app).has_code = bool(target)
    if store_url or not target:
        named = find_store(store_url, app.settings.namespace)
        internals(app).store.use(named if target and missing != "refuse" else _existing(named))
    if missing == "imagine" and internals(app).store.find().is_missing():
        before = internals(app).store.use(store_from_url("memory://"))
        click.get_current_context().call_on_close(lambda: internals(app).store.use(before))
        return app
    if missing != "make":
        _existing(internals(app).store.find())
    opened = open_shared(app)
    if missing == "refuse":
        _warn_of_other_namespaces(opened.open())
    return opened


def _warn_of_other_namespaces(store: Store) -> None:
    """Warn that other namespaces have schedules or jobs, if this one is empty."""
    if store.list_schedules(limit=1).items or store.list_queues():
        return
    others = [name for name in store.namespaces() if name != store.namespace]
    if others:
        there = "another namespace" if len(others) == 1 else "a choice of other namespaces"
        warn(
            f"{with_namespace(store)} has no jobs and no schedules. There is {there}: {listed(others)}. "
            "ROTA_NAMESPACE, or `namespace:` in rota.yaml, says which one is read"
        )


def open_shared(app: App) -> App:
    """Open the app's store; refuse one that other processes cannot see."""
    check_shared(app)
    app.open()
    return app


def check_shared(app: App) -> None:
    """Refuse an app whose store other processes cannot see. This does not open the store."""
    store = internals(app).store.find()
    if not store.features.is_shared:
        raise StoreError(
            f"a {store.describe()} lives and ends with one process, so this command cannot see into it; "
            "give the app a store that processes share, such as sqlite:///jobs.db"
        )


def find_store(url: str | None, namespace: str | None = None) -> Store:
    """The store of --store, whose relative path starts here; or the one that the settings name."""
    bare = App(namespace=namespace)
    if url is not None:
        internals(bare).store.use(store_from_url(url, namespace=bare.settings.namespace, folder=Path.cwd()))
    return internals(bare).store.find()


def _existing(store: Store) -> Store:
    """Refuse to create an empty store for a command that only reads."""
    if store.is_missing():
        raise StoreError(
            f"there is no store at {store.path}; name it with --store URL or ROTA_STORE, name the app with --app or "
            "ROTA_APP, write either into rota.yaml, or make the store: `rota run` and `rota migrate` do"
        )
    return store
