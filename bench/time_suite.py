"""Next fire times: Rota beside cronsim, croniter and dateutil, all parsed once and asked in a row."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from importlib.metadata import version
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from dateutil.rrule import DAILY, rrule

import rota
from bench import hostile
from bench.measure import Contender, Figure, compare, race, yardstick

Lap = Callable[[], datetime]

ZONES: dict[str, tzinfo] = {"UTC": UTC, "America/New_York": ZoneInfo("America/New_York")}
EXPRESSIONS = {  # the steps of a lap, which stays within 2026-2037, and how often cronsim must be beaten
    "* * * * *": (1000, 1.5),
    "*/5 * * * *": (1000, 4),
    "0 0 * * *": (1000, 10),
    "30 2 * * MON-FRI": (1000, 10),
    "0 9 1 * *": (120, 10),
}
CRONITER_MUST = 10
RRULE_MUST = 50
FLAT_MUST = 1 / 1.5  # six years after the start, an interval may cost 1.5 times what it costs after a day


def facts() -> dict[str, str]:
    return {package: version(package) for package in ("cronsim", "croniter", "python-dateutil", "tzdata")}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    seconds = 0.02 if quick else 0.1
    figures: list[Figure] = []
    for expression in EXPRESSIONS:
        for zone in ZONES:
            figures += cron_figures(expression, zone, rounds, seconds)
    return [*figures, *interval_figures(rounds, seconds), yardstick(rounds), *hostile.run(rounds)]


def cron_figures(expression: str, zone: str, rounds: int, seconds: float) -> list[Figure]:
    steps, cronsim_must = EXPRESSIONS[expression]
    laps = {name: partial(make, expression, zone, steps) for name, make in CRONS.items()}
    check_agreement(f"{expression} in {zone}", [make()() for make in laps.values()])
    times = race({name: Contender(make, steps) for name, make in laps.items()}, rounds, seconds)
    title = f"{expression}  {zone}"
    return [
        compare(f"{title}  vs cronsim", times["rota"], times["cronsim"], cronsim_must),
        compare(f"{title}  vs croniter", times["rota"], times["croniter"], CRONITER_MUST),
        compare(f"{title}  next_second vs cronsim", times["integers"], times["cronsim"]),
    ]


def check_agreement(title: str, ends: Iterable[datetime | None]) -> None:
    """A race between different answers says nothing."""
    if len({end and end.astimezone(UTC) for end in ends}) > 1:
        raise AssertionError(f"{title} leads to different instants: {', '.join(map(str, ends))}")


# Each of these parses, untimed, and returns the lap, which ends with the instant that it reached.


def by_rota(expression: str, zone: str, steps: int) -> Lap:
    next_after: Callable[[datetime], Any] = rota.cron(expression, tz=zone).next_after

    def lap() -> datetime:
        moment = start_in(zone)
        for _ in range(steps):
            moment = next_after(moment)
        return moment

    return lap


def by_integers(expression: str, zone: str, steps: int) -> Lap:
    next_second: Callable[[int], Any] = rota.cron(expression, tz=zone).next_second

    def lap() -> datetime:
        second = int(start_in(zone).timestamp())
        for _ in range(steps):
            second = next_second(second)
        return datetime.fromtimestamp(second, UTC)

    return lap


def by_cronsim(expression: str, zone: str, steps: int) -> Lap:
    runs = CronSim(expression, start_in(zone))

    def lap() -> datetime:
        for _ in range(steps):
            moment = next(runs)
        return moment

    return lap


def by_croniter(expression: str, zone: str, steps: int) -> Lap:
    runs = croniter(expression, start_in(zone))

    def lap() -> datetime:
        for _ in range(steps):
            moment: datetime = runs.get_next(datetime)
        return moment

    return lap


def start_in(zone: str) -> datetime:
    return datetime(2026, 1, 1, tzinfo=ZONES[zone])


CRONS: dict[str, Callable[[str, str, int], Lap]] = {
    "rota": by_rota,
    "integers": by_integers,
    "cronsim": by_cronsim,
    "croniter": by_croniter,
}


def interval_figures(rounds: int, seconds: float) -> list[Figure]:
    zone = "America/New_York"
    midnight = datetime(2020, 1, 1, tzinfo=ZONES[zone])
    trigger = rota.calendar(days=1, at="00:05", start=date(2020, 1, 1), tz=zone)
    rule = rrule(DAILY, dtstart=midnight.replace(minute=5))
    soon, late = midnight + timedelta(days=1), midnight.replace(year=2026)
    contenders = {
        "soon": asking(trigger.next_after, soon),
        "late": asking(trigger.next_after, late),
        "rrule": asking(rule.after, late),
    }
    check_agreement("calendar(days=1)", [trigger.next_after(late), rule.after(late)])
    times = race(contenders, rounds, seconds)
    return [
        compare("calendar(days=1)  after 6 years vs after 1 day", times["late"], times["soon"], FLAT_MUST),
        compare("calendar(days=1)  after 6 years vs dateutil.rrule", times["late"], times["rrule"], RRULE_MUST),
    ]


def asking(after: Callable[[datetime], datetime | None], moment: datetime) -> Contender:
    """Ten moments in a row, so that the last answer is of no use for the next."""
    moments = [moment + timedelta(hours=5 * number) for number in range(10)]

    def lap() -> None:
        for asked in moments:
            after(asked)

    return Contender(lambda: lap, len(moments))
