"""Reads durations ("90s", "1h30m", "250ms" or a timedelta) as seconds or milliseconds, and writes them as text."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from rota.errors import BadDuration
from rota.sentences import sentence

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST = 100 * 366 * 86_400  # a century; a longer duration is a typing mistake

_MICROSECOND = timedelta(microseconds=1)
_PART = re.compile(r"([0-9]{1,10})([wdhms])", re.ASCII)
_WHOLE = re.compile(r"(?:[0-9]{1,10}[wdhms]){1,5}", re.ASCII)
_FINE_PART = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,9})?)(ms|[wdhms])", re.ASCII)
_FINE_WHOLE = re.compile(r"(?:[0-9]{1,10}(?:\.[0-9]{1,9})?(?:ms|[wdhms])){1,6}", re.ASCII)
_FINE_UNITS = {**{unit: size * 1_000 for unit, size in UNITS.items()}, "ms": 1}
OR_IN_PYTHON = ", or give a timedelta"  # the end of a fix, which a command line leaves out
_HOW = sentence("duration.how", "write it as '90s', '5m', '1h30m', '2d' or '1w', or give a timedelta")
_WHOLE_HOW = sentence(
    "duration.whole_how", "the least is '1s'; write smaller units for parts, such as '90s' for 1.5m or '1h30m' for 1.5h"
)
_FINE_HOW = sentence("duration.fine_how", "write it as '90s', '1h30m', '250ms' or '0.5s', or give a timedelta")


def seconds_of(duration: object) -> int:
    """The duration in whole seconds, at least one."""
    seconds = _from_timedelta(duration) if isinstance(duration, timedelta) else _from_text(duration)
    if not 1 <= seconds <= LONGEST:
        raise BadDuration(
            sentence(
                "duration.range", "duration {duration!r} must lie between 1 second and 100 years", duration=duration
            ),
            text=str(duration),
        )
    return seconds


def milliseconds_of(duration: object, *, least: int = 0) -> int:
    """The duration in whole milliseconds, for durations that may be shorter than a second, or 0."""
    exact = Decimal(duration // _MICROSECOND) / 1_000 if isinstance(duration, timedelta) else _fine_from_text(duration)
    if exact != exact.to_integral_value():
        raise BadDuration(
            sentence("duration.milliseconds", "duration {duration!r} must be whole milliseconds", duration=duration),
            text=str(duration),
        )
    if not least <= exact <= LONGEST * 1_000:
        reason = sentence(
            "duration.fine_range",
            "duration {duration!r} must lie between {least} and 100 years",
            duration=duration,
            least=fine_text_of(least),
        )
        raise BadDuration(reason, text=str(duration))
    return int(exact)


def fine_text_of(milliseconds: int) -> str:
    """Like text_of, to the millisecond: 1500 -> "1s500ms", 0 -> "0s"."""
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{text_of(seconds)}{f'{rest}ms' if rest else ''}" or "0s"


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
        raise BadDuration(
            sentence("duration.seconds", "duration {duration!r} must be whole seconds", duration=duration),
            text=str(duration),
            fix=_WHOLE_HOW,
        )
    return duration.days * 86_400 + duration.seconds


def _from_text(duration: object) -> int:
    if not isinstance(duration, str):
        raise BadDuration(
            sentence("duration.unit", "duration {duration!r} has no unit", duration=duration),
            text=str(duration),
            fix=_HOW,
        )
    text = duration.strip().lower()
    if not _WHOLE.fullmatch(text):
        if _FINE_WHOLE.fullmatch(text):
            raise BadDuration(
                sentence("duration.seconds", "duration {duration!r} must be whole seconds", duration=_short(duration)),
                text=duration,
                fix=_WHOLE_HOW,
            )
        raise BadDuration(
            sentence("duration.unknown", "duration {duration!r} is not understood", duration=_short(duration)),
            text=duration,
            fix=_HOW,
        )
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if units != sorted(set(units), key="wdhms".index):
        reason = sentence(
            "duration.order", "duration {duration!r} must name each unit once, the larger first", duration=duration
        )
        raise BadDuration(reason, text=duration, fix=_HOW)
    return sum(int(count) * UNITS[unit] for count, unit in parts)


def _fine_from_text(duration: object) -> Decimal:
    if not isinstance(duration, str):
        raise BadDuration(
            sentence("duration.unit", "duration {duration!r} has no unit", duration=duration),
            text=str(duration),
            fix=_FINE_HOW,
        )
    text = duration.strip().lower()
    if not _FINE_WHOLE.fullmatch(text):
        raise BadDuration(
            sentence("duration.unknown", "duration {duration!r} is not understood", duration=_short(duration)),
            text=duration,
            fix=_FINE_HOW,
        )
    parts = _FINE_PART.findall(text)
    units = [unit for _, unit in parts]
    if units != sorted(set(units), key=list(_FINE_UNITS).index):
        reason = sentence(
            "duration.order", "duration {duration!r} must name each unit once, the larger first", duration=duration
        )
        raise BadDuration(reason, text=duration, fix=_FINE_HOW)
    return sum((Decimal(count) * _FINE_UNITS[unit] for count, unit in parts), Decimal(0))


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
