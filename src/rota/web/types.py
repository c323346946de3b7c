"""Types that requests share: names, instants, pages. Their limits are checked, and shown in the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

NAME = "^[A-Za-z0-9._:-]{1,127}$"

Name = Annotated[str, Meta(pattern=NAME, description="1 to 127 of the characters A-Z a-z 0-9 . _ : -")]
ScheduleId = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,127}$")]
JobId = Annotated[str, Meta(pattern="^[A-Za-z0-9._:-]{1,255}$")]
Instant = Annotated[datetime, Meta(tz=True, description="with an offset, as in 2026-01-31T09:00:00Z")]
Duration = Annotated[str, Meta(max_length=64, examples=["90s", "1h30m"], description="such as 90s, 5m or 1h30m")]
Priority = Annotated[int, Meta(ge=-100, le=100)]
Text = Annotated[str, Meta(max_length=1_000, pattern="^[^\\x00]*$")]
Key = Annotated[str, Meta(min_length=1, max_length=255, pattern="^[^\\x00]*$")]
Limit = Annotated[int, Meta(ge=1, le=200)]
Cursor = Annotated[str, Meta(max_length=300, pattern="^[A-Za-z0-9._:-]+$", description="of the page before")]
Arguments = list[Any]
Named = dict[str, Any]


class PageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list."""

    limit: Limit = 50
    cursor: Cursor | None = None


class ReasonBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why something is done; it is kept."""

    reason: Text = ""
