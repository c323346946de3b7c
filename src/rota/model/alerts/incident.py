"""Defines incidents as the store keeps them: one entry per rule and subject, with the state of each message about it.

An incident is raised, ended and delivered by edits of its entry, each guarded by its version. So of several nodes that
see the same trouble, one raises it, and a restart neither repeats nor forgets a message.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from rota.model.alerts.rule import KIND_OF, AlertRule, Kind, When

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND = "alert"  # of its entry
SILENCE_KIND = "alert_silence"
WATCH_KIND = "alert_watch"  # one entry per app: when its rules were checked last

State = Literal["pending", "open", "ended"]
Message = Literal["raised", "recovered"]
DeliveryState = Literal["waiting", "sent", "failed", "dropped"]


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of an incident to one channel."""

    channel: str
    message: Message
    state: DeliveryState = "waiting"
    tries: int = 0
    due_at: int = 0  # not before
    claimed_by: str = ""  # the node that sends it now
    claimed_until: int = 0  # if that node has not reported by then, another one sends it
    error: str = ""  # of the last try
    at: int = 0  # when it was sent, failed for good, or was dropped


class Incident(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The finding of a rule about one subject, with its state and its messages."""

    app: str
    rule: str
    when: When
    subject: str  # the id of a schedule or node, or the name of a queue
    state: State
    since: int  # when the condition was first seen
    checked_at: int  # when a node last found it still true, to about five minutes
    text: str = ""  # what was found
    number: int = 1  # which incident of this rule and subject
    raised_at: int | None = None
    ended_at: int | None = None
    end_text: str = ""
    again_since: int | None = None  # of an ended one: since when the condition is true again, but not for long enough
    deliveries: tuple[Delivery, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind of its subject."""
        return KIND_OF[self.when]

    @property
    def id(self) -> str:
        return incident_id(self.app, self.rule, self.subject)


class Silence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Suppresses new messages about a rule or an incident: until when, why, and by whose decision."""

    target: str  # a rule's name, or an incident's id
    until: int
    by: str = ""
    reason: str = ""
    at: int = 0


class Watch(Struct, frozen=True, kw_only=True):
    """When the rules of an app were checked last, and by which node."""

    at: int
    by: str
    through: int | None = None  # up to when a check has also recorded its findings; None: as `at`


def incident_id(app: str, rule: str, subject: str) -> str:
    """16 hex digits, the same for every incident of a rule and subject."""
    return sha256(f"{app}\n{rule}\n{subject}".encode()).hexdigest()[:16]


def delivery_id(incident: Incident, message: str, channel: str) -> str:
    """The same id for every try, so that a receiver recognizes a repeated message."""
    return f"{incident.id}-{incident.number}-{message}-{channel}"


def silence_of(incident: Incident, silences: Mapping[str, Silence], now: int) -> Silence | None:
    """The silence of its rule or of itself that holds now; of two, the one that ends later."""
    found = [one for target in (incident.rule, incident.id) if (one := silences.get(target)) and one.until > now]
    return max(found, key=lambda one: one.until, default=None)


def is_of(incident: Incident, rule: AlertRule) -> bool:
    """Whether a rule that is declared now is still about the same thing."""
    return rule.name == incident.rule and rule.when == incident.when


_incidents = msgspec.json.Decoder(Incident)
_silences = msgspec.json.Decoder(Silence)
_watches = msgspec.json.Decoder(Watch)


def pack(record: Incident | Silence | Watch) -> str:
    return msgspec.json.encode(record).decode()


def unpack_incident(data: str) -> Incident | None:
    """The incident of an entry; None if it cannot be read, because another version or a person wrote it."""
    try:
        return _incidents.decode(data)
    except msgspec.MsgspecError:
        return None


def unpack_silence(data: str) -> Silence | None:
    try:
        return _silences.decode(data)
    except msgspec.MsgspecError:
        return None


def unpack_watch(data: str) -> Watch | None:
    try:
        return _watches.decode(data)
    except msgspec.MsgspecError:
        return None
