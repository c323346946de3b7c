"""Runs `alerts add`, `edit` and `remove`, which change the alert rules that the store keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli.options import by_option, check_duration, on_a_store, on_a_store_to_be
from rota.cli.output import say
from rota.cli.words import listed
from rota.errors import AlertNotFound, Refused
from rota.model.alerts.rule import WHENS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App
    from rota.inspector.facts.alert import AlertRuleFacts

SELECTORS = ("schedule", "queue", "node")
name_argument = click.argument("name", metavar="NAME")


def _rule_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        [
            click.option(
                "--when", type=click.Choice(WHENS), metavar="CONDITION", help=f"One of {listed(WHENS, 'or')}."
            ),
            *(
                click.option(f"--{kind}", metavar="NAME", help=f"A {kind}, or a prefix that ends in *.  [default: all]")
                for kind in SELECTORS
            ),
            click.option("--after", metavar="DURATION", callback=check_duration, help="For how long, such as 10m."),
            click.option("--more-than", type=int, metavar="JOBS", help="With --when length: how many jobs may wait."),
            click.option(
                "--channel",
                "channels",
                multiple=True,
                metavar="NAME",
                help="A channel to notify; may be given several times.  [default: all channels]",
            ),
        ]
    ):
        function = option(function)
    return function


@click.command("add")
@name_argument
@_rule_options
@by_option
@on_a_store_to_be
def add_rule(app: App, name: str, by: str, **options: Any) -> None:
    """Store an alert rule. Nodes check it within a minute."""
    if options["when"] is None:
        raise click.UsageError(f"what is watched? Give --when, one of {listed(WHENS, 'or')}")
    if any(one.name == name and one.origin == "store" for one in app.alerts.rules().rules):
        raise click.UsageError(f"alert rule {name!r} exists; `rota alerts edit {name}` changes it")
    facts = app.alerts.put(name, **_given(options), by=by, expect_version=0)
    say(f"added {_told(facts)}")


@click.command("edit")
@name_argument
@_rule_options
@by_option
@on_a_store
def edit_rule(app: App, name: str, by: str, **options: Any) -> None:
    """Change the given options of a stored alert rule; the others stay.

    A new --when takes none of the others along: give all that it needs. --channel '' notifies all channels again.
    """
    before = app.alerts.rule(name)
    given = _given(options)
    if not given:
        raise click.UsageError("nothing is to be changed; say what, as in --after 10m or --channel ops")
    if before.version is None:
        raise Refused(f"alert rule {name!r} is declared in {before.place or before.origin}; change it there")
    wanted = {**({} if "when" in given else _said(before)), **given}
    if "channels" not in given:
        wanted["channels"] = before.channels
    facts = app.alerts.put(name, **wanted, by=by, expect_version=before.version)
    say(f"changed {_told(facts)}")


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@by_option
@on_a_store
def remove_rule(app: App, names: tuple[str, ...], by: str) -> None:
    """Remove stored alert rules and end their alerts, without a message."""
    for name in names:
        if not app.alerts.remove(name, by=by):
            raise AlertNotFound(f"there is no alert rule {name!r}; `rota alerts rules` shows the rules")
        say(f"removed {name}")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """What was typed. An empty channel means all of them."""
    given = {name: value for name, value in options.items() if name != "channels" and value is not None}
    if options["channels"]:
        given["channels"] = None if options["channels"] == ("",) else list(options["channels"])
    return given


def _said(facts: AlertRuleFacts) -> dict[str, Any]:
    """A rule as the options that make it."""
    return {"when": facts.when, facts.kind: facts.selects, "after": facts.after, "more_than": facts.more_than}


def _told(facts: AlertRuleFacts) -> str:
    channels = "all channels" if facts.channels is None else listed(facts.channels) or "no channel"
    after = f", after {facts.after}" if facts.after else ""
    return f"{facts.name}: {facts.when}, {facts.kind} {facts.selects}{after}; it notifies {channels}"
