"""Formats what a viewer reads: texts in their language, times in their timezone, spans and numbers with units."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from rota.errors import BadTrigger
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.web.pages.texts import Texts

NOTHING = "\N{EN DASH}"
_UNITS = (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1))


class Words:
    """One viewer's language and timezone, at one instant."""

    def __init__(self, texts: Texts, zone: ZoneInfo, now: datetime) -> None:
        self.texts = texts
        self.zone = zone
        self.now = now
        self.language = texts.language

    def text(self, key: str, /, **values: Any) -> Markup:
        return self.texts.text(key, **values)

    def number(self, value: float) -> str:
        return self.texts.number(value)

    def time(self, at: datetime | None, form: str = "short", own: datetime | None = None) -> Markup:
        """An instant as an element: short and local to read, with the zone and UTC in its title.

        `own` is the same instant by another clock that matters, such as a schedule's own zone.
        """
        if at is None:
            return escape(NOTHING)
        local, title = at.astimezone(self.zone), self.title(at, own)
        shown = self.instant(at, form)
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            local.isoformat(timespec="seconds"), title, shown
        )

    def title(self, at: datetime, own: datetime | None = None) -> str:
        """An instant by every clock that matters: the viewer's, the schedule's own, and UTC."""
        local = at.astimezone(self.zone)
        title = f"{self._day(local)}, {local:%H:%M:%S} {self.zone.key}"
        if own is not None and own.tzname() != local.tzname():
            title += f"; {own:%H:%M:%S} {own.tzname()}"
        return title if self.zone.key == "UTC" else f"{title}; {at.astimezone(UTC):%H:%M:%S} UTC"

    def instant(self, at: datetime, form: str = "short") -> str:
        """An instant as text: 14:22:03 today, Wed 18 Nov, 14:22 on another day; a tick: Wed 14:22.

        `exact` has seconds only if there are some, as in the times of a schedule.
        """
        local, today = at.astimezone(self.zone), self.now.astimezone(self.zone).date()
        has_seconds = form in {"short", "seconds", "full"} or (form == "exact" and local.second)
        clock = f"{local:%H:%M:%S}" if has_seconds else f"{local:%H:%M}"
        if form == "clock":
            return f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"
        if local.date() == today and form != "full":
            return clock
        if form == "tick":
            return f"{self.weekday(local)} {clock}"
        if form == "full":
            return f"{self._day(local)}, {clock}"
        return f"{self._day(local, today.year)}, {clock if form == 'exact' else f'{local:%H:%M}'}"

    def weekday(self, local: datetime) -> str:
        return self.texts.words("time.days")[local.weekday()]

    def date(self, local: datetime) -> str:
        """A day without its weekday: 18 Nov."""
        month = self.texts.words("time.months")[local.month - 1]
        return str(self.texts.text("time.date", day=str(local.day), month=month))

    def wall(self, at: datetime) -> str:
        """A time by the clock of its own zone, whatever the viewer's: Sun 8 Mar, 03:00."""
        clock = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
        return f"{self._day(at, self.now.astimezone(at.tzinfo).year)}, {clock}"

    def beside(self, tz: str) -> ZoneInfo | None:
        """The zone in which times stand beside those of a schedule: UTC; the viewer's if the schedule runs by UTC."""
        other = self.zone if tz == "UTC" else ZoneInfo("UTC")
        return None if other.key == tz else other

    def wall_beside(self, at: datetime, other: datetime) -> str:
        """A time by another clock: without its day if that is the same."""
        shown = self.wall(other)
        return shown if other.date() != at.date() else shown.rpartition(", ")[2]

    def span(self, seconds: float | None) -> str:
        """How long something took: 38 ms, 3.2 s, 4 min 12 s, 1 h 8 min."""
        if seconds is None:
            return NOTHING
        if seconds < 0.9995:
            return f"{max(seconds, 0) * 1000:.0f} {self._unit('ms')}"
        if seconds < 59.95:
            return f"{self.number(float(f'{seconds:.1f}')).removesuffix('.0').removesuffix(',0')} {self._unit('s')}"
        whole = round(seconds)
        for unit, size, part, part_size in _UNITS:
            if whole >= size:
                rest = whole % size // part_size
                head = f"{self.number(whole // size)} {self._unit(unit)}"
                return f"{head} {rest} {self._unit(part)}" if rest else head
        return f"{whole} {self._unit('s')}"

    def about(self, seconds: float) -> str:
        """A span in one unit, for what is to come: 40 s, 12 min, 3 h, 2 d."""
        for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3_600, 48)):
            if seconds < most * size:
                return f"{seconds / size:.0f} {self._unit(unit)}"
        return f"{self.number(round(seconds / 86_400))} {self._unit('d')}"

    def _unit(self, name: str) -> str:
        return str(self.texts.template(f"unit.{name}"))

    def _day(self, local: datetime, this_year: int | None = None) -> str:
        days, months = self.texts.words("time.days"), self.texts.words("time.months")
        form = "time.day" if local.year == this_year else "time.day_of_year"
        return str(
            self.texts.text(
                form, weekday=days[local.weekday()], day=str(local.day), month=months[local.month - 1],
                year=str(local.year),
            )
        )  # fmt: skip


def with_code(text: str) -> Markup:
    """A sentence of the model, in which `this` is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one without its partner is just a sign
        return escape(text)
    shown = [
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    ]
    return Markup("").join(shown)


def zone_of(name: str) -> ZoneInfo:
    """The zone that a browser says it is in; UTC if there is no such zone."""
    try:
        if not name or len(name) > 64:
            return ZoneInfo("UTC")
        find_zone(name)
        return ZoneInfo(name)
    except (BadTrigger, ValueError, OSError):
        return ZoneInfo("UTC")
