"""Shows open and past alerts, the rules and their silences, and tests channels."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rota.client.alerts import LONGEST_REASON
from rota.errors import AlertNotFound, AlertNotSent, BadOption, BadTrigger
from rota.inspector.wall_times import time_from
from rota.model.micros import datetime_of, span_of
from rota.model.names import check_name
from rota.triggers.zone import find_zone
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.said_words import say_error

if TYPE_CHECKING:
    from datetime import datetime

    from rota.inspector.facts.alert import AlertFacts

SHOWN = 100
SPANS = ("1h", "4h", "1d", "7d")


def show_alerts(visit: Visit) -> View:
    return _view(visit)


def _view(visit: Visit, fault: str = "") -> View:
    alerts = visit.app.alerts
    page, known = alerts.list(limit=SHOWN), alerts.rules()
    live = [one for one in page.items if one.state != "ended"]
    values = {
        "live": live,
        "ended": [one for one in page.items if one.state == "ended"],
        "more": page.cursor is not None,
        "open": sum(one.state == "open" for one in live),
        "undelivered": sum(_is_undelivered(one) for one in page.items),
        "rules": known.rules,
        "channels": known.channels,
        "silences": [one for one in known.silences if not one.is_over],
        "checked_at": known.checked_at,
        "spans": SPANS,
        "fault": fault,
        "app_name": visit.app.name,
    }
    return View(template="alerts.html", values=values, status=422 if fault else 200)


def _is_undelivered(alert: AlertFacts) -> bool:
    """Whether a channel has not taken a message yet, or never will."""
    return any(one.state == "failed" or (one.state == "waiting" and one.error) for one in alert.deliveries)


def silence_alerts(visit: Visit) -> View | GoTo:
    target, reason = visit.form.get("target"), visit.form.get("reason").strip()[:LONGEST_REASON]
    try:
        visit.app.alerts.silence(check_name("alert", target), until=_end(visit), reason=reason, by=visit.by)
    except (AlertNotFound, BadOption, BadTrigger) as err:
        return _view(visit, say_error(visit.words, err))
    return GoTo(path="/alerts", flash=Flash(key="alerts.silenced", values={"name": target}))


def _end(visit: Visit) -> datetime:
    """The time that was typed, by the visitor's clock; else so long from now on."""
    now = datetime_of(visit.app.open().now())
    if until := visit.form.get("until").strip():
        return time_from(until, find_zone(visit.words.zone.key), now)
    last = visit.form.get("last")
    return now + timedelta(microseconds=span_of(last if last in SPANS else SPANS[0]))


def unsilence_alerts(visit: Visit) -> GoTo:
    target = visit.form.get("target")
    visit.app.alerts.unsilence(target, by=visit.by)
    return GoTo(path="/alerts", flash=Flash(key="alerts.unsilenced", values={"name": target}))


def try_channel(visit: Visit) -> GoTo:
    channel = visit.form.get("channel")
    try:
        visit.app.alerts.test(channel, by=visit.by)
    except AlertNotSent as err:
        said: dict[str, str | int] = {"name": channel, "error": say_error(visit.words, err).unescape()}
        return GoTo(path="/alerts", flash=Flash(key="alerts.not_sent", values=said, tone="bad"))
    return GoTo(path="/alerts", flash=Flash(key="alerts.tested", values={"name": channel}))


PAGES = (
    Page(path="/alerts", role="read", handle=show_alerts),
    Page(method="POST", path="/alerts/silence", role="operate", handle=silence_alerts),
    Page(method="POST", path="/alerts/unsilence", role="operate", handle=unsilence_alerts),
    Page(method="POST", path="/alerts/test", role="operate", handle=try_channel),
)
