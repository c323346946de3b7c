"""Runs `alerts`: lists what the rules of an app have found, silences alerts, and tests channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.alert_rules import add_rule, edit_rule, remove_rule
from rota.cli.columns import Column
from rota.cli.groups import Group
from rota.cli.options import by_option, check_duration, on_a_store, on_a_store_or_none, output_option
from rota.cli.output import Output, aligned, heading, say
from rota.cli.pausing import end_of_pause
from rota.cli.words import beside, instant, listed, printable, relative
from rota.client.alerts import STATES
from rota.errors import AlertNotFound
from rota.inspector.facts.alert import AlertFacts, AlertRuleFacts, DeliveryFacts
from rota.model.micros import datetime_of
from rota.store.contract import LARGEST_PAGE
from rota.store.shared.paging import walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.app import App
    from rota.inspector.facts.alert import AlertRulesFacts

target_argument = click.argument("silenced", metavar="RULE|ID")


@click.group(cls=Group)
def alerts() -> None:
    """List alerts, set rules, silence alerts, test channels."""


@alerts.command("list")
@click.option("--state", type=click.Choice(STATES), metavar="STATE", help=f"Only {listed(STATES, 'or')} alerts.")
@on_a_store
@output_option
def list_alerts(app: App, state: str | None, out: Output) -> None:
    """List what alert rules have found: open alerts first, then the newest first."""
    found = list(walk(app.alerts.list, state=state, limit=LARGEST_PAGE))
    known = app.alerts.rules()
    now = datetime_of(app.open().now())
    out.rows(found, _columns(now), AlertFacts, lambda one: one, empty=_none(known, state))
    if out.form == "table" and known.rules:
        say(_checked(known, now))


@alerts.command("rules")
@on_a_store_or_none
@output_option
def list_rules(app: App, out: Output) -> None:
    """List the alert rules of the app."""
    known = app.alerts.rules()
    now = datetime_of(app.open().now())
    empty = "there are no alert rules; `rota alerts add`, `alerts:` in rota.yaml or app.alerts.add() makes one"
    out.rows(known.rules, _rule_columns(now), AlertRuleFacts, lambda one: one, empty=empty)
    if out.form == "table" and known.rules:
        say(_checked(known, now))


alerts.add_command(add_rule)
alerts.add_command(edit_rule)
alerts.add_command(remove_rule)


@alerts.command("show")
@click.argument("alert_id", metavar="ID")
@on_a_store
@output_option
def show_alert(app: App, alert_id: str, out: Output) -> None:
    """Show everything about one alert: what was found, and what became of each message."""
    facts = app.alerts.get(alert_id)
    now = datetime_of(app.open().now())
    out.page(facts, lambda: _lines(facts, now))


@alerts.command("silence")
@target_argument
@click.option("--until", metavar="TIME", help="When the silence ends, such as 2026-10-14T09:00Z.")
@click.option("--for", "span", metavar="DURATION", callback=check_duration, help="How long it lasts, such as 2h.")
@click.option("--reason", default="", help="Why; it is shown beside the alerts.")
@by_option
@on_a_store
def silence_alerts(app: App, silenced: str, until: str | None, span: str | None, reason: str, by: str) -> None:
    """Send no messages about new trouble of a rule, or of one alert. It is still recorded and shown."""
    end = end_of_pause(datetime_of(app.open().now()), until, span)
    if end is None:
        raise click.UsageError("a silence needs an end: --for 2h, or --until TIME")
    silence = app.alerts.silence(silenced, until=end, reason=reason, by=by)
    say(f"{silenced} is silent until {instant(silence.until)}")


@alerts.command("unsilence")
@target_argument
@by_option
@on_a_store
def unsilence_alerts(app: App, silenced: str, by: str) -> None:
    """End a silence."""
    if not app.alerts.unsilence(silenced, by=by):
        raise AlertNotFound(f"there is no silence of {silenced}; `rota alerts rules` shows silences")
    say(f"{silenced} is no longer silent")


@alerts.command("test")
@click.argument("channel", metavar="CHANNEL")
@by_option
@on_a_store_or_none
def test_channel(app: App, channel: str, by: str) -> None:
    """Send a test message to a channel, from here."""
    app.alerts.test(channel, by=by)
    say(f"channel {channel} took the test message")


def _none(known: AlertRulesFacts, state: str | None) -> str:
    if state is not None:
        return f"no alert is {state}"
    if not known.rules:
        return "there are no alerts and no alert rules; docs/guides/alerts.md shows how to set one"
    return "no alert was raised"


def _checked(known: AlertRulesFacts, now: datetime) -> str:
    if known.checked_at is None:
        return "no node has checked the rules yet; `rota run` starts one"
    return f"rules last checked {relative(known.checked_at, now)}, by {known.checked_by}"


def _columns(now: datetime) -> list[Column[AlertFacts]]:
    return [
        Column("alert", lambda one: one.id),
        Column("state", _state),
        Column("rule", lambda one: one.rule),
        Column("about", lambda one: f"{one.kind} {one.subject}", "wrap"),
        Column("since", lambda one: relative(one.since, now)),
        Column("messages", _messages, dropped=1),
        Column("text", lambda one: one.end_text or one.text, "wrap", dropped=2),
    ]


def _rule_columns(now: datetime) -> list[Column[AlertRuleFacts]]:
    return [
        Column("rule", lambda one: one.name),
        Column("when", lambda one: one.when),
        Column("about", lambda one: f"{one.kind} {one.selects}"),
        Column("after", lambda one: one.after or ""),
        Column("more than", lambda one: "" if one.more_than is None else f"{one.more_than:,}", dropped=2),
        Column("channels", lambda one: "all" if one.channels is None else ", ".join(one.channels), "wrap"),
        Column("silent", lambda one: "" if one.silence is None else f"for {relative(one.silence.until, now)[3:]}"),
        Column("origin", lambda one: one.place or one.origin, dropped=1),
        Column("app", lambda one: one.app, dropped=3),
        Column("problem", lambda one: one.problem or "", "wrap", dropped=4),
    ]


def _state(one: AlertFacts) -> str:
    return f"{one.state}, silent" if one.silence is not None and one.state != "ended" else one.state


def _messages(one: AlertFacts) -> str:
    """The worst outcome of a message."""
    states = [delivery.state for delivery in one.deliveries]
    return next((state for state in ("failed", "waiting", "sent", "dropped") if state in states), "")


def _lines(facts: AlertFacts, now: datetime) -> Iterator[str]:
    yield heading(f"{facts.rule}: {facts.kind} {facts.subject}")
    rows = [["id", facts.id], ["state", _state(facts)], ["condition", facts.when], ["app", facts.app]]
    rows += [["found", facts.text]] if facts.text else []
    rows += [["since", beside(facts.since, now)]]
    rows += [["raised", beside(facts.raised_at, now)]] if facts.raised_at else []
    rows += [["ended", beside(facts.ended_at, now)]] if facts.ended_at else []
    rows += [["why", facts.end_text]] if facts.end_text else []
    rows += [["incident", f"number {facts.number} of this rule and {facts.kind}"]]
    if facts.silence is not None:
        why = f": {facts.silence.reason}" if facts.silence.reason else ""
        rows.append(["silent", f"until {instant(facts.silence.until)}, by {facts.silence.by}{why}"])
    yield from aligned([[cell[0], printable(cell[1])] for cell in rows], indent="  ")
    if facts.deliveries:
        yield ""
        yield heading("messages")
        yield from aligned([_delivery(one, now) for one in facts.deliveries], indent="  ")


def _delivery(one: DeliveryFacts, now: datetime) -> list[str]:
    when = "" if one.at is None else beside(one.at, now)
    if one.next_try is not None:
        when = f"next try {relative(one.next_try, now)}"
    tries = f"{one.tries} tries" if one.tries != 1 else "1 try"
    return [one.channel, one.message, one.state, tries, when, printable(one.error or "")]
