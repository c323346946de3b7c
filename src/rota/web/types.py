"""Defines types that requests share: names, instants, pages. The OpenAPI document shows their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.sentences import sentence

WANTED = {  # what a field wants, by the description that the OpenAPI document has
    str(one): one
    for one in (
        sentence("wanted.name", "1 to 127 of the characters A-Z a-z 0-9 . _ : -"),
        sentence("wanted.schedule", "1 to 127 of the characters A-Z a-z 0-9 _ -"),
        sentence("wanted.instant", "an instant with an offset, as in 2026-01-31T09:00:00Z"),
        sentence("wanted.delay", "a duration such as 90s, 1h30m, 250ms or 0s"),
        sentence("wanted.fine", "a duration such as 90s, 1h30m or 250ms; at least 1ms"),
        sentence("wanted.duration", "a duration such as 90s, 5m or 1h30m"),
        sentence("wanted.bound", "a date such as 2026-01-31, or an instant such as 2026-01-31T09:00:00Z"),
        sentence("wanted.zone", "a timezone's IANA name, such as Europe/Paris"),
    )
}
_name, _schedule, _instant, _delay, _fine, _duration, _bound, _zone = WANTED
NAME = r"^[A-Za-z0-9._:-]{1,127}\Z"

Name = Annotated[str, Meta(pattern=NAME, description=_name)]
ScheduleId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,127}\Z", description=_schedule)]
JOB_ID = r"^[A-Za-z0-9._:-]{1,255}\Z"
JobId = Annotated[str, Meta(pattern=JOB_ID)]
Instant = Annotated[datetime, Meta(tz=True, description=_instant)]
_FINE = r"^([0-9]{1,10}(\.[0-9]{1,9})?(w|d|h|m|s|ms)){1,6}\Z"
Delay = Annotated[str, Meta(pattern=_FINE, description=_delay)]
FineDuration = Annotated[str, Meta(pattern=_FINE, description=_fine)]
DURATION = r"^([0-9]{1,10}[wdhms]){1,5}\Z"
Duration = Annotated[str, Meta(pattern=DURATION, description=_duration)]
Priority = Annotated[int, Meta(ge=-100, le=100)]
Text = Annotated[str, Meta(max_length=1_000, pattern=r"^[^\x00]*\Z")]
Key = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00]*\Z")]
Limit = Annotated[int, Meta(ge=1, le=200)]
_OF_THE_PAGE_BEFORE = "the cursor of the page before"
_64_BITS = "[0-9]{1,18}|[1-8][0-9]{18}|9[01][0-9]{17}"  # what every store can count up to
NumberCursor = Annotated[str, Meta(pattern=rf"^({_64_BITS})\Z", description=_OF_THE_PAGE_BEFORE)]
NameCursor = Annotated[str, Meta(pattern=NAME, description=_OF_THE_PAGE_BEFORE)]
NoteCursor = Annotated[str, Meta(pattern=r"^[0-9]{1,18}-[A-Za-z0-9._:-]{1,127}\Z", description=_OF_THE_PAGE_BEFORE)]
Bound = Annotated[str, Meta(max_length=40, description=_bound)]
Zone = Annotated[str, Meta(max_length=64, description=_zone)]
Arguments = list[Any]
Named = dict[str, Any]


class Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a query."""


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is sent. An unknown field is refused, so that a typing mistake is not silent."""


class NumbersQuery(Query, frozen=True, kw_only=True):
    """Which page of a list in the order of time."""

    limit: Limit = 50
    cursor: NumberCursor | None = None


class NamesQuery(Query, frozen=True, kw_only=True):
    """Which page of a list in the order of names."""

    limit: Limit = 50
    cursor: NameCursor | None = None


class NotesQuery(Query, frozen=True, kw_only=True):
    """Which page of a list of changes."""

    limit: Limit = 50
    cursor: NoteCursor | None = None


class ReasonBody(Body, frozen=True, kw_only=True):
    """Why something is done; it is kept."""

    reason: Text = ""


class PauseBody(ReasonBody, frozen=True, kw_only=True):
    """Why, and until when."""

    until: Instant | None = None
