"""No text makes the engine hang, eat memory or raise anything but BadTrigger.

A guard counts the lines of Python that one call runs, so a hang is told by counting and not by a clock.
"""

from __future__ import annotations

import sys
import tracemalloc
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from random import Random
from typing import TYPE_CHECKING

import pytest

from reference.samples import calendar_sample, cron_sample, sample_count, seed
from rota import BadTrigger, Trigger, calendar, cron, every, once, trigger_from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SHARDS = 8
MOST_LINES = 2_000_000  # a call needs some hundreds; a search through all months of ten thousand years, a million
LONG = 100_000
MOST_MEMORY = 1_000_000
EDGES = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
ASKED = [datetime(year, 3, 1, tzinfo=UTC) for year in (1970, 2026, 2099, 2250)]


class Hung(BaseException):
    """A call ran so many lines that it may never end; nothing catches this by accident."""


@contextmanager
def bounded() -> Iterator[None]:
    """Stop what runs within after so many lines of Python."""
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Callable[..., object]:
        nonlocal lines
        lines += event == "line"
        if lines > MOST_LINES:
            raise Hung
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


def outcome(read: Callable[[str], Trigger], text: str) -> str:
    """Read the text, ask the trigger that comes of it, and say what happened."""
    try:
        with bounded():
            trigger = read(text)
            for asked in ASKED:
                check_order(trigger, asked)
            assert read_again(trigger) == trigger
    except BadTrigger as refusal:
        return "refused" if len(str(refusal)) < 1_000 else f"refused at great length: {str(refusal)[:200]}"
    except Hung:
        return "hung"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test looks for
        return f"raised {error!r}"
    return "read"


def read_again(trigger: Trigger) -> Trigger:
    try:
        return trigger_from_text(str(trigger))
    except BadTrigger as refusal:
        raise AssertionError(f"'{trigger}' does not read back: {refusal}") from refusal


def check_order(trigger: Trigger, asked: datetime) -> None:
    following, previous = trigger.next_after(asked), trigger.previous_before(asked)
    assert following is None or following > asked
    assert previous is None or previous < asked


# Strings of all sorts

SYNTAX = "0123456789*/,-?LW# @=:TZ"
ODDITIES = [
    "",
    " ",
    "\x00",
    "\n",
    "\t",
    "\u00a0",
    "\u2003",
    "٣",
    "\uff13",
    "²",
    "Ⅷ",
    "∞",
    "\u0131",
    "\u017f",
    "ß",
    "é",
    "\u0301",
    "\u202e",
    "😀",
    "\ud800",
    "\U0010ffff",
    "99999",
    "9" * 400,
    "-0",
    "1e9",
    "0x1f",
    "*" * 50,
    "/" * 50,
    "," * 50,
    "-" * 50,
    "#" * 50,
    "L" * 50,
    "W" * 50,
    "%s",
    "{}",
    "@every ",
    "CRON_TZ=",
    "TZ=UTC ",
    "tz=UTC",
    "done=",
    "kept=",
    "../../etc/passwd",
    "2026-02-30",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
]


def mutated(rng: Random, text: str) -> str:
    """The text with some characters removed, doubled, swapped or replaced."""
    if rng.random() < 0.2:
        return with_a_word_replaced(rng, text)
    letters = list(text)
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, len(letters))
        kind = rng.randint(0, 4)
        if kind == 0:
            letters[place : place + rng.randint(1, 3)] = []
        elif kind == 1:
            letters[place:place] = rng.choice(SYNTAX)
        elif kind == 2:
            letters[place:place] = rng.choice(ODDITIES)
        elif kind == 3:
            letters[place : place + 1] = rng.choice(SYNTAX)
        else:
            cut = rng.randint(0, len(letters))
            letters = letters[cut:] + letters[:cut]
    return "".join(letters)


def with_a_word_replaced(rng: Random, text: str) -> str:
    """The text with one word, or what stands behind its equals sign, replaced by an oddity."""
    words = text.split(" ")
    place = rng.randrange(len(words))
    key, equals, _ = words[place].partition("=")
    words[place] = (key + equals if equals else "") + rng.choice(ODDITIES)
    return " ".join(words)


def random_text(rng: Random) -> str:
    kind = rng.randint(0, 4)
    size = rng.randint(0, 60)
    if kind == 0:
        return "".join(chr(rng.randint(0, 126)) for _ in range(size))
    if kind == 1:
        return "".join(chr(rng.choice((rng.randint(0, 0x2FF), rng.randint(0, 0x10FFFF)))) for _ in range(size))
    if kind == 2:
        return "".join(rng.choice(SYNTAX) for _ in range(size))
    if kind == 3:
        return " ".join(
            rng.choice(("*", "?", "L", "1", "*/2", "1-5", "MON", "?", "0", "31", "2#2")) for _ in range(size % 9)
        )
    return ",".join(str(rng.randint(0, 70)) for _ in range(size)) + " * * * *"


