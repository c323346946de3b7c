"""Builds the messages that are sent to channels: one value per message, its JSON body and its signature."""

from __future__ import annotations

import hmac
from hashlib import sha256

import msgspec
from msgspec import Struct

from rota.model.alerts.incident import Incident, delivery_id
from rota.model.micros import iso_text

TIMESTAMP, SIGNATURE, DELIVERY = "Rota-Timestamp", "Rota-Signature", "Rota-Delivery"


class Alert(Struct, frozen=True, kw_only=True):
    """One message about an incident, as handlers, webhooks and e-mail get it."""

    id: str  # the same for each try of the same message
    event: str  # alert.raised, alert.recovered or alert.test
    text: str  # one sentence
    app: str
    rule: str
    when: str
    kind: str  # of the subject: schedule, queue or node; channel in a test
    subject: str
    alert_id: str
    number: int  # which incident of this rule and subject
    raised_at: str | None = None  # ISO text, in UTC
    ended_at: str | None = None

    @property
    def is_over(self) -> bool:
        return self.event == "alert.recovered"

    @property
    def title(self) -> str:
        word = {"alert.raised": "Alert", "alert.recovered": "Recovered"}.get(self.event, "Test")
        return f"{word}: {self.rule} ({self.subject})"


def alert_of(incident: Incident, message: str, channel: str) -> Alert:
    """The message of an incident to a channel."""
    is_over = message == "recovered"
    return Alert(
        id=delivery_id(incident, message, channel),
        event=f"alert.{message}",
        text=incident.end_text if is_over else incident.text,
        app=incident.app,
        rule=incident.rule,
        when=incident.when,
        kind=incident.kind,
        subject=incident.subject,
        alert_id=incident.id,
        number=incident.number,
        raised_at=None if incident.raised_at is None else iso_text(incident.raised_at),
        ended_at=iso_text(incident.ended_at) if is_over and incident.ended_at is not None else None,
    )


def sample_alert(app: str, channel: str, now: int, by: str) -> Alert:
    """A message that only shows that a channel works."""
    return Alert(
        id=f"test-{now}-{channel}",
        event="alert.test",
        text=f"This is a test of the channel {channel}, sent by {by}.",
        app=app,
        rule="test",
        when="test",
        kind="channel",
        subject=channel,
        alert_id="",
        number=0,
        raised_at=iso_text(now),
    )


def body_of(alert: Alert) -> bytes:
    return msgspec.json.encode(alert)


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over the timestamp, a dot and the body, so that an old message cannot be sent again as a new one."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, sha256).hexdigest()
    return f"v1={digest}"


def signed_headers(alert: Alert, secret: str, timestamp: int, body: bytes) -> dict[str, str]:
    return {
        TIMESTAMP: str(timestamp),
        SIGNATURE: signature(secret, timestamp, body),
        DELIVERY: alert.id,
    }
