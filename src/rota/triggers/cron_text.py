"""Reads cron text as a whole: prefixes, macros, and the dialect that the number of fields implies. Text with two
readings is refused."""

from __future__ import annotations

import re
from typing import NamedTuple

from rota.errors import BadCron, BadCronField
from rota.sentences import sentence
from rota.triggers.cron_field import (
    DAY_OF_MONTH,
    HOUR,
    MINUTE,
    MONTH,
    QUARTZ_WEEKDAY,
    SECOND,
    UNIX_WEEKDAY,
    YEAR,
    Field,
    parse_field,
)

LONGEST = 256
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
DIALECTS = ("unix", "quartz")
ZONE_PREFIXES = frozenset({"CRON_TZ", "TZ"})  # in capitals; any case is read

_YEAR_LIKE = re.compile(r"(?<![0-9])(?:19|20|21)[0-9]{2}(?![0-9])", re.ASCII)


class CronFields(NamedTuple):
    """A cron expression, read: seven fields, and how many of them were written."""

    second: Field
    minute: Field
    hour: Field
    day_of_month: Field
    month: Field
    day_of_week: Field
    year: Field | None
    written: int
    dialect: str | None  # only if the text alone would be read differently

    @property
    def text(self) -> str:
        """The normalised text: weekdays as names, so that every dialect reads it the same way."""
        fields = [self.minute, self.hour, self.day_of_month, self.month, self.day_of_week]
        if self.written > 5:
            fields.insert(0, self.second)
        if self.year:
            fields.append(self.year)
        return " ".join(field.text for field in fields)

    @property
    def is_either(self) -> bool:
        """Whether both day fields are restricted, so that a day that fits one of them is enough (Unix cron's "or")."""
        return not (self.day_of_month.is_star or self.day_of_week.is_star)

    @property
    def is_every_hour(self) -> bool:
        return len(self.hour.values) == 24

    @property
    def is_cadence(self) -> bool:
        """Whether it is a cadence and names no times, so that it continues in the second pass of a fold."""
        return any(field.is_star and field.mask.bit_count() > 1 for field in (self.second, self.minute, self.hour))


def check_text(expression: object) -> str:
    """The expression as bounded ASCII text, before any work is spent on it."""
    if not isinstance(expression, str):
        raise BadCron(
            sentence("cron.not_text", "a cron expression is text, got {kind}", kind=type(expression).__name__)
        )
    if len(expression) > LONGEST:
        reason = sentence(
            "cron.too_long",
            "the expression is {length} characters long; at most {longest} are read",
            length=len(expression),
            longest=LONGEST,
        )
        raise BadCron(reason, text=expression[:LONGEST])
    if not expression.isascii():
        odd = next(character for character in expression if not character.isascii())
        raise BadCron(
            sentence("cron.not_ascii", "a cron expression is plain ASCII text; {odd!r} is not", odd=odd),
            text=expression,
        )
    return expression.strip()


def split_zone(text: str) -> tuple[str | None, str]:
    """Remove a prefix such as `CRON_TZ=Europe/Paris ` or `TZ=… `."""
    head, *rest = text.split(maxsplit=1) or [""]
    key, equals, zone = head.partition("=")
    if not equals or key.upper() not in ZONE_PREFIXES:
        return None, text
    return zone, rest[0] if rest else ""