def long_text(rng: Random) -> str:
    """About 100 kB of one thing."""
    piece = rng.choice(
        [
            "0-59,",
            "1,",
            "*",
            "* ",
            "*/2,",
            "L",
            "#",
            "-",
            "9",
            "MON,",
            "1W,",
            "?",
            " ",
            "é",
            "\x00",
            "@",
            "1h",
            "=",
            "a=",
        ]
    )
    return rng.choice(["", "@every ", "CRON_TZ=", "0 0 ", "cron ", "every ", "calendar "]) + piece * (
        LONG // len(piece)
    )


def hostile_cron(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.7:
        return mutated(rng, cron_sample(rng, 2026).text)
    return long_text(rng) if kind > 0.98 else random_text(rng)


def trigger_texts(rng: Random) -> str:
    """The text of a valid trigger of any kind."""
    moment = datetime(2026, 1, rng.randint(1, 31), rng.randint(0, 23), tzinfo=UTC)
    rule = calendar_sample(rng, rng.choice(("UTC", "Europe/Paris", "Pacific/Apia")))
    return str(
        rng.choice(
            (
                cron("0 9 * * MON-FRI", tz="America/New_York"),
                cron("0 9 * * *", tz="Asia/Kolkata").rezoned("UTC", done_date=date(2026, 1, 2)),
                every("1h30m", start=moment),
                every("1w", start=moment, end=moment + timedelta(days=90), tz="UTC"),
                calendar(months=rule.n, at="00:05", start=rule.start, tz=rule.zone),
                calendar(weeks=2, on="tue", start=rule.start, end=rule.start + timedelta(days=rng.randint(0, 99))),
                calendar(months=1, on="fri", nth="last", start=moment, tz="Europe/Paris"),
                once(moment, tz="Pacific/Apia"),
            )
        )
    )


def hostile_trigger_text(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.8:
        return mutated(rng, trigger_texts(rng))
    return (
        long_text(rng) if kind > 0.98 else rng.choice(("cron ", "every ", "calendar ", "once ", "")) + random_text(rng)
    )


def hostile_duration(rng: Random) -> str:
    return mutated(rng, rng.choice(("1h30m", "90s", "2d", "1w", "5m"))) if rng.random() < 0.9 else random_text(rng)


def shown(text: str) -> str:
    return repr(text) if len(text) < 400 else f"{text[:60]!r}… ({len(text)} characters)"


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(
    ("read", "draw", "samples"),
    [
        (cron, hostile_cron, 20_000),
        (trigger_from_text, hostile_trigger_text, 6_000),
        (every, hostile_duration, 2_000),
    ],
    ids=["cron", "trigger_from_text", "every"],
)
def test_hostile_text_is_read_or_refused(read, draw, samples, shard):
    rng = Random(f"{seed()} hostile {draw.__name__} {shard}")
    wrong, seen = [], set()
    for _ in range(sample_count(samples) // SHARDS):
        text = draw(rng)
        what = outcome(read, text)
        seen.add(what)
        if what not in ("read", "refused"):
            wrong.append(f"{shown(text)}: {what}")
    assert not wrong, "\n".join([f"{len(wrong)} failures", *wrong[:10]])
    assert seen == {"read", "refused"}


@pytest.mark.parametrize(
    "text",
    [
        "once 0001-01-01T00:00:00+23:59",
        "once 9999-12-31T23:59:59-23:59",
        "every 1h start=0001-01-01T00:00:00+23:59",
        "every 1h end=9999-12-31T23:59:59-23:59",
        "calendar days=1 start=0001-01-01T00:00:00+23:59",
        "cron 0 0 * * * kept=9999-12-31T23:59:59-23:59",
    ],
)
def test_an_instant_beyond_the_calendar_is_refused(text):
    with pytest.raises(BadTrigger):
        trigger_from_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "once 2026-01-01T00:00:00",
        "every 1h start=2026-01-01T00:00:00",
        "every 1h start=2026-01-01 end=2026-02-01T00:00:00",
        "calendar days=1 start=2026-01-01T00:00:00",
        "cron 0 0 * * * kept=2026-01-01T00:00:00",
    ],
)
def test_an_instant_without_a_zone_is_refused_and_not_read_in_the_zone_of_the_machine(text):
    with pytest.raises(BadTrigger):
        trigger_from_text(text)


@pytest.mark.parametrize("edge", EDGES, ids=["first", "last"])
@pytest.mark.parametrize("hours", [-23, 0, 23])
def test_once_at_the_ends_of_the_calendar_is_answered_or_refused(edge, hours):
    moment = edge.replace(tzinfo=timezone(timedelta(hours=hours)))
    assert outcome(lambda _: once(moment), "") in ("read", "refused")


HUGE = [
    "0-59," * (LONG // 5) + "0 * * * *",
    "* " * (LONG // 2),
    "*" * LONG,
    "9" * LONG + " * * * *",
    "0 0 * * " + "MON," * (LONG // 4) + "MON",
    "0 0 " + "1W," * (LONG // 3) + "L * *",
    "@every " + "1h" * (LONG // 2),
    "CRON_TZ=" + "A/" * (LONG // 2) + " 0 0 * * *",
    " " * LONG,
    "é" * LONG,
    "*/" + "0" * LONG + "5 * * * *",
]


@pytest.mark.parametrize("text", HUGE, ids=[f"{text[:12].strip()}…" for text in HUGE])
def test_a_huge_text_is_refused_in_little_memory(text):
    tracemalloc.start()
    try:
        with bounded(), pytest.raises(BadTrigger):
            cron(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("text", HUGE, ids=[f"{text[:12].strip()}…" for text in HUGE])
@pytest.mark.parametrize("kind", ["cron", "every", "calendar", "once"])
def test_a_huge_trigger_text_is_refused_in_little_memory(kind, text):
    hostile = f"{kind} {text}"
    tracemalloc.start()
    try:
        with bounded(), pytest.raises(BadTrigger):
            trigger_from_text(hostile)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("expression", [None, 5, 5.0, b"* * * * *", ["*"], object(), True])
def test_what_is_not_text_is_refused(expression):
    with pytest.raises(BadTrigger):
        cron(expression)


@pytest.mark.parametrize(
    "zone", [5, b"UTC", object(), "\x00", "UTC\x00", "A" * LONG, "../UTC", "UTC/", "/UTC", "Europe", "é", " "]
)
def test_a_hostile_zone_is_refused(zone):
    with bounded(), pytest.raises(BadTrigger):
        cron("0 0 * * *", tz=zone)


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 0 31 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 30,31 FEB *",
        "0 0 30W 2 *",
        "0 0 31W 4 *",
        "0 0 L-29 2 *",
        "0 0 L-30 4,6,9,11 *",
        "* * */20 * 1L",
        "0 0 LW * */6",
        "0 0 1W * */6",
        "0 0 */30 2 SUN#2",
        "0 0 0 29 2 ? 2026",
        "0 0 0 29 2 ? 2025-2027",
        "0 0 0 29 2 ? 2100",
        "0 0 0 29 2 ? 2001/4",
        "0 0 0 30 2 ? *",
        "0 0 0 ? 2 MON#5 2027",
        "0 0 0 ? 2 2#5 2045-2071",
    ],
)
def test_an_expression_that_can_never_fire_is_refused(expression):
    with bounded(), pytest.raises(BadTrigger):
        cron(expression)


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("0 0 29 2 *", "2028-02-29"),
        ("0 0 30,31 2,3 *", "2026-03-30"),
        ("0 0 31W 5 *", "2026-05-29"),
        ("0 0 L-30 3 *", "2026-03-01"),
        ("0 0 30 2 MON", "2026-02-02"),
        ("0 0 0 29 2 ? 2100-2104", "2104-02-29"),
        ("0 0 0 ? 2 MON#5 2044", "2044-02-29"),
        ("0 0 0 31 12 ? 2199", "2199-12-31"),
        ("0 0 LW * */5", "2026-01-30"),
    ],
)
def test_an_expression_that_rarely_fires_is_accepted(expression, first):
    with bounded():
        run = cron(expression, tz="UTC").next_after(datetime(2026, 1, 1, tzinfo=UTC))
    assert run.date() == date.fromisoformat(first)


@pytest.mark.parametrize("expression", ["* * * * * *", "0 0 29 2 *", "0 0 * 2 MON#5", "0 0 0 29 2 ? 2196"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia"])
@pytest.mark.parametrize("edge", EDGES, ids=["first", "last"])
def test_the_ends_of_the_calendar_are_answered(expression, zone, edge):
    trigger = cron(expression, tz=zone)
    with bounded():
        check_order(trigger, edge)


@pytest.mark.parametrize(
    "rule", [{"days": 1}, {"weeks": 3, "on": "sun"}, {"months": 1, "on": "fri", "nth": 5}, {"years": 10_000}]
)
@pytest.mark.parametrize("edge", EDGES, ids=["first", "last"])
def test_calendars_answer_at_the_ends_of_the_calendar(rule, edge):
    trigger = calendar(**rule, start=date(2026, 1, 1), tz="America/New_York")
    with bounded():
        check_order(trigger, edge)


@pytest.mark.parametrize("start", [date.min, date.max])
def test_calendars_may_start_at_the_ends_of_the_calendar(start):
    with bounded():
        for unit in ("days", "weeks", "months", "quarters", "years"):
            check_order(calendar(**{unit: 1}, start=start, tz="Pacific/Apia"), datetime(2026, 1, 1, tzinfo=UTC))
