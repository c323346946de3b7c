"""Alerts over HTTP: the rules, what they have found, silences, and a test of each channel."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rota.errors import AlertNotFound, AlertNotSent
from rota.inspector.facts.alert import AlertFacts, AlertRulesFacts, AlertTestFacts, SilenceFacts
from rota.model.micros import datetime_of, span_of
from rota.store.contract import Page
from rota.web.refusals import Refusal, at_fault
from rota.web.route import Ask, Route
from rota.web.types import Body, Duration, Instant, Limit, Name, Query, Text

AlertId = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
AlertCursor = Annotated[
    str, Meta(pattern=r"^[0-3]-[0-9]{18}-[0-9a-f]{16}\Z", description="the cursor of the page before")
]


class AlertPath(Struct, frozen=True):
    """Which alert."""

    alert_id: AlertId


class AlertsQuery(Query, frozen=True, kw_only=True):
    """Which alerts."""

    state: Literal["pending", "open", "unchecked", "ended"] | None = None
    limit: Limit = 50
    cursor: AlertCursor | None = None


class TargetBody(Body, frozen=True, kw_only=True):
    """A rule's name, or an alert's id."""

    target: Name


class SilenceBody(TargetBody, frozen=True, kw_only=True):
    """What is silenced, why, and until when: `until`, or `last` from now on."""

    until: Instant | None = None
    last: Duration | None = None  # from now on
    reason: Text = ""


class ChannelBody(Body, frozen=True, kw_only=True):
    """Which channel."""

    channel: Name


def list_alerts(ask: Ask) -> Page[AlertFacts]:
    query: AlertsQuery = ask.query
    return ask.app.alerts.list(state=query.state, limit=query.limit, cursor=query.cursor)


def list_alert_rules(ask: Ask) -> AlertRulesFacts:
    return ask.app.alerts.rules()


def get_alert(ask: Ask) -> AlertFacts:
    return ask.app.alerts.get(ask.path.alert_id)


def silence_alerts(ask: Ask) -> SilenceFacts:
    body: SilenceBody = ask.body
    if (body.until is None) == (body.last is None):
        raise Refusal(422, "bad_option", "a silence needs one of `until` and `last`", field="until")
    until = body.until
    if until is None:
        until = datetime_of(ask.app.open().now()) + timedelta(microseconds=span_of(body.last or ""))
    with at_fault("target", AlertNotFound):
        return ask.app.alerts.silence(body.target, until=until, reason=body.reason, by=ask.by)


def unsilence_alerts(ask: Ask) -> None:
    with at_fault("target", AlertNotFound):
        if not ask.app.alerts.unsilence(ask.body.target, by=ask.by):
            raise AlertNotFound(f"there is no silence of {ask.body.target!r}")


def test_alert_channel(ask: Ask) -> AlertTestFacts:
    channel = ask.body.channel
    try:
        with at_fault("channel", AlertNotFound):
            ask.app.alerts.test(channel, by=ask.by)
    except AlertNotSent as err:
        return AlertTestFacts(channel=channel, sent=False, error=str(err))
    return AlertTestFacts(channel=channel, sent=True, error=None)


_ALERTS = "/api/v1/alerts"

ROUTES = (
    Route(method="GET", path=_ALERTS, role="read", handle=list_alerts, query=AlertsQuery, answer=Page[AlertFacts],
          says="What alert rules have found: open alerts first, then the newest first."),
    Route(method="GET", path=f"{_ALERTS}/rules", role="read", handle=list_alert_rules, answer=AlertRulesFacts,
          says="Alert rules, channels (without secrets) and silences, and when the rules were checked last."),
    Route(method="POST", path=f"{_ALERTS}/silence", role="operate", handle=silence_alerts, body=SilenceBody,
          answer=SilenceFacts, says="Send no messages about new trouble of a rule, or of one alert, until a time."),
    Route(method="POST", path=f"{_ALERTS}/unsilence", role="operate", handle=unsilence_alerts, body=TargetBody,
          status=204, says="End a silence."),
    Route(method="POST", path=f"{_ALERTS}/test", role="operate", handle=test_alert_channel, body=ChannelBody,
          answer=AlertTestFacts, says="Send a test message to a channel, from this process."),
    Route(method="GET", path=f"{_ALERTS}/{{alert_id}}", role="read", handle=get_alert, params=AlertPath,
          answer=AlertFacts, says="One alert, and what became of each message about it."),
)  # fmt: skip
