"""Defines alerts, alert rules, channels and silences, as JSON shows them. No secret is among them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.inspector.facts.values import duration
from rota.inspector.reading import all_entries
from rota.model.alerts.decide import FORGOTTEN_AFTER
from rota.model.alerts.incident import KIND, silence_of, unpack_incident
from rota.model.alerts.rule import EVERY, Kind, When
from rota.model.micros import datetime_of, optional_datetime

if TYPE_CHECKING:
    from rota.model.alerts.channel import Channel
    from rota.model.alerts.incident import Delivery, Incident, Silence
    from rota.model.alerts.rule import AlertRule
    from rota.store.contract import Store

AlertState = Literal["pending", "open", "unchecked", "ended"]


class SilenceFacts(Struct, kw_only=True):
    """A silence of a rule or an alert: no new messages are sent about it."""

    target: str  # a rule's name, or an alert's id
    until: datetime
    by: str
    reason: str
    at: datetime
    is_over: bool


class DeliveryFacts(Struct, kw_only=True):
    """One message to one channel."""

    channel: str
    message: Literal["raised", "recovered"]
    state: Literal["waiting", "sent", "failed", "dropped"]
    tries: int
    error: str | None  # of the last try, or why it was dropped
    at: datetime | None  # when it was sent, given up or dropped
    next_try: datetime | None


class AlertFacts(Struct, kw_only=True):
    """The finding of a rule about one schedule, queue or node."""

    id: str
    state: AlertState  # pending: not for long enough; unchecked: no node has checked it for 15 minutes
    app: str
    rule: str
    when: When
    kind: Kind
    subject: str
    text: str
    number: int  # which incident of this rule and subject
    since: datetime
    raised_at: datetime | None
    ended_at: datetime | None
    end_text: str | None
    checked_at: datetime
    silence: SilenceFacts | None  # the one that holds now
    deliveries: list[DeliveryFacts]


class AlertRuleFacts(Struct, kw_only=True):
    """One alert rule."""

    name: str
    when: When
    kind: Kind
    selects: str
    after: str | None
    more_than: int | None
    channels: list[str] | None  # None: every channel
    place: str | None  # in rota.yaml; None: declared in code, or stored
    app: str  # the app whose nodes check it
    origin: Literal["code", "file", "store"]  # only a stored rule can be changed at run time
    version: int | None  # of a stored rule
    problem: str | None  # the problem with a stored rule
    silence: SilenceFacts | None


class ChannelFacts(Struct, kw_only=True):
    """One channel, without its secrets."""

    name: str
    kind: Literal["webhook", "email", "python"]
    to: str
    place: str | None
    problem: str | None  # why it cannot be used


class AlertRulesFacts(Struct, kw_only=True):
    """The rules that this app declares, those that the store keeps, and the last check of the rules of this app."""

    rules: list[AlertRuleFacts]
    channels: list[ChannelFacts]
    silences: list[SilenceFacts]
    checked_at: datetime | None
    checked_by: str | None


class AlertTestFacts(Struct, kw_only=True):
    """The result of a test message."""

    channel: str
    sent: bool
    error: str | None


def silence_facts(silence: Silence, now: int) -> SilenceFacts:
    return SilenceFacts(
        target=silence.target,
        until=datetime_of(silence.until),
        by=silence.by,
        reason=silence.reason,
        at=datetime_of(silence.at),
        is_over=silence.until <= now,
    )


def alert_facts(incident: Incident, silences: dict[str, Silence], now: int) -> AlertFacts:
    silence = silence_of(incident, silences, now)
    return AlertFacts(
        id=incident.id,
        state=alert_state(incident, now),
        app=incident.app,
        rule=incident.rule,
        when=incident.when,
        kind=incident.kind,
        subject=incident.subject,
        text=incident.text,
        number=incident.number,
        since=datetime_of(incident.since),
        raised_at=optional_datetime(incident.raised_at),
        ended_at=optional_datetime(incident.ended_at),
        end_text=incident.end_text or None,
        checked_at=datetime_of(incident.checked_at),
        silence=None if silence is None else silence_facts(silence, now),
        deliveries=[_delivery_facts(one) for one in incident.deliveries],
    )


def open_alerts(store: Store, now: int) -> list[Incident]:
    """The open incidents of alert rules; not those that no node checks any more."""
    found = (unpack_incident(entry.data) for entry in all_entries(store, KIND))
    return [incident for incident in found if incident is not None and alert_state(incident, now) == "open"]


def alert_state(incident: Incident, now: int) -> AlertState:
    if incident.state != "ended" and now - incident.checked_at > FORGOTTEN_AFTER:
        return "unchecked"
    return incident.state


def rule_facts(
    rule: AlertRule, silence: Silence | None, now: int, *, app: str, version: int | None = None, problem: str = ""
) -> AlertRuleFacts:
    return AlertRuleFacts(
        name=rule.name,
        when=rule.when,
        kind=rule.kind,
        selects=rule.selects,
        after=duration(rule.after),
        more_than=rule.more_than if rule.when == "length" else None,
        channels=None if rule.channels is None else list(rule.channels),
        place=rule.place or None,
        app=app,
        origin="store" if version is not None else "file" if rule.place else "code",
        version=version,
        problem=problem or None,
        silence=silence_facts(silence, now) if silence is not None and silence.until > now else None,
    )


def rule_options(rule: AlertRule) -> dict[str, object]:
    """A rule by the keys of rota.yaml."""
    said = {
        "when": rule.when,
        rule.kind: None if rule.selects == EVERY else rule.selects,
        "after": duration(rule.after),
        "more_than": rule.more_than if rule.when == "length" else None,
        "channels": None if rule.channels is None else list(rule.channels),
    }
    return {name: value for name, value in said.items() if value is not None}


def channel_facts(channel: Channel, problems: list[str]) -> ChannelFacts:
    return ChannelFacts(
        name=channel.name,
        kind=channel.kind,
        to=channel.shown,
        place=channel.place or None,
        problem="; ".join(problems) or None,
    )


def _delivery_facts(one: Delivery) -> DeliveryFacts:
    return DeliveryFacts(
        channel=one.channel,
        message=one.message,
        state=one.state,
        tries=one.tries,
        error=one.error or None,
        at=datetime_of(one.at) if one.at else None,
        next_try=datetime_of(max(one.due_at, one.claimed_until)) if one.state == "waiting" else None,
    )
