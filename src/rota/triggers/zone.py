"""Reads timezones as spans of one offset, so that wall time is integer arithmetic between two transitions.

All times here are whole seconds: `t` since the epoch in UTC, `wall` likewise but as the local clock shows it (t +
offset). Between transitions the two differ by a constant; the spans hold where that constant changes. The PyPI package
tzdata is preferred over the system's copy, so that all machines agree on a zone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rota.errors import UnknownZone
from rota.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86_400
EARLIEST = -62_135_596_800 + 10 * DAY  # datetime's own range, less room for offsets and probes
LATEST = 253_402_300_799 - 10 * DAY
WIDEST_OFFSET = 2 * DAY  # no offset, nor the change from one to another, reaches this

_STEP = 5 * DAY  # no zone has two transitions within 6.9 days, so a probe every 5 never misses one
_REACH = 800 * _STEP  # a span is cut after about 11 years: a zone without transitions must end somewhere
_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*", re.ASCII)


class Span(NamedTuple):
    """The seconds lo <= t < hi that share one offset, and what lies on either side."""

    lo: int
    hi: int
    offset: int
    before: int  # the offset just before lo: larger means a fold begins at lo, smaller a gap
    after: int  # the offset from hi on
    tzinfo: tzinfo  # what datetimes inside this span carry

    @property
    def fresh(self) -> int:
        """The first wall second that no earlier span has shown already."""
        return self.lo + max(self.offset, self.before)

    @property
    def wall_end(self) -> int:
        return self.hi + self.offset


class Zone:
    """One timezone: finds and remembers its spans. Shared between threads; a lost race only repeats a search."""

    __slots__ = ("_info", "_missing", "_shown", "_table", "name")

    def __init__(self, name: str, info: tzinfo, shown: tzinfo) -> None:
        self.name = name
        self._info = info
        self._shown = shown
        self._table: tuple[list[int], list[Span]] = ([], [])
        self._missing: tuple[int, ...] | None = None

    def span(self, t: int) -> Span:
        """The span that contains t."""
        starts, spans = self._table
        index = bisect_right(starts, t) - 1
        if index >= 0 and t < spans[index].hi:
            return spans[index]
        follows = index >= 0 and spans[index].hi == t
        return self._remember(self._search(t, lo=t if follows else None))

    def instant_of(self, wall: int) -> int:
        """The instant at which the local clock shows `wall`: its first pass in a fold, the jump's end inside a gap."""
        return self._place(wall)[0]

    def instant_if_exists(self, wall: int) -> int | None:
        """Like instant_of, but None if the whole local date is missing."""
        t, gap = self._place(wall)
        return None if gap and date_is_missing(wall, gap) else t

    def wall_of(self, t: int) -> int:
        return t + self.span(t).offset

    def datetime_of(self, t: int) -> datetime:
        """The local time; outside the calendar, that of its first or last days (a list must show every record)."""
        shown = clamp(t)
        return datetime.fromtimestamp(shown, self.span(shown).tzinfo)

    def missing_days(self) -> tuple[int, ...]:
        """The local dates that never existed, as days since the epoch, where a zone moved over the date line."""
        if self._missing is None:
            self._missing = tuple(self._find_missing_days())
        return self._missing

    def _find_missing_days(self) -> Iterator[int]:
        """Such a move lasts, so one check a year finds it: 1840 to 2100 covers every zone's history."""
        for t in range(-4_100_000_000, 4_102_444_800, 365 * DAY):
            if self._offset(t + 365 * DAY) - self._offset(t) < DAY // 2:
                continue
            span = self.span(t)
            while span.hi < t + 365 * DAY:
                gap = (span.wall_end, span.hi + span.after)
                days = range(gap[0] // DAY, gap[1] // DAY + 1)
                yield from (day for day in days if date_is_missing(day * DAY, gap))
                span = self.span(span.hi)

    def _place(self, wall: int) -> tuple[int, tuple[int, int] | None]:
        """The instant for a wall second, and the gap (in wall seconds) that contains it, if one does."""
        span = self.span(clamp(wall - WIDEST_OFFSET))
        while wall >= span.wall_end:
            if wall < span.hi + span.after:
                return span.hi, (span.wall_end, span.hi + span.after)
            if span.hi >= LATEST:
                return LATEST + 1, None
            span = self.span(span.hi)
        return wall - span.offset, None

    def _remember(self, span: Span) -> Span:
        starts, spans = self._table
        index = bisect_right(starts, span.lo)
        self._table = (
            [*starts[:index], span.lo, *starts[index:]],
            [*spans[:index], span, *spans[index:]],
        )
        return span

    def _search(self, t: int, lo: int | None) -> Span:
        """The span around t, found by probes; `lo` if the span before it is known already."""
        offset = self._offset(t)
        if lo is None:
            lo = self._edge(t, -_STEP)
        hi = self._edge(t, _STEP)
        shown = self._shown if self._agrees(lo, hi, offset) else self._info
        return Span(lo, hi, offset, self._offset(max(lo - 1, EARLIEST)), self._offset(hi), shown)

    def _edge(self, t: int, step: int) -> int:
        """The instant where the offset at t begins (step < 0) or ends (step > 0), or the end of reach.

        The reach is cut on a fixed grid, so that spans found from two sides of a cut meet there.
        """
        offset = self._offset(t)
        limit = self._grid_limit(t, forward=step > 0)
        inside = t
        while inside != limit:
            probe = min(inside + step, limit) if step > 0 else max(inside + step, limit)
            if self._offset(probe) != offset:
                return self._bisect(inside, probe)
            inside = probe
        return limit

    def _grid_limit(self, t: int, *, forward: bool) -> int:
        cell = t // _REACH + forward
        return max(EARLIEST, min(LATEST, cell * _REACH))

    def _bisect(self, inside: int, outside: int) -> int:
        """The first second of the later of the two spans on either side of one transition."""
        early, late = sorted((inside, outside))
        offset = self._offset(early)
        while late - early > 1:
            middle = (early + late) // 2
            if self._offset(middle) == offset:
                early = middle
            else:
                late = middle
        return late

    def _agrees(self, lo: int, hi: int, offset: int) -> bool:
        return all(_offset_in(self._shown, t) == offset for t in (lo, (lo + hi) // 2, hi - 1))

    def _offset(self, t: int) -> int:
        return _offset_in(self._info, t)


class _FixedUtc(Zone):
    """UTC, which needs no search: one span holds all of time."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        super().__init__("UTC", UTC, UTC)
        self._all = Span(EARLIEST, LATEST, 0, 0, 0, UTC)

    def span(self, t: int) -> Span:  # noqa: ARG002 - every t is in the one span
        return self._all


def date_is_missing(wall: int, gap: tuple[int, int]) -> bool:
    """Whether the local date of `wall` lies wholly inside the gap (Apia 2011-12-30)."""
    midnight = wall - wall % DAY
    return gap[0] <= midnight and midnight + DAY <= gap[1]


def clamp(t: int) -> int:
    """t, kept inside the range that datetimes can express."""
    return max(EARLIEST, min(LATEST, t))


def zone_name(tz: object) -> str | None:
    """The IANA name of a zone given as text or ZoneInfo; checked, so that an error is raised immediately."""
    if tz is None:
        return None
    if isinstance(tz, ZoneInfo) and tz.key:
        tz = tz.key
    if tz is UTC:
        return "UTC"
    if not isinstance(tz, str):
        raise UnknownZone(
            sentence("zone.no_name", "timezone {tz!r} has no IANA name", tz=tz),
            fix=sentence("zone.no_name_fix", "write it as 'Europe/Paris'"),
        )
    return find_zone(tz).name


@lru_cache(maxsize=1024)
def find_zone(name: str) -> Zone:
    """The zone of that IANA name."""
    if name == "UTC":
        return _FixedUtc()
    if len(name) > 64 or not _NAME.fullmatch(name):
        raise _unknown(name)
    packaged = _packaged(name)
    if packaged is None:
        raise _unknown(name)
    try:
        shown = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        shown = packaged
    return Zone(name, packaged, shown)


class _PackagedZone(ZoneInfo):
    """A zone read from the tzdata package, where the system's copy differs; pickles by its name."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _packaged, (self.key,)


def _packaged(name: str) -> ZoneInfo | None:
    from importlib import resources  # noqa: PLC0415 - UTC needs none

    *folders, file = name.split("/")
    try:
        with resources.files(".".join(["tzdata", "zoneinfo", *folders])).joinpath(file).open("rb") as data:
            return _PackagedZone.from_file(data, key=name)
    except (ImportError, OSError, ValueError):
        return None


def _offset_in(info: tzinfo, t: int) -> int:
    offset = datetime.fromtimestamp(t, info).utcoffset()
    return (offset or timedelta()) // timedelta(seconds=1)


def _unknown(name: str) -> UnknownZone:
    import difflib  # noqa: PLC0415 - only a slip pays for it
    from importlib import resources  # noqa: PLC0415

    shown = name if len(name) <= 64 else name[:61] + "..."
    known = resources.files("tzdata").joinpath("zones").read_text().split()
    by_lower = {zone.lower(): zone for zone in known}
    close = difflib.get_close_matches(shown.lower(), by_lower, n=1)
    fix = (
        sentence("fix.did_you_mean", "did you mean '{word}'?", word=by_lower[close[0]])
        if close
        else sentence("zone.fix", "use an IANA name such as 'Europe/Paris'")
    )
    return UnknownZone(sentence("zone.unknown", "unknown timezone '{name}'", name=shown), text=name, fix=fix)
