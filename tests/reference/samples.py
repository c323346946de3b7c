"""Random valid rules and telling instants, all drawn from one seeded generator."""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from amounts import amount
from reference.calendar_reference import WEEKDAYS, Rule
from reference.cron_reference import MONTH_NAMES, WEEKDAY_NAMES, parse
from reference.zones import FIRST, LAST, instant, transitions

if TYPE_CHECKING:
    from random import Random

DAY = 86_400
TELLING_HOURS = (0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 22, 23)  # where clocks are changed
SLOW = 3_000  # wall times a day above which the reference takes its time


def seed() -> str:
    """The seed of every random test; ROTA_TEST_SEED gives another."""
    return os.environ.get("ROTA_TEST_SEED") or "rota"


def sample_count(default: int) -> int:
    """How many samples to compare: `default` of 20,000; how many there are in all, ROTA_TEST_SAMPLES may say."""
    return max(1, default * amount(2_500, 200_000, "ROTA_TEST_SAMPLES") // 20_000)


class CronSample(NamedTuple):
    """A cron expression and the dialect that it must be read in."""

    text: str
    dialect: str | None


def telling_instant(rng: Random, zone: str, first: int = FIRST + DAY, last: int = LAST - DAY) -> int:
    """An instant from 1970 through 2100: 40 of 100 within a day of a change of the zone's offset."""
    changes = [second for second, _, _ in transitions(zone) if first <= second <= last]
    if changes and rng.random() < 0.4:
        return rng.choice(changes) + rng.choice((rng.randint(-DAY, DAY), rng.randint(-7200, 7200), 0, -1))
    return rng.randint(first, last)


def cron_sample(rng: Random, year: int) -> CronSample:
    """A valid expression that mostly fires within a few weeks of the year."""
    while True:
        sample = _cron_sample(rng, year)
        if len(parse(*sample).times) <= SLOW or rng.random() < 0.01:
            return sample


def unix_five_fields(rng: Random) -> str:
    """A valid expression of five fields that every cron of the Unix family reads."""
    day_of_month = _plain(rng, 1, 28) if rng.random() < 0.3 else "*"
    day_of_week = _plain(rng, 0, 6) if rng.random() < 0.3 else "*"
    month = _plain(rng, 1, 12) if rng.random() < 0.2 else "*"
    return f"{_minute(rng)} {_hour(rng)} {day_of_month} {month} {day_of_week}"


def _cron_sample(rng: Random, year: int) -> CronSample:
    clock = f"{_minute(rng)} {_hour(rng)}"
    kind = rng.random()
    if kind < 0.6:
        return CronSample(f"{clock} {_day_of_month(rng)} {_month(rng)} {_day_of_week(rng, 0)}", None)
    clock = f"{_second(rng)} {clock}"
    if kind < 0.85:
        days = [_day_of_month(rng), _day_of_week(rng, 0)]
        if "?" in days:  # numbers would have two readings
            days[1] = rng.choice(("?", _weekday_names(rng))) if days[0] != "?" else _weekday_names(rng)
        return CronSample(f"{clock} {days[0]} {_month(rng)} {days[1]}", None)
    if kind < 0.9:
        return CronSample(
            f"{clock} {_day_of_month(rng)} {_month(rng)} {_day_of_week(rng, 0)} {_year(rng, year)}", "unix"
        )
    days = rng.choice((("*", "*"), ("?", _day_of_week(rng, 1)), (_day_of_month(rng), "?")))
    days = tuple("*" if days.count("?") == 2 else day for day in days)
    return CronSample(f"{clock} {days[0]} {_month(rng)} {days[1]} {_year(rng, year)}", None)


def _choose(rng: Random, *weighted: tuple[int, str]) -> str:
    weights, texts = zip(*weighted, strict=True)
    return rng.choices(texts, weights)[0]


def _step(rng: Random, low: int, high: int) -> int:
    """A step up to the size of the field, at which only the first value is left."""
    size = high - low + 1
    return min(size, rng.choice((1, 2, 3, 5, 7, 10, 15, 20, 30, 45, size - 1, size, rng.randint(1, size))))


def _range(rng: Random, low: int, high: int) -> str:
    """A range, wrapped in about a third of all cases, but never one that wraps around to everything."""
    first, last = rng.randint(low, high), rng.randint(low, high)
    if first > last and (rng.random() < 0.3 or first - last == 1):
        first, last = last, first
    return f"{first}-{last}"


def _plain(rng: Random, low: int, high: int) -> str:
    """Numbers, lists, rising ranges and steps."""
    first, last = sorted((rng.randint(low, high), rng.randint(low, high)))
    return _choose(
        rng,
        (6, f"{rng.randint(low, high)}"),
        (2, ",".join(str(n) for n in rng.sample(range(low, high + 1), 2))),
        (2, f"{first}-{last}"),
        (1, f"*/{rng.choice((high - low + 1, rng.randint(2, (high - low) // 2)))}"),
    )


def _numbers(rng: Random, low: int, high: int, single: int) -> str:
    """One field of numbers with all that the syntax offers."""
    step = _step(rng, low, high)
    return _choose(
        rng,
        (12, f"{single}"),
        (4, ",".join(str(n) for n in rng.sample(range(low, high + 1), rng.randint(2, 4)))),
        (3, _range(rng, low, high)),
        (2, f"{_range(rng, low, high)}/{step}"),
        (3, f"*/{step}"),
        (1, f"{low}/{step}"),
        (1, f"{rng.randint(low, high)}/{step}"),
        (1, f"{low}-{high}"),
        (1, f"{low}-{high}/{step}"),
        (1, f"{single},{_range(rng, low, high)},*/{step}"),
        (1, f"*/{step},{single}"),
        (1, f"{single},*/{step},*/{_step(rng, low, high)}"),
    )


def _second(rng: Random) -> str:
    if rng.random() < 0.5:
        return "0"
    return "*" if rng.random() < 0.05 else _numbers(rng, 0, 59, rng.randint(0, 59))


def _minute(rng: Random) -> str:
    if rng.random() < 0.06:
        return "*"
    return _numbers(rng, 0, 59, rng.choice((0, 15, 30, 45, rng.randint(0, 59))))


def _hour(rng: Random) -> str:
    if rng.random() < 0.2:
        return "*"
    return _numbers(rng, 0, 23, rng.choice((*TELLING_HOURS, rng.randint(0, 23))))


def _day_of_month(rng: Random) -> str:
    if rng.random() < 0.5:
        return "*"
    number, special = rng.randint(1, 31), f"L-{rng.choice((1, 2, 3, 7, 27, 28, 29, 30))}"
    return _choose(
        rng,
        (4, _numbers(rng, 1, 31, number)),
        (1, "?"),
        (1, "L"),
        (1, special),
        (1, f"{special}W"),
        (1, "LW"),
        (2, f"{number}W"),
        (1, f"{rng.randint(1, 31)},{number}W,{special}"),
        (1, f"{special}W,{number},*/{rng.randint(20, 31)}"),
        (1, f"1W,15,{rng.choice(('L', 'LW', '31W'))}"),
    )


def _month(rng: Random) -> str:
    if rng.random() < 0.7:
        return "*"
    named = rng.sample(MONTH_NAMES, 2)
    if (MONTH_NAMES.index(named[1]) + 1) % 12 == MONTH_NAMES.index(named[0]):
        named.reverse()
    return _choose(
        rng,
        (2, _numbers(rng, 1, 12, rng.randint(1, 12))),
        (1, _any_case(rng, named[0])),
        (1, _any_case(rng, ",".join(named))),
        (1, _any_case(rng, "-".join(named))),
    )


def _day_of_week(rng: Random, sunday: int) -> str:
    """The day-of-week field where Sunday is 0 (Unix, 7 too) or 1 (Quartz)."""
    if rng.random() < 0.55:
        return "*"
    day = rng.randint(sunday, sunday + 6)
    last_sunday = 7 if sunday == 0 else 1
    return _choose(
        rng,
        (4, _numbers(rng, sunday, sunday + 6, day)),
        (4, _weekday_names(rng)),
        (1, f"{day}#{rng.randint(1, 5)}"),
        (1, f"{day}L"),
        (1, f"{last_sunday}"),
        (1, f"{rng.choice((1, 3, 5))}-7"),
        (1, f"{day}L,{day}#1"),
    )


def _weekday_names(rng: Random) -> str:
    first, last = rng.sample(range(7), 2)
    if first - last in (1, -6):
        first, last = last, first
    one, two = WEEKDAY_NAMES[first], WEEKDAY_NAMES[last]
    text = _choose(
        rng,
        (3, one),
        (2, f"{one}-{two}"),
        (2, f"{one},{two}"),
        (2, f"{one}#{rng.randint(1, 5)}"),
        (2, f"{one}L"),
        (1, f"{one}#1,{two}L"),
    )
    return _any_case(rng, text)


def _year(rng: Random, year: int) -> str:
    return _choose(
        rng,
        (3, "*"),
        (1, f"{min(2199, year + 1)}"),
        (1, f"{year}-{min(2199, year + 5)}"),
        (1, f"{year}/2"),
        (1, f"*/{rng.randint(1, 4)}"),
        (1, f"{max(1970, year - 1)},{min(2199, year + 3)}"),
    )


def _any_case(rng: Random, text: str) -> str:
    return rng.choice((text, text.lower(), text.capitalize()))


def calendar_sample(rng: Random, zone: str) -> Rule:
    """A calendar interval whose anchor lies a telling time before or after a change of the offset."""
    unit = rng.choice(("days", "weeks", "months", "quarters", "years"))
    start = instant(telling_instant(rng, zone)).date() - timedelta(days=rng.choice((0, 1, 30, 365)))
    start = max(start, date(1970, 1, 2))
    if unit not in ("days", "weeks") and rng.random() < 0.4:
        start = start.replace(day=1) - timedelta(days=rng.randint(1, 3))  # the end of a month
    on, nth = None, None
    if unit == "weeks" and rng.random() < 0.5:
        on = rng.choice(WEEKDAYS)
    if unit in ("months", "quarters", "years") and rng.random() < 0.4:
        on, nth = rng.choice(WEEKDAYS), rng.choice((1, 2, 3, 4, 5, "last"))
    month_end = "clamp"
    if unit in ("months", "quarters", "years") and on is None:
        month_end = rng.choice(("clamp", "clamp", "skip", "last"))
    at = rng.choice(TELLING_HOURS) * 3600 + rng.choice((0, 5, 15, 30, 45)) * 60 + rng.choice((0, 0, 0, 7))
    n = rng.choice((1, 1, 1, 2, 3, 5, 6, 13))
    end_date = start + timedelta(days=rng.randint(0, 3000)) if rng.random() < 0.15 else None
    return Rule(unit, n, start, at, zone, on, nth, month_end, end_date)
