"""Durations: "90s", "1h30m" or a timedelta in, whole seconds out, and back to text."""

from __future__ import annotations

import re
from datetime import timedelta

from rota.errors import BadDuration

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST = 100 * 366 * 86_400  # a century; anything longer is a slip of the keyboard

_PART = re.compile(r"([0-9]{1,10})([wdhms])", re.ASCII)
_WHOLE = re.compile(r"(?:[0-9]{1,10}[wdhms]){1,5}", re.ASCII)
_HOW = "write it as '90s', '5m', '1h30m', '2d' or '1w', or give a timedelta"


def seconds_of(duration: object) -> int:
    """The duration in whole seconds, at least one."""
    seconds = _from_timedelta(duration) if isinstance(duration, timedelta) else _from_text(duration)
    if not 1 <= seconds <= LONGEST:
        raise BadDuration(f"duration {duration!r} must lie between 1 second and 100 years", text=str(duration))
    return seconds


def text_of(seconds: int) -> str:
    """The shortest usual spelling: 5400 -> "1h30m"."""
    parts = []
    for unit, size in UNITS.items():
        if unit == "w" and seconds % size:
            continue  # "1w" is clear, "1w3d" is not how people say ten days
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def _from_timedelta(duration: timedelta) -> int:
    if duration.microseconds:
        raise BadDuration(f"duration {duration!r} must be whole seconds", text=str(duration))
    return duration.days * 86_400 + duration.seconds


def _from_text(duration: object) -> int:
    if not isinstance(duration, str):
        raise BadDuration(f"duration {duration!r} has no unit", text=str(duration), fix=_HOW)
    text = duration.strip().lower()
    if not _WHOLE.fullmatch(text):
        raise BadDuration(f"duration {_short(duration)!r} is not understood", text=duration, fix=_HOW)
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if units != sorted(set(units), key="wdhms".index):
        reason = f"duration {duration!r} must name each unit once, the larger first"
        raise BadDuration(reason, text=duration, fix=_HOW)
    return sum(int(count) * UNITS[unit] for count, unit in parts)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
