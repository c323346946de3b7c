"""The engine answers as the slow references do, for random rules, zones and instants of 1970 through 2100.

ROTA_TEST_SAMPLES gives the number of samples (5,000 when empty), ROTA_TEST_SEED another seed. 40 of 100 instants
lie within a day of a change of the zone's offset.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from reference import calendar_reference, cron_reference
from reference.samples import (
    DAY,
    CronSample,
    calendar_sample,
    cron_sample,
    sample_count,
    seed,
    telling_instant,
)
from reference.zones import instant, load, second_of, zone_names
from rota import BadTrigger, calendar, cron, trigger_from_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from reference.calendar_reference import Rule
    from rota import Trigger

SHARDS = 16
CALENDAR_SHARDS = 4
HORIZON = 3_000  # days, enough for a 29 February across 2100
SHOWN = 10


def zones_of(shard: int, shards: int) -> tuple[str, ...]:
    """A share of all zones, so that no two shards search the same zone for its transitions."""
    return zone_names()[shard::shards]


def asked(rng: Random, second: int, zone: str) -> datetime:
    """The instant as UTC or as local time: the same question."""
    return instant(second).astimezone(load(zone)) if rng.random() < 0.5 else instant(second)


def seconds(run: datetime | None) -> int | None:
    return None if run is None else second_of(run)


def shown(second: int | None, zone: str) -> str:
    return "none" if second is None else f"{instant(second).astimezone(load(zone)).isoformat()} ({second})"


def report(rule: object, zone: str, question: str, second: int, expected: object, got: object) -> str:
    answers = [shown(a, zone) if a is None or "count" not in question else a for a in (expected, got)]
    return f"{rule} in {zone}, {question} {shown(second, zone)}: expected {answers[0]}, got {answers[1]}"


def build(sample: CronSample, zone: str) -> Trigger | None:
    """The trigger, or None if it is rightly refused because it never fires."""
    try:
        return cron(sample.text, tz=zone, dialect=sample.dialect)
    except BadTrigger as refusal:
        reason = str(refusal)
    assert "never fire" in reason, f"{sample}: {reason}"
    assert cron_reference.never_fires(sample.text, dialect=sample.dialect), f"{sample}: {reason}"
    return None


def differences(rng: Random, sample: CronSample, zone: str, second: int, *, thorough: bool) -> Iterator[str]:
    trigger = build(sample, zone)
    if trigger is None:
        return
    text, dialect = sample
    expected = cron_reference.next_after(text, zone, second, HORIZON, dialect=dialect)
    got = seconds(trigger.next_after(asked(rng, second, zone)))
    if got != expected and not (expected is None and is_beyond(got, second)):
        yield report(sample, zone, "next after", second, expected, got)
    if not thorough:
        return
    expected = cron_reference.previous_before(text, zone, second, HORIZON, dialect=dialect)
    got = seconds(trigger.previous_before(asked(rng, second, zone)))
    if got != expected and not (expected is None and is_beyond(got, second)):
        yield report(sample, zone, "previous before", second, expected, got)
    end = second + rng.choice((DAY // 8, DAY, 3 * DAY))
    runs = cron_reference.occurrences(text, zone, second, end, dialect=dialect)
    counted = trigger.count_between(asked(rng, second, zone), asked(rng, end, zone))
    if counted != len(runs):
        yield report(sample, zone, f"count to {shown(end, zone)} after", second, len(runs), counted)
    again = trigger_from_text(str(trigger))
    if again != trigger or again.next_after(instant(second)) != trigger.next_after(instant(second)):
        yield f"{sample} in {zone}: '{trigger}' reads back as '{again}'"


def is_beyond(got: int | None, second: int) -> bool:
    """Whether an answer lies where the reference did not look."""
    return got is None or abs(got - second) > (HORIZON - 3) * DAY


@pytest.mark.parametrize("shard", range(SHARDS))
def test_cron_answers_as_the_reference_does(shard):
    rng = Random(f"{seed()} cron {shard}")
    zones = zones_of(shard, SHARDS)
    wrong: list[str] = []
    for number in range(-(-sample_count(20_000) // SHARDS)):
        zone = rng.choice(zones)
        second = telling_instant(rng, zone)
        sample = cron_sample(rng, instant(second).year)
        wrong += differences(rng, sample, zone, second, thorough=number % 10 == 0)
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:SHOWN]])


def calendar_trigger(rule: Rule) -> Trigger | None:
    """The trigger, or None if it is rightly refused because it never fires."""
    try:
        return build_calendar(rule)
    except BadTrigger as refusal:
        reason = str(refusal)
    assert "never fire" in reason, f"{rule}: {reason}"
    assert next(rule.dates(), None) is None, f"{rule}: {reason}"
    return None


def build_calendar(rule: Rule) -> Trigger:
    minutes, second = divmod(rule.at, 60)
    return calendar(
        **{rule.unit: rule.n},
        at=f"{minutes // 60:02}:{minutes % 60:02}:{second:02}",
        start=rule.start,
        end=rule.end_date if rule.end_at is None else instant(rule.end_at),
        on=rule.on,
        nth=rule.nth,
        month_end=rule.month_end,
        tz=rule.zone,
    )


def calendar_differences(rng: Random, rule: Rule, second: int) -> Iterator[str]:
    trigger, zone = calendar_trigger(rule), rule.zone
    if trigger is None:
        return
    expected = calendar_reference.next_after(rule, second, HORIZON)
    got = seconds(trigger.next_after(asked(rng, second, zone)))
    if got != expected and not (expected is None and is_beyond(got, second)):
        yield report(rule, zone, "next after", second, expected, got)
    expected = calendar_reference.previous_before(rule, second)
    got = seconds(trigger.previous_before(asked(rng, second, zone)))
    if got != expected:
        yield report(rule, zone, "previous before", second, expected, got)
    end = second + rng.choice((DAY, 40 * DAY, 2_000 * DAY))
    runs = calendar_reference.occurrences(rule, second, end)
    counted = trigger.count_between(asked(rng, second, zone), asked(rng, end, zone))
    if counted != len(runs):
        yield report(rule, zone, f"count to {shown(end, zone)} after", second, len(runs), counted)
    if trigger_from_text(str(trigger)) != trigger:
        yield f"{rule}: '{trigger}' reads back as '{trigger_from_text(str(trigger))}'"


@pytest.mark.parametrize("shard", range(CALENDAR_SHARDS))
def test_calendar_answers_as_the_walk_over_every_occurrence_does(shard):
    rng = Random(f"{seed()} calendar {shard}")
    zones = rng.sample(zone_names(), 60)
    wrong: list[str] = []
    for _ in range(-(-sample_count(2_000) // CALENDAR_SHARDS)):
        rule = calendar_sample(rng, rng.choice(zones))
        wrong += calendar_differences(rng, rule, instant_near(rng, rule))
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:SHOWN]])


def instant_near(rng: Random, rule: Rule) -> int:
    """An instant from shortly before the anchor to years after it, mostly close to an occurrence."""
    anchor = second_of(instant(0).replace(year=rule.start.year, month=rule.start.month, day=rule.start.day))
    second = anchor + rng.choice((rng.randint(-3, 40), rng.randint(0, 800), rng.randint(0, 9_000))) * DAY
    near = calendar_reference.next_after(rule, second, HORIZON)
    if near is None or rng.random() < 0.3:
        return second + rng.randint(0, DAY)
    return near + rng.choice((-1, 0, 1, -3600, 3600, rng.randint(-DAY, DAY)))
