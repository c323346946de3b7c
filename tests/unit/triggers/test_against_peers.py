"""The engine agrees with cronsim and croniter on five-field cron, but for the disagreements named here.

Each disagreement has a reason, a function that recognises it, and an example with the answer that is right by the
engine's rules. A difference that no entry recognises fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from croniter import croniter
from cronsim import CronSim, CronSimError

from reference.cron_reference import parse
from reference.local_text import moment, shown
from reference.samples import DAY, sample_count, seed, telling_instant, unix_five_fields
from reference.zones import instant, load, second_of, transitions
from rota import cron

if TYPE_CHECKING:
    from collections.abc import Callable

SHARDS = 4
CALM = ("UTC", "Asia/Kolkata", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Pacific/Chatham")
CHANGING = (
    "America/New_York",
    "Europe/London",
    "Europe/Moscow",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Nuuk",
    "Pacific/Chatham",
    "Atlantic/Azores",
    "America/St_Johns",
    "Antarctica/Troll",
    "America/Sao_Paulo",
)
HANGS = {"cronsim": ("America/St_Johns",)}  # it never returns where clocks go back over midnight, 00:01 to 23:01
MAXIMA = (59, 23, 31, 12, 6)


@dataclass(frozen=True)
class Case:
    """One question to two engines, and their answers (None: it refuses the expression)."""

    expression: str
    zone: str
    after: int
    ours: int
    theirs: int | None

    def __str__(self) -> str:
        texts = [
            "refused" if t is None else shown(instant(t).astimezone(load(self.zone)))
            for t in (self.after, self.ours, self.theirs)
        ]
        return f"{self.expression} in {self.zone} after {texts[0]}: ours {texts[1]}, theirs {texts[2]}"

    @property
    def fields(self) -> list[str]:
        return self.expression.split()

    @property
    def every_hour(self) -> bool:
        return parse(self.expression).every_hour

    @property
    def starts_with_a_star(self) -> bool:
        return self.fields[0].startswith("*") or self.fields[1].startswith("*")

    def is_gap_end(self, second: int | None) -> bool:
        return any(change == second and new > old for change, old, new in transitions(self.zone))

    def is_second_pass(self, second: int | None) -> bool:
        return second is not None and any(
            change <= second < change + old - new for change, old, new in transitions(self.zone)
        )

    def changed_off_the_hour(self) -> bool:
        """Whether, on the way to our answer, clocks changed by or at a part of an hour."""
        return any(
            (change + old) % 3600 + (change + new) % 3600 and self.after - DAY < change <= self.ours
            for change, old, new in transitions(self.zone)
        )


class Disagreement(NamedTuple):
    """Where a peer may differ: why, how to see it, and an example with the right answer."""

    reason: str
    recognises: Callable[[Case], bool]
    example: tuple[str, str, str, str]  # expression, zone, after, ours


def ranges(case: Case) -> list[tuple[int, int, int]]:
    """All ranges of an expression as first, last and step; `a/n` ends at the field's maximum."""
    found = []
    for text, highest in zip(case.fields, MAXIMA, strict=True):
        for item in text.split(","):
            body, slash, step = item.partition("/")
            if not body[0].isdigit() or "#" in item:
                continue
            if "-" in body:
                first, last = body.split("-")
                found.append((int(first), int(last), int(step or 1)))
            elif slash:
                found.append((int(body), highest, int(step)))
    return found


def has_wrapped_range(case: Case) -> bool:
    return any(first > last for first, last, _ in ranges(case))


def has_stepped_wrapped_range(case: Case) -> bool:
    return any(first > last and step > 1 for first, last, step in ranges(case))


def has_range_of_one(case: Case) -> bool:
    return any(first <= last < first + step for first, last, step in ranges(case))


def has_stepped_star_in_one_day_field(case: Case) -> bool:
    """One day field is `*/n` and the other is restricted too."""
    days = (case.fields[2], case.fields[4])
    return any("*/" in day for day in days) and "*" not in days


def skipped_the_gap(case: Case) -> bool:
    return case.is_gap_end(case.ours) and not case.every_hour and case.starts_with_a_star