def parse_cron(text: str, dialect: str | None) -> CronFields:
    """Read the fields (no prefix, no `@every`); raise BadCron or BadCronField if they have not exactly one meaning."""
    if dialect is not None and dialect not in DIALECTS:
        raise BadCron(
            sentence("cron.dialect", "unknown dialect {dialect!r}", dialect=dialect),
            fix=sentence("cron.dialect_fix", "use 'unix' or 'quartz', or leave it out"),
        )
    parts = _expand(text).split()
    _check_count(parts, dialect)
    quartz = dialect == "quartz" or (dialect is None and len(parts) == 7)
    if dialect is None and len(parts) == 6:
        _refuse_two_readings(parts)
    if quartz:
        _check_question_mark(parts)
    seconds = parts[0] if len(parts) > 5 else "0"
    minute, hour, day_of_month, month, day_of_week = parts[-5:] if len(parts) < 7 else parts[1:6]
    return CronFields(
        second=parse_field(seconds, SECOND),
        minute=parse_field(minute, MINUTE),
        hour=parse_field(hour, HOUR),
        day_of_month=parse_field(day_of_month, DAY_OF_MONTH),
        month=parse_field(month, MONTH),
        day_of_week=parse_field(day_of_week, QUARTZ_WEEKDAY if quartz else UNIX_WEEKDAY),
        year=parse_field(parts[6], YEAR) if len(parts) == 7 else None,
        written=len(parts),
        dialect="unix" if dialect == "unix" and len(parts) == 7 else None,
    )


def _expand(text: str) -> str:
    if not text.startswith("@"):
        return text
    macro = text.lower()
    if macro == "@reboot":
        raise BadCron(sentence("cron.reboot", "'@reboot' is not a time; use a start-up hook"), text=text)
    if macro not in MACROS:
        import difflib  # noqa: PLC0415 - only a slip pays for it

        close = difflib.get_close_matches(macro[:20], MACROS, n=1)
        fix = (
            sentence("fix.did_you_mean", "did you mean '{word}'?", word=close[0])
            if close
            else sentence("cron.macros", "known are {known} and '@every 1h30m'", known=", ".join(MACROS))
        )
        raise BadCron(sentence("cron.macro", "'{text}' is not a known macro", text=text[:20]), text=text, fix=fix)
    return MACROS[macro]


def _check_count(parts: list[str], dialect: str | None) -> None:
    if dialect == "quartz" and len(parts) not in {6, 7}:
        raise BadCron(
            sentence(
                "cron.quartz_count",
                "a Quartz expression has 6 fields (seconds first) or 7 (year last), got {count}",
                count=len(parts),
            ),
            text=" ".join(parts),
        )
    if len(parts) not in {5, 6, 7}:
        raise BadCron(
            sentence(
                "cron.count",
                "expected 5 fields (minute hour day-of-month month day-of-week), 6 (seconds first) or 7 "
                "(Quartz: seconds first, year last), got {count}",
                count=len(parts),
            ),
            text=" ".join(parts),
        )


def _refuse_two_readings(parts: list[str]) -> None:
    """Refuse differences: some schedulers read six fields one way, and others another way."""
    last = parts[5]
    if _YEAR_LIKE.search(last):
        raise BadCron(
            sentence(
                "cron.two_readings",
                "6 fields are 'second minute hour …', but the last one, '{last}', looks like a year; add "
                "a seconds field in front: '{fixed}'",
                last=last,
                fixed=" ".join(["0", *parts]),
            ),
            text=" ".join(parts),
        )
    counted = re.sub(r"/[0-9]+|#[0-9]+", "", last)  # steps and "nth" count the same way everywhere
    if "?" in parts[3:6:2] and any(character.isdigit() for character in counted):
        raise BadCronField(
            "day-of-week",
            last,
            sentence(
                "cron.weekday_numbers",
                "with 6 fields and '?' this number means one day in Quartz (SUN=1) and another in Unix cron (SUN=0)",
            ),
            fix=sentence("cron.weekday_fix", "write a name such as MON, or give dialect=…"),
        )


def _check_question_mark(parts: list[str]) -> None:
    days = parts[3], parts[5]
    if days.count("?") != 1 and days != ("*", "*"):
        raise BadCron(
            sentence(
                "cron.question",
                "a {count}-field (Quartz) expression needs '?' in exactly one of day-of-month and "
                "day-of-week, got '{days}' and '{weekdays}'",
                count=len(parts),
                days=days[0],
                weekdays=days[1],
            ),
            text=" ".join(parts),
        )
