"""Lists alerts and rules, sets silences and tests channels over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rota.errors import AlertNotFound, AlertNotSent
from rota.inspector.facts.alert import AlertFacts, AlertRuleFacts, AlertRulesFacts, AlertTestFacts, SilenceFacts
from rota.model.alerts.rule import MOST_LENGTH, When
from rota.model.alerts.stored_rule import RULE_KIND
from rota.model.micros import datetime_of, span_of
from rota.store.contract import Page
from rota.web.refusals import Refusal, at_fault
from rota.web.route import Answer, Ask, Route
from rota.web.types import Body, Duration, Instant, Limit, Name, Query, Text

AlertId = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
Pattern = Annotated[
    str, Meta(pattern=r"^(?=.)[A-Za-z0-9._:-]{0,127}\*?\Z", description="a name, or a prefix that ends in *")
]
AlertCursor = Annotated[
    str, Meta(pattern=r"^[0-3]-[0-9]{18}-[0-9a-f]{16}\Z", description="the cursor of the page before")
]


class AlertPath(Struct, frozen=True):
    """Which alert."""

    alert_id: AlertId


class RulePath(Struct, frozen=True):
    """Which alert rule."""

    rule: Name


class AlertRuleBody(Body, frozen=True, kw_only=True):
    """A condition, what it is about, and the channels to notify."""

    when: When
    schedule: Pattern | None = None  # for fails, late and no_success; without it, all schedules
    queue: Pattern | None = None  # for no_worker, oldest and length; without it, all queues
    node: Pattern | None = None  # for node_gone; without it, all nodes
    after: Duration | None = None
    more_than: Annotated[int, Meta(ge=0, le=MOST_LENGTH)] | None = None  # for length
    channels: list[Name] | None = None  # without it, all channels are notified


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


def get_alert_rule(ask: Ask) -> Answer:
    return _shown(ask.app.alerts.rule(ask.path.rule))


def put_alert_rule(ask: Ask) -> Answer:
    body: AlertRuleBody = ask.body
    name = ask.path.rule
    is_known = bool(ask.app.open().get_entries(RULE_KIND, [name]))
    fields = {field: getattr(body, field) for field in AlertRuleBody.__struct_fields__}
    with at_fault("channels", AlertNotFound):
        facts = ask.app.alerts.put(name, **fields, by=ask.by, expect_version=ask.expect_version)
    return _shown(facts, 200 if is_known else 201)


def delete_alert_rule(ask: Ask) -> None:
    if not ask.app.alerts.remove(ask.path.rule, by=ask.by, expect_version=ask.expect_version):
        raise AlertNotFound(f"there is no alert rule {ask.path.rule!r}")


def _shown(facts: AlertRuleFacts, status: int = 200) -> Answer:
    return Answer(facts, status, {} if facts.version is None else {"ETag": f'"{facts.version}"'})


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
_RULE = f"{_ALERTS}/rules/{{rule}}"

ROUTES = (
    Route(method="GET", path=_ALERTS, role="read", handle=list_alerts, query=AlertsQuery, answer=Page[AlertFacts],
          says="What alert rules have found: open alerts first, then the newest first."),
    Route(method="GET", path=f"{_ALERTS}/rules", role="read", handle=list_alert_rules, answer=AlertRulesFacts,
          says="Alert rules, channels (without secrets) and silences, and when the rules were checked last."),
    Route(method="GET", path=_RULE, role="read", handle=get_alert_rule, params=RulePath, answer=AlertRuleFacts,
          says="One alert rule; the version of a stored one is its ETag."),
    Route(method="PUT", path=_RULE, role="operate", handle=put_alert_rule, params=RulePath, body=AlertRuleBody,
          answer=AlertRuleFacts, is_versioned=True, also={201: "Created"},
          says="Store an alert rule, or replace it; nodes check it within a minute. A declared rule is refused."),
    Route(method="DELETE", path=_RULE, role="operate", handle=delete_alert_rule, params=RulePath, status=204,
          is_versioned=True, says="Remove a stored alert rule and end its alerts. A declared rule is refused."),
    Route(method="POST", path=f"{_ALERTS}/silence", role="operate", handle=silence_alerts, body=SilenceBody,
          answer=SilenceFacts, says="Send no messages about new trouble of a rule, or of one alert, until a time."),
    Route(method="POST", path=f"{_ALERTS}/unsilence", role="operate", handle=unsilence_alerts, body=TargetBody,
          status=204, says="End a silence."),
    Route(method="POST", path=f"{_ALERTS}/test", role="operate", handle=test_alert_channel, body=ChannelBody,
          answer=AlertTestFacts, says="Send a test message to a channel, from this process."),
    Route(method="GET", path=f"{_ALERTS}/{{alert_id}}", role="read", handle=get_alert, params=AlertPath,
          answer=AlertFacts, says="One alert, and what became of each message about it."),
)  # fmt: skip