def begins_its_gap_at_midnight(case: Case, second: int | None) -> bool:
    return any(change == second and (change + old) % DAY == 0 for change, old, _ in transitions(case.zone))


def moved_out_of_the_gap(case: Case) -> bool:
    return case.is_gap_end(case.theirs) and case.every_hour


CRONSIM = [
    Disagreement(
        "it reads the step of a range of one value as going on to the end of the field (5-5/3 as 5/3)",
        lambda case: re.search(r"\b([0-9]+)-\1/", case.expression) is not None,
        ("0 5-5/3 * * *", "UTC", "2026-01-01 06:00", "2026-01-02 05:00+00"),
    ),
    Disagreement(
        "it refuses ranges that wrap around",
        lambda case: case.theirs is None and has_wrapped_range(case),
        ("0 22-2 * * *", "UTC", "2026-01-01 12:00", "2026-01-01 22:00+00"),
    ),
    Disagreement(
        "asked within the second pass of a fold, it answers with the first pass, which is past",
        lambda case: case.theirs is not None and case.theirs <= case.after and case.is_second_pass(case.after),
        ("30 1 * * *", "America/New_York", "2026-11-01 01:10-05", "2026-11-02 01:30-05"),
    ),
    Disagreement(
        "as Debian does, it skips a gap altogether where minute or hour begin with a star",
        skipped_the_gap,
        ("*/15 2 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-08 03:00-04"),
    ),
    Disagreement(
        "it takes a midnight that a gap swallowed for a real one",
        lambda case: moved_out_of_the_gap(case) and begins_its_gap_at_midnight(case, case.theirs),
        ("0,45 * 1 * *", "Australia/Lord_Howe", "1981-02-28 18:31", "1981-03-01 00:45+10:30"),
    ),
    Disagreement(
        "it takes 0-23 for fixed times and moves them out of a gap",
        lambda case: moved_out_of_the_gap(case) and not case.starts_with_a_star,
        ("15 0-23 * * *", "America/New_York", "2026-03-08 01:50", "2026-03-08 03:15-04"),
    ),
    Disagreement(
        "it takes full ranges and 0/n for fixed times and is silent in a fold's second pass",
        lambda case: case.is_second_pass(case.ours) and not case.starts_with_a_star,
        ("0-59/30 1 * * *", "America/New_York", "2026-11-01 01:30-04", "2026-11-01 01:00-05"),
    ),
    Disagreement(
        "it goes on in whole hours after clocks changed by or at a part of one and passes over what it looks for",
        lambda case: case.changed_off_the_hour() and case.starts_with_a_star and (case.theirs or 0) > case.ours,
        ("* 4 * * *", "Australia/Lord_Howe", "2025-10-04 17:00", "2025-10-05 04:00+11"),
    ),
]

CRONITER = [
    Disagreement(
        "it reads a range of one value (5-5, 59/20) as the whole field",
        has_range_of_one,
        ("30 5-5 * * *", "UTC", "2026-01-01", "2026-01-01 05:30+00"),
    ),
    Disagreement(
        "it starts the steps of a wrapped range anew after the wrap",
        has_stepped_wrapped_range,
        ("54-13/7 7 * * *", "UTC", "2026-01-01", "2026-01-01 07:01+00"),
    ),
    Disagreement(
        "it takes */n in a day field for a restriction and joins the two day fields with or",
        has_stepped_star_in_one_day_field,
        ("0 0 */2 * MON", "UTC", "2026-01-01", "2026-01-05 00:00+00"),
    ),
    Disagreement(
        "it runs fixed times again in the second pass of a fold",
        lambda case: case.is_second_pass(case.theirs) and not parse(case.expression).cadence,
        ("30 1 * * *", "America/New_York", "2026-11-01 01:30-04", "2026-11-02 01:30-05"),
    ),
    Disagreement(
        "it passes over the part of an hour that a fold shows again",
        lambda case: case.is_second_pass(case.ours) and case.changed_off_the_hour(),
        ("20,50 0/2 * * *", "Pacific/Chatham", "2025-04-06 02:58+13:45", "2025-04-06 02:50+12:45"),
    ),
    Disagreement(
        "it moves times of an expression that runs in every hour out of a gap",
        moved_out_of_the_gap,
        ("45 * * * *", "America/Havana", "2025-03-08 23:50", "2025-03-09 01:45-04"),
    ),
]


