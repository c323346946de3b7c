"""Decides which incidents begin and end, which messages are sent now, and what becomes of a message that failed.

Pure: a caller applies each change as an edit of the incident's entry, guarded by the version that was decided on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.model.alerts.findings import find, finding_text, is_held, why_ended
from rota.model.alerts.incident import Delivery, Incident, Silence, incident_id, is_of, silence_of
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rota.model.alerts.findings import AlertSnapshot
    from rota.model.alerts.incident import Message
    from rota.model.alerts.rule import AlertRule

MOST_OPEN = 100  # incidents of one rule at a time: a thousand messages at once are of no use
RECHECK = 300 * SECOND  # an open incident's record says every five minutes that it was checked
FORGOTTEN_AFTER = 900 * SECOND  # an incident that no node has checked for so long belongs to a rule that was removed
KEPT_FOR = 30 * 24 * 3600 * SECOND  # an ended incident
CLAIM_FOR = 120 * SECOND
TRY_FOR = 60 * SECOND  # longer than a try takes; with less of its claim left, a message is not begun
FIRST_PAUSE = 30 * SECOND
LONGEST_PAUSE = 3600 * SECOND
MOST_TRIES = 10  # over about three hours
RULE_REMOVED = finding_text("rule_removed")

_replace = msgspec.structs.replace


class Kept(NamedTuple):
    """An incident with the version of its entry."""

    incident: Incident
    version: int


class IncidentChange(NamedTuple):
    """The change of one incident. `after` is None if its record is removed. Version 0: the incident is new."""

    before: Incident | None
    after: Incident | None
    version: int
    send: tuple[Delivery, ...] = ()  # the messages for the node that records this

    @property
    def id(self) -> str:
        one = self.after or self.before
        assert one is not None  # noqa: S101 - one of them is given
        return one.id


class Context(NamedTuple):
    """The facts of a decision beside the rules: the app, this node, its channels, the silences and the time."""

    app: str
    node: str
    channels: Sequence[str]  # that this node can send to
    silences: Mapping[str, Silence]  # by target
    now: int
    busy: frozenset[str] = frozenset()  # channels that this node sends to already: another node may be able to send


def decide(
    rules: Iterable[AlertRule], seen: AlertSnapshot, kept: Mapping[str, Kept], around: Context
) -> list[IncidentChange]:
    """Every change of an incident of this app, with the messages that this node then sends."""
    wanted: dict[str, Incident | None] = {}
    for rule in rules:
        wanted |= _of_rule(rule, seen, kept, around)
    for name, (incident, _) in kept.items():
        if incident.app == around.app and name not in wanted:
            wanted[name] = _of_no_rule(incident, around.now)
    changes = (_change(after, kept.get(name), around) for name, after in wanted.items())
    return [change for change in changes if change is not None]


def limits_reached(rules: Iterable[AlertRule], seen: AlertSnapshot) -> set[str]:
    """The limits that a check has reached, in words, so that nothing is left out silently."""
    said = (
        set()
        if seen.is_whole
        else {"there are more schedules than a check of alert rules reads; name them by prefixes"}
    )
    for rule in rules:
        if len(find(rule, seen)) > MOST_OPEN:
            said.add(
                f"alert rule {rule.name} is true for more than {MOST_OPEN} {rule.kind}s; the others raise no alert"
            )
    return said


def _of_rule(
    rule: AlertRule, seen: AlertSnapshot, kept: Mapping[str, Kept], around: Context
) -> dict[str, Incident | None]:
    """The incidents of a rule after a check, those that stay as they are included."""
    mine = {
        one.subject: one for one, _ in kept.values() if one.app == around.app and is_of(one, rule) and _is_live(one)
    }
    found = find(rule, seen)
    chosen = sorted(found, key=lambda subject: (subject not in mine, subject))[:MOST_OPEN]
    wanted: dict[str, Incident | None] = {}
    for subject in chosen:
        name = incident_id(around.app, rule.name, subject)
        last = kept[name].incident if name in kept else None
        wanted[name] = _seen_again(rule, subject, found[subject], last, around)
    for subject, incident in mine.items():
        if subject in found:
            continue
        if rule.kind == "schedule" and not seen.is_whole and subject not in seen.schedules:
            wanted[incident.id] = incident  # it was not read, so nothing is known of it
        elif incident.state == "pending":
            wanted[incident.id] = None
        else:
            wanted[incident.id] = ended(incident, why_ended(rule, subject, seen), around)
    for one, _ in kept.values():
        is_past = one.app == around.app and one.rule == rule.name and one.again_since is not None
        if is_past and one.subject not in found:
            wanted.setdefault(one.id, _replace(one, again_since=None))
    return wanted


def _seen_again(rule: AlertRule, subject: str, text: str, last: Incident | None, around: Context) -> Incident:
    now = around.now
    if last is not None and is_of(last, rule) and _is_live(last):
        if last.state == "pending" and now - last.since >= rule.after:
            return _raised(last, text, rule, around)
        return _replace(last, checked_at=now) if now - last.checked_at >= RECHECK else last
    since = now if last is None or last.again_since is None else last.again_since
    if last is not None and not _is_live(last) and is_held(rule) and now - since < rule.after:
        return _replace(last, again_since=since)  # its record stays: a message about its end may still wait
    begun = Incident(
        app=around.app,
        rule=rule.name,
        when=rule.when,
        subject=subject,
        state="pending",
        since=since,
        checked_at=now,
        number=1 if last is None else last.number + 1,
    )
    return begun if is_held(rule) and now - since < rule.after else _raised(begun, text, rule, around)


def _raised(incident: Incident, text: str, rule: AlertRule, around: Context) -> Incident:
    channels = around.channels if rule.channels is None else rule.channels
    return _replace(
        incident,
        state="open",
        text=text,
        raised_at=around.now,
        checked_at=around.now,
        deliveries=tuple(Delivery(channel=name, message="raised", due_at=around.now) for name in channels),
    )


def ended(incident: Incident, text: str, around: Context) -> Incident:
    """The incident at its end: channels get a message, unless a silence kept the first one from them."""
    now = around.now
    is_silent = silence_of(incident, around.silences, now) is not None
    deliveries: list[Delivery] = []
    for one in incident.deliveries:
        is_unsent = one.state == "waiting" and not one.tries and one.claimed_until <= now
        if is_unsent and is_silent:
            deliveries.append(_replace(one, state="dropped", error="silenced", at=now))
            continue
        deliveries.append(one)
        if one.state in {"waiting", "sent"}:
            deliveries.append(Delivery(channel=one.channel, message="recovered", due_at=now))
    return _replace(incident, state="ended", ended_at=now, checked_at=now, end_text=text, deliveries=tuple(deliveries))


def _of_no_rule(incident: Incident, now: int) -> Incident | None:
    """An incident of a rule that this node does not have. Another version of the app may still have it."""
    if not _is_live(incident):
        is_old = now - (incident.ended_at or incident.checked_at) > KEPT_FOR
        return None if is_old else incident
    return incident if now - incident.checked_at < FORGOTTEN_AFTER else ended_with_rule(incident, now)


def ended_with_rule(incident: Incident, now: int) -> Incident:
    """The incident of a rule that was removed: no message is sent any more."""
    dropped = tuple(
        _replace(one, state="dropped", error=RULE_REMOVED, at=now) if one.state == "waiting" else one
        for one in incident.deliveries
    )
    return _replace(incident, state="ended", ended_at=now, end_text=RULE_REMOVED, deliveries=dropped)


def _change(after: Incident | None, kept: Kept | None, around: Context) -> IncidentChange | None:
    before = None if kept is None else kept.incident
    version = 0 if kept is None else kept.version
    if after is None:
        return IncidentChange(before, None, version)
    claimed, sends = claim(after, around)
    return None if claimed == before else IncidentChange(before, claimed, version, sends)


def claim(incident: Incident, around: Context) -> tuple[Incident, tuple[Delivery, ...]]:
    """The incident with the messages that are due now claimed by this node; and those messages."""
    now, taken = around.now, []
    is_silent = silence_of(incident, around.silences, now) is not None
    after: list[Delivery] = []
    for one in incident.deliveries:
        if (
            _is_due(one, incident, now)
            and one.channel in around.channels
            and one.channel not in around.busy
            and not (is_silent and one.message == "raised")
        ):
            one = _replace(one, claimed_by=around.node, claimed_until=now + CLAIM_FOR)  # noqa: PLW2901
            taken.append(one)
        after.append(one)
    return (_replace(incident, deliveries=tuple(after)) if taken else incident), tuple(taken)


def _is_due(one: Delivery, incident: Incident, now: int) -> bool:
    if one.state != "waiting" or one.due_at > now or one.claimed_until > now:
        return False
    if one.message == "raised":
        return True
    first = (other for other in incident.deliveries if other.channel == one.channel and other.message == "raised")
    return all(other.state != "waiting" for other in first)  # never the end before the beginning


def delivered(incident: Incident, number: int, channel: str, message: Message, error: str, now: int) -> Incident | None:
    """The incident after one try; an empty error: it was sent. None: this message is no longer needed."""
    if incident.number != number:
        return None
    deliveries = tuple(
        _after_try(one, error, now)
        if (one.channel, one.message) == (channel, message) and one.state == "waiting"
        else one
        for one in incident.deliveries
    )
    return None if deliveries == incident.deliveries else _replace(incident, deliveries=deliveries)


def _after_try(one: Delivery, error: str, now: int) -> Delivery:
    tries = one.tries + 1
    if not error:
        return _replace(one, state="sent", tries=tries, at=now, error="", claimed_by="", claimed_until=0)
    if tries >= MOST_TRIES:
        return _replace(one, state="failed", tries=tries, at=now, error=error, claimed_by="", claimed_until=0)
    due_at = now + pause_after(tries)
    return _replace(one, tries=tries, due_at=due_at, error=error, claimed_by="", claimed_until=0)


def pause_after(tries: int) -> int:
    """How long to wait after so many failed tries: 30 s, doubled each time, at most an hour."""
    return min(LONGEST_PAUSE, FIRST_PAUSE << (tries - 1))


def _is_live(incident: Incident) -> bool:
    return incident.state != "ended"
