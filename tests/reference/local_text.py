"""Local times as the tables write them: `2026-03-08 03:00-04`, seconds only if there are some."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from reference.zones import load

if TYPE_CHECKING:
    from collections.abc import Callable


def moment(zone: str, text: str) -> datetime:
    """The aware datetime of a table's text; without an offset it is a wall time of the zone (first pass)."""
    if len(text) == len("2026-03-08"):
        text += " 00:00"
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        return parsed.replace(tzinfo=load(zone))
    return parsed.astimezone(UTC).astimezone(load(zone))


def shown(run: datetime | None) -> str | None:
    """A run as a table writes it, from its own wall time and offset."""
    if run is None:
        return None
    offset = run.utcoffset()
    assert offset is not None
    sign = "-" if offset < timedelta(0) else "+"
    hours, rest = divmod(abs(offset) // timedelta(seconds=1), 3600)
    minutes = f":{rest // 60:02}" if rest else ""
    clock = f"{run:%H:%M:%S}" if run.second else f"{run:%H:%M}"
    return f"{run:%Y-%m-%d} {clock}{sign}{hours:02}{minutes}"


def runs_after(next_after: Callable[[datetime], datetime | None], after: datetime, count: int) -> list[str | None]:
    """The next runs one after the other, each asked for with the one before it."""
    found: list[str | None] = []
    run: datetime | None = after
    while run is not None and len(found) < count:
        run = next_after(run)
        found.append(shown(run))
    return found