def ask_cronsim(expression: str, after: datetime) -> int | None:
    try:
        return second_of(next(CronSim(expression, after)))
    except CronSimError:
        return None


def ask_croniter(expression: str, after: datetime) -> int | None:
    return second_of(croniter(expression, after).get_next(datetime))


PEERS = {"cronsim": (ask_cronsim, CRONSIM), "croniter": (ask_croniter, CRONITER)}
EXAMPLES = [(peer, entry) for peer, (_, entries) in PEERS.items() for entry in entries]


def with_specials(rng: Random, peer: str) -> str:
    """An expression with the special days that both engines know."""
    minute, hour, *_ = unix_five_fields(rng).split()
    days = [
        "L * *",
        "* * 1#2",
        "* * 5#5",
        "L 2,3 *",
        "13 * 5",
        "1,15 * 1-5",
        "* 1-6 6,0",
        "2,*/25,*/12 * 2",
        "*/31 * *",
    ]
    if peer == "cronsim":
        days += [
            "LW * *",
            "* * 5L",
            "15 * 1#1",
            "1,L * 0L",
            "LW * 3",
            "* FEB MON-FRI",
            "* JAN-MAR SUN,WED",
            "*/12,2 * 2",
        ]
    return f"{minute} {hour} {rng.choice(days)}"


def calm_case(rng: Random, _peer: str) -> tuple[str, int]:
    """A zone and an instant without a change of the offset nearby."""
    while True:
        zone = rng.choice(CALM)
        second = telling_instant(rng, zone)
        if not any(abs(change - second) < 3 * DAY for change, _, _ in transitions(zone)):
            return zone, second


def changing_case(rng: Random, peer: str) -> tuple[str, int]:
    """A zone and an instant within a day of a change of the offset."""
    zone = rng.choice([zone for zone in CHANGING if zone not in HANGS.get(peer, ())])
    return zone, rng.choice(transitions(zone))[0] + rng.randint(-DAY, DAY // 2)


def compare(
    rng: Random, peer: str, draw: Callable[[Random, str], tuple[str, int]], samples: int
) -> tuple[int, list[str]]:
    """How many answers are the same, and the differences that no entry recognises."""
    ask, entries = PEERS[peer]
    same, unexplained = 0, []
    for number in range(samples):
        zone, after = draw(rng, peer)
        expression = with_specials(rng, peer) if number % 5 == 0 else unix_five_fields(rng)
        asked = instant(after).astimezone(load(zone))
        ours = second_of(cron(expression, tz=zone).next_after(asked))
        case = Case(expression, zone, after, ours, ask(expression, asked))
        if case.theirs == ours:
            same += 1
        elif not any(entry.recognises(case) for entry in entries):
            unexplained.append(str(case))
    return same, unexplained


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("draw", [calm_case, changing_case])
@pytest.mark.parametrize("peer", PEERS)
def test_differences_from_a_peer_are_all_explained(peer, draw, shard):
    rng = Random(f"{seed()} {peer} {draw.__name__} {shard}")
    samples = sample_count(1_000)
    same, unexplained = compare(rng, peer, draw, samples)
    assert not unexplained, "\n".join([f"{len(unexplained)} unexplained", *unexplained[:10]])
    assert same > 0.75 * samples


@pytest.mark.parametrize(("peer", "entry"), EXAMPLES, ids=[f"{peer}: {entry.reason}" for peer, entry in EXAMPLES])
def test_the_engine_is_right_where_a_peer_differs(peer, entry):
    expression, zone, after, right = entry.example
    asked = moment(zone, after)
    ours = cron(expression, tz=zone).next_after(asked)
    assert shown(ours) == right
    case = Case(
        expression.replace("MON", "1"), zone, second_of(asked), second_of(ours), PEERS[peer][0](expression, asked)
    )
    assert case.theirs == case.ours or entry.recognises(case)
