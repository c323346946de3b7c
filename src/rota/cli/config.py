"""Runs `config`: shows the settings that apply and the declarations of the file, each with its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource
from msgspec import Struct

from rota.app import App, internals
from rota.cli.columns import Column
from rota.cli.groups import Group
from rota.cli.options import app_option, output_option, store_option
from rota.cli.output import Output, say, warn
from rota.cli.target import load_target
from rota.config.kinds import Whole
from rota.config.settings import KEYS, Key, value_at
from rota.errors import BadTarget
from rota.model.secrets.masking import masked
from rota.store.urls import url_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.config.declared import Declarations
    from rota.config.loader import Resolved

APP, STORE = list(KEYS).index("app"), list(KEYS).index("store")


class SettingFacts(Struct, kw_only=True):
    """The fields of a setting in JSON and CSV; durations and sizes are text."""

    key: str
    value: Any
    origin: str  # default, rota.yaml:3, ROTA_LEASE, code, --store
    overruled: str | None  # who says otherwise, to no effect
    variable: str | None  # None: it is not a setting, but declared in the file


class Shown(NamedTuple):
    """A setting with the value that applies."""

    key: Key
    value: Any
    origin: str
    overruled: str | None


class Row(NamedTuple):
    """A line of the table, and its facts."""

    name: str
    value: str
    origin: str
    facts: SettingFacts


COLUMNS: list[Column[Row]] = [
    Column("setting", lambda row: row.name),
    Column("value", lambda row: row.value, "wrap"),
    Column("from", lambda row: row.origin, "wrap"),
]


@click.group(cls=Group)
def config() -> None:
    """Show the settings."""


@config.command("show", epilog="Later ones overrule earlier ones: default, rota.yaml, ROTA_* variables, code, options.")
@app_option
@store_option
@output_option
def show_config(target: str | None, store_url: str | None, out: Output) -> None:
    """Show every setting and where its value comes from, then what rota.yaml declares."""
    app = _app(target)
    found = internals(app).resolved
    say(f"settings file: {found.file}" if found.file else "no rota.yaml in this folder or above it in this project")
    shown = [_shown(key, found) for key in KEYS.values()]
    if click.get_current_context().get_parameter_source("target") is ParameterSource.COMMANDLINE:
        shown[APP] = shown[APP]._replace(value=target, origin="--app")
    shown[STORE] = _shown_store(app, store_url, shown[STORE])
    rows = [_row(one) for one in shown] + [_declared_row(facts) for facts in declared_facts(found.declared)]
    out.rows(rows, COLUMNS, SettingFacts, lambda row: row.facts, empty="")


def _app(target: str | None) -> App:
    """The app, whose code may give some settings; an empty one if it cannot be loaded."""
    if target:
        try:
            return load_target(target).app
        except BadTarget as err:
            warn(f"what the code says is not shown: {err}")
    return App()


def _shown(key: Key, found: Resolved) -> Shown:
    others = [overruled.origin.words for overruled in found.overruled if overruled.path == key.path]
    value = value_at(found.settings, key.path)
    return Shown(key, value, found.origins[key.path].words, ", ".join(others) or None)


def _shown_store(app: App, store_url: str | None, shown: Shown) -> Shown:
    """The store that is used, also if no setting names it."""
    if store_url:
        return shown._replace(value=masked(store_url), origin="--store", overruled=None)
    if shown.value is not None:
        return shown._replace(value=masked(shown.value))
    store = internals(app).store.find()
    return shown._replace(value=url_of(store))


def _row(shown: Shown) -> Row:
    return Row(shown.key.path, _words(shown), _from_words(shown), _facts(shown))


def _declared_row(facts: SettingFacts) -> Row:
    return Row(facts.key, facts.value, facts.origin, facts)


def declared_facts(declared: Declarations) -> Iterator[SettingFacts]:
    """What the file declares. Arguments are left out: they may hold what only their owner should know."""
    for schedule in declared.schedules:
        yield _fact(f"schedules.{schedule.id}", f"{schedule.task}: {schedule.trigger}", schedule.place)
    for tenant in declared.tenants:
        yield _fact(f"tenants.{tenant.name}", str(tenant.options["tz"]), tenant.place)
    for source in declared.sources:
        names = ", ".join(collection.name for collection in source.collections)
        yield _fact(f"sources.{source.name}", f"{source.task}: {names}", source.place)
    for queue in declared.documents:
        where = " ".join(filter(None, (masked(queue.source), queue.collection)))
        yield _fact(f"documents.{queue.name}", f"{queue.handler}: {where}", queue.place)


def _fact(key: str, value: str, origin: str) -> SettingFacts:
    return SettingFacts(key=key, value=value, origin=origin, overruled=None, variable=None)


def _words(shown: Shown) -> str:
    if shown.value is None:
        return shown.key.otherwise.replace("`", "")
    return shown.key.kind.text(shown.value)


def _from_words(shown: Shown) -> str:
    return f"{shown.origin} (not {shown.overruled})" if shown.overruled else shown.origin


def _facts(shown: Shown) -> SettingFacts:
    key, value = shown.key, shown.value
    is_plain = value is None or isinstance(key.kind, Whole) or isinstance(value, tuple)
    return SettingFacts(
        key=key.path,
        value=value if is_plain else key.kind.text(value),
        origin=shown.origin,
        overruled=shown.overruled,
        variable=key.variable,
    )
