"""Calendar intervals and elapsed intervals do what these tables say.

Occurrence k is counted from the anchor each time, so a month that is too short never shortens the next one. The
wall time becomes an instant as a fixed time of cron does. Both ends of the bounds are included.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest

from reference.local_text import moment, runs_after, shown
from rota import BadDuration, BadInterval, BadTrigger, NaiveDatetime, UnknownZone, calendar, cron, every, once

NY = "America/New_York"
LONDON = "Europe/London"
CAIRO = "Africa/Cairo"
APIA = "Pacific/Apia"
NUUK = "America/Nuuk"
KOLKATA = "Asia/Kolkata"


def day(text: str) -> date:
    return date.fromisoformat(text)


def at(zone: str, hour: int, minute: int = 0) -> dict[str, object]:
    return {"tz": zone, "at": f"{hour:02}:{minute:02}"}


# rule (UTC at 00:05 unless it says otherwise), after, the next runs
INTERVALS = [
    # from the 31st: clamped from the anchor each time
    (
        {"months": 1, "start": day("2026-01-31")},
        "2026-01-31 00:05",
        ["2026-02-28 00:05+00", "2026-03-31 00:05+00", "2026-04-30 00:05+00", "2026-05-31 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2028-01-31")},
        "2028-01-31 00:05",
        ["2028-02-29 00:05+00", "2028-03-31 00:05+00"],
    ),
    (
        {"years": 1, "start": day("2024-02-29")},
        "2024-02-29 00:05",
        ["2025-02-28 00:05+00", "2026-02-28 00:05+00", "2027-02-28 00:05+00", "2028-02-29 00:05+00"],
    ),
    (
        {"quarters": 1, "start": day("2025-11-30")},
        "2025-11-30 00:05",
        ["2026-02-28 00:05+00", "2026-05-30 00:05+00", "2026-08-30 00:05+00", "2026-11-30 00:05+00"],
    ),
    (
        {"months": 3, "start": day("2026-01-15")},
        "2026-01-15 00:05",
        ["2026-04-15 00:05+00", "2026-07-15 00:05+00", "2026-10-15 00:05+00", "2027-01-15 00:05+00"],
    ),
    # weeks keep the wall time when the offset changes
    (
        {"weeks": 2, "start": day("2026-03-03"), **at(NY, 9)},
        "2026-03-01",
        ["2026-03-03 09:00-05", "2026-03-17 09:00-04"],
    ),
    (
        {"weeks": 2, "start": day("2026-10-20"), **at(NY, 9)},
        "2026-10-20 09:00",
        ["2026-11-03 09:00-05", "2026-11-17 09:00-05"],
    ),
    (
        {"weeks": 2, "on": "tue", "start": day("2026-01-01"), **at("UTC", 9)},
        "2026-01-01",
        ["2026-01-06 09:00+00", "2026-01-20 09:00+00", "2026-02-03 09:00+00"],
    ),
    # days across gaps, folds and a missing date
    (
        {"days": 1, "start": day("2026-01-01"), **at(NY, 0, 5)},
        "2026-03-07 12:00+00:00",
        ["2026-03-08 00:05-05", "2026-03-09 00:05-04"],
    ),
    (
        {"days": 1, "start": day("2026-01-01"), **at(CAIRO, 0, 5)},
        "2026-04-23 12:00+00:00",
        ["2026-04-24 01:00+03", "2026-04-25 00:05+03"],
    ),
    (
        {"days": 1, "start": day("2018-01-01"), **at("America/Sao_Paulo", 0, 5)},
        "2018-11-03 12:00+00:00",
        ["2018-11-04 01:00-02", "2018-11-05 00:05-02"],
    ),
    (
        {"days": 1, "start": day("2026-01-01"), **at(NY, 1, 30)},
        "2026-10-31 12:00+00:00",
        ["2026-11-01 01:30-04", "2026-11-02 01:30-05"],
    ),
    (
        {"days": 1, "start": day("2011-12-01"), **at(APIA, 12)},
        "2011-12-29 21:00+00:00",
        ["2011-12-29 12:00-10", "2011-12-31 12:00+14"],
    ),
    (
        {"months": 1, "start": day("2011-11-30"), **at(APIA, 12)},
        "2011-11-30 12:00",
        ["2012-01-30 12:00+14", "2012-02-29 12:00+14"],
    ),
    # the nth and the last weekday
    (
        {"months": 1, "on": "tue", "nth": 2, "start": day("2026-01-01"), **at(LONDON, 10)},
        "2026-01-01",
        ["2026-01-13 10:00+00", "2026-02-10 10:00+00", "2026-03-10 10:00+00", "2026-04-14 10:00+01"],
    ),
    (
        {"months": 2, "on": "tue", "nth": 2, "start": day("2026-01-01")},
        "2026-01-14",
        ["2026-03-10 00:05+00", "2026-05-12 00:05+00"],
    ),
    (
        {"months": 1, "on": "fri", "nth": 5, "start": day("2026-01-01")},
        "2026-01-01",
        ["2026-01-30 00:05+00", "2026-05-29 00:05+00", "2026-07-31 00:05+00"],
    ),
    (
        {"months": 1, "on": "fri", "nth": "last", "start": day("2026-01-01")},
        "2026-01-01",
        ["2026-01-30 00:05+00", "2026-02-27 00:05+00", "2026-03-27 00:05+00"],
    ),
    # after years of rest
    (
        {"days": 3, "start": day("2020-01-01")},
        "2026-06-15 12:00",
        ["2026-06-16 00:05+00", "2026-06-19 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2020-01-31")},
        "2026-02-28 12:00",
        ["2026-03-31 00:05+00", "2026-04-30 00:05+00"],
    ),
    (
        {"weeks": 2, "start": day("2021-01-05")},
        "2026-02-01",
        ["2026-02-10 00:05+00", "2026-02-24 00:05+00"],
    ),
    # bounds, both inclusive
    (
        {"days": 1, "start": day("2026-01-01"), "end": datetime(2026, 1, 3, 0, 5, tzinfo=UTC)},
        "2026-01-02 00:05",
        ["2026-01-03 00:05+00", None],
    ),
    (
        {"days": 1, "start": day("2026-01-01"), "end": datetime(2026, 1, 3, 0, 4, 59, tzinfo=UTC)},
        "2026-01-02 00:05",
        [None],
    ),
    (
        {"days": 1, "start": day("2026-01-01"), "end": day("2026-01-03")},
        "2026-01-02 00:05",
        ["2026-01-03 00:05+00", None],
    ),
    ({"days": 1, "start": day("2026-01-01"), "end": day("2026-01-01")}, "2025-06-01", ["2026-01-01 00:05+00", None]),
    (
        {"days": 1, "start": day("2026-01-01"), "end": day("2026-01-02"), **at(NY, 23)},
        "2026-01-01 23:30",
        ["2026-01-02 23:00-05", None],
    ),
    (
        {"months": 1, "start": day("2026-01-31"), "end": day("2026-02-28")},
        "2026-01-31 00:05",
        ["2026-02-28 00:05+00", None],
    ),
    ({"months": 1, "start": day("2026-01-31"), "end": day("2026-02-27")}, "2026-01-31 00:05", [None]),
    (
        {"days": 1, "start": day("2026-01-01"), "end": day("2026-01-03"), **at(NY, 0)},
        "2026-01-02 00:00",
        ["2026-01-03 00:00-05", None],
    ),
    # months that are too short: skipped, or always the last day
    (
        {"months": 1, "start": day("2026-01-31"), "month_end": "skip"},
        "2026-01-31 00:05",
        ["2026-03-31 00:05+00", "2026-05-31 00:05+00", "2026-07-31 00:05+00", "2026-08-31 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2026-01-30"), "month_end": "skip"},
        "2026-01-30 00:05",
        ["2026-03-30 00:05+00", "2026-04-30 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2026-01-15"), "month_end": "skip"},
        "2026-01-15 00:05",
        ["2026-02-15 00:05+00", "2026-03-15 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2026-02-28"), "month_end": "last"},
        "2026-02-01",
        ["2026-02-28 00:05+00", "2026-03-31 00:05+00", "2026-04-30 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2026-01-15"), "month_end": "last"},
        "2026-01-01",
        ["2026-01-31 00:05+00", "2026-02-28 00:05+00"],
    ),
    (
        {"months": 1, "start": day("2026-02-28"), "month_end": "clamp"},
        "2026-02-28 00:05",
        ["2026-03-28 00:05+00", "2026-04-28 00:05+00"],
    ),
    (
        {"years": 1, "start": day("2024-02-29"), "month_end": "skip"},
        "2024-02-29 00:05",
        ["2028-02-29 00:05+00", "2032-02-29 00:05+00"],
    ),
    (
        {"years": 1, "start": day("2096-02-29"), "month_end": "skip"},
        "2096-02-29 00:05",
        ["2104-02-29 00:05+00", "2108-02-29 00:05+00"],
    ),
    (
        {"years": 1, "start": day("2023-02-28"), "month_end": "last"},
        "2023-02-28 00:05",
        ["2024-02-29 00:05+00", "2025-02-28 00:05+00"],
    ),
    (
        {"quarters": 1, "start": day("2025-11-30"), "month_end": "skip"},
        "2025-11-30 00:05",
        ["2026-05-30 00:05+00", "2026-08-30 00:05+00", "2026-11-30 00:05+00", "2027-05-30 00:05+00"],
    ),
    (
        {"quarters": 1, "start": day("2025-11-30"), "month_end": "last"},
        "2025-11-30 00:05",
        ["2026-02-28 00:05+00", "2026-05-31 00:05+00", "2026-08-31 00:05+00"],
    ),
    # quarters, years and several of them
    (
        {"quarters": 2, "start": day("2026-01-01")},
        "2026-01-01 00:05",
        ["2026-07-01 00:05+00", "2027-01-01 00:05+00"],
    ),
    (
        {"years": 4, "start": day("2024-02-29")},
        "2024-02-29 00:05",
        ["2028-02-29 00:05+00", "2032-02-29 00:05+00"],
    ),
    ({"months": 5, "start": day("2026-08-31")}, "2026-09-01", ["2027-01-31 00:05+00", "2027-06-30 00:05+00"]),
    ({"days": 90, "start": day("2026-01-01")}, "2026-01-02", ["2026-04-01 00:05+00", "2026-06-30 00:05+00"]),
    # nth weekdays of quarters and years, and an anchor late in its month
    (
        {"quarters": 1, "on": "mon", "nth": 1, "start": day("2026-01-01")},
        "2026-01-01",
        ["2026-01-05 00:05+00", "2026-04-06 00:05+00", "2026-07-06 00:05+00"],
    ),
    (
        {"years": 1, "on": "thu", "nth": 4, "start": day("2026-11-01")},
        "2026-01-01",
        ["2026-11-26 00:05+00", "2027-11-25 00:05+00"],
    ),
    (
        {"months": 1, "on": "tue", "nth": 2, "start": day("2026-01-20")},
        "2026-01-01",
        ["2026-02-10 00:05+00", "2026-03-10 00:05+00"],
    ),
    (
        {"months": 1, "on": "sun", "nth": 5, "start": day("2026-01-01")},
        "2026-01-01",
        ["2026-03-29 00:05+00", "2026-05-31 00:05+00", "2026-08-30 00:05+00"],
    ),
    (
        {"months": 1, "on": "fri", "nth": 5, "start": day("2026-01-31")},
        "2026-01-01",
        ["2026-05-29 00:05+00", "2026-07-31 00:05+00"],
    ),
    # weekdays: the anchor moves forward to the first one, also onto itself
    (
        {"weeks": 1, "on": "tue", "start": day("2026-01-06")},
        "2026-01-01",
        ["2026-01-06 00:05+00", "2026-01-13 00:05+00"],
    ),
    (
        {"weeks": 2, "on": "mon", "start": day("2026-01-06")},
        "2026-01-01",
        ["2026-01-12 00:05+00", "2026-01-26 00:05+00"],
    ),
    (
        {"weeks": 3, "on": "sun", "start": day("2026-01-01")},
        "2026-01-05",
        ["2026-01-25 00:05+00", "2026-02-15 00:05+00"],
    ),
    # the anchor is the first occurrence, however early one asks
    ({"days": 7, "start": day("2026-05-05")}, "1990-01-01", ["2026-05-05 00:05+00", "2026-05-12 00:05+00"]),
    # intervals that meet a gap
    (
        {"weeks": 1, "on": "sun", "start": day("2026-03-01"), **at(NY, 2, 30)},
        "2026-03-01 02:30",
        ["2026-03-08 03:00-04", "2026-03-15 02:30-04"],
    ),
    (
        {"months": 1, "start": day("2026-01-08"), **at(NY, 2, 30)},
        "2026-02-08 02:30",
        ["2026-03-08 03:00-04", "2026-04-08 02:30-04"],
    ),
    (
        {"years": 1, "start": day("2025-03-08"), **at(NY, 2, 30)},
        "2025-03-08 02:30",
        ["2026-03-08 03:00-04", "2027-03-08 02:30-05"],
    ),
    (
        {"months": 1, "on": "sun", "nth": 2, "start": day("2026-01-01"), **at(NY, 2, 30)},
        "2026-03-01",
        ["2026-03-08 03:00-04", "2026-04-12 02:30-04"],
    ),
    (
        {"months": 1, "on": "sun", "nth": "last", "start": day("2026-03-01"), **at(LONDON, 1, 30)},
        "2026-03-01",
        ["2026-03-29 02:00+01", "2026-04-26 01:30+01"],
    ),
    (
        {"days": 1, "start": day("2024-03-01"), **at(NUUK, 23, 30)},
        "2024-03-30 12:00",
        ["2024-03-31 00:00-01", "2024-03-31 23:30-01"],
    ),
    (
        {"days": 1, "start": day("2025-09-01"), **at("Pacific/Chatham", 3)},
        "2025-09-27 12:00",
        ["2025-09-28 03:45+13:45", "2025-09-29 03:00+13:45"],
    ),
    (
        {"days": 1, "start": day("2025-10-01"), **at("Australia/Lord_Howe", 2, 10)},
        "2025-10-04 12:00",
        ["2025-10-05 02:30+11", "2025-10-06 02:10+11"],
    ),
    (
        {"days": 1, "start": day("2009-10-01"), **at("Antarctica/Casey", 4, 59)},
        "2009-10-17 12:00",
        ["2009-10-18 05:00+11", "2009-10-19 04:59+11"],
    ),
    (
        {"days": 1, "start": day("2026-03-08"), **at(NY, 2, 30)},
        "2026-03-08 01:59:59-05",
        ["2026-03-08 03:00-04", "2026-03-09 02:30-04"],
    ),
    ({"days": 1, "start": day("2026-03-01"), **at(NY, 2, 30)}, "2026-03-08 03:00-04", ["2026-03-09 02:30-04"]),
    # intervals that meet a fold
    (
        {"months": 1, "on": "sun", "nth": 1, "start": day("2026-01-01"), **at(NY, 1, 30)},
        "2026-10-31",
        ["2026-11-01 01:30-04", "2026-12-06 01:30-05"],
    ),
    ({"days": 1, "start": day("2026-10-01"), **at(NY, 1, 30)}, "2026-11-01 01:10-05", ["2026-11-02 01:30-05"]),
    (
        {"days": 1, "start": day("2025-10-01"), **at(CAIRO, 23, 30)},
        "2025-10-30 12:00",
        ["2025-10-30 23:30+03", "2025-10-31 23:30+02"],
    ),
    (
        {"weeks": 1, "start": day("2025-10-05"), **at("Antarctica/Troll", 2, 30)},
        "2025-10-20",
        ["2025-10-26 02:30+02", "2025-11-02 02:30+00"],
    ),
    (
        {"days": 1, "start": day("2010-03-01"), **at("Antarctica/Casey", 0, 30)},
        "2010-03-04 12:00",
        ["2010-03-05 00:30+11", "2010-03-06 00:30+08"],
    ),
    # intervals that meet a date that never was
    (
        {"weeks": 1, "on": "fri", "start": day("2011-12-01"), **at(APIA, 9)},
        "2011-12-23 12:00",
        ["2012-01-06 09:00+14", "2012-01-13 09:00+14"],
    ),
    (
        {"months": 1, "on": "fri", "nth": "last", "start": day("2011-12-01"), **at(APIA, 9)},
        "2011-12-01",
        ["2012-01-27 09:00+14"],
    ),
    ({"years": 1, "start": day("2010-12-30"), **at(APIA, 0)}, "2010-12-31", ["2012-12-30 00:00+14"]),
    ({"days": 1, "start": day("2011-12-30"), **at(APIA, 9)}, "2011-12-01", ["2011-12-31 09:00+14"]),
    (
        {"days": 1, "start": day("1993-08-01"), **at("Pacific/Kwajalein", 0)},
        "1993-08-20 12:00",
        ["1993-08-22 00:00+12"],
    ),
]


def build(rule: dict[str, object]):
    return calendar(**{"at": "00:05", "tz": "UTC", **rule})


@pytest.mark.parametrize(("rule", "after", "runs"), INTERVALS)
def test_calendar_runs_as_the_table_says(rule, after, runs):
    trigger = build(rule)
    assert runs_after(trigger.next_after, moment(trigger.tz, after), len(runs)) == runs


@pytest.mark.parametrize(("rule", "after", "runs"), INTERVALS)
def test_calendar_walks_back_over_the_same_runs(rule, after, runs):
    trigger = build(rule)
    there = [run for run in runs if run]
    if there:
        last = moment(trigger.tz, there[-1])
        beyond = last + timedelta(seconds=1)
        assert runs_after(trigger.previous_before, beyond, len(there)) == there[::-1]
        assert trigger.count_between(moment(trigger.tz, after), last) == len(there)


ELAPSED = [
    # duration, start, zone, after, the next runs
    (
        "6h",
        "2026-03-07 18:05",
        NY,
        "2026-03-07 18:05",
        ["2026-03-08 00:05-05", "2026-03-08 07:05-04", "2026-03-08 13:05-04"],
    ),
    ("90m", "2026-01-01 00:10", "UTC", "2026-01-01 10:00", ["2026-01-01 10:40+00", "2026-01-01 12:10+00"]),
    ("24h", "2026-10-31 12:00", NY, "2026-10-31 12:00", ["2026-11-01 11:00-05", "2026-11-02 11:00-05"]),
    ("30m", "2026-11-01 00:30", NY, "2026-11-01 01:00-04", ["2026-11-01 01:30-04", "2026-11-01 01:00-05"]),
    ("1h", "2026-03-08 00:15", NY, "2026-03-08 00:30", ["2026-03-08 01:15-05", "2026-03-08 03:15-04"]),
    ("12h", "2011-12-29 18:00", APIA, "2011-12-29 18:00", ["2011-12-31 06:00+14", "2011-12-31 18:00+14"]),
    ("7s", "2026-01-01", "UTC", "2025-01-01", ["2026-01-01 00:00+00", "2026-01-01 00:00:07+00"]),
    ("1d", "2026-01-01 09:00", "UTC", "2026-01-01 08:59:59", ["2026-01-01 09:00+00", "2026-01-02 09:00+00"]),
]


@pytest.mark.parametrize(("duration", "start", "zone", "after", "runs"), ELAPSED)
def test_every_counts_elapsed_time_from_its_start(duration, start, zone, after, runs):
    trigger = every(duration, start=moment(zone, start), tz=zone)
    assert runs_after(trigger.next_after, moment(zone, after), len(runs)) == runs


@pytest.mark.parametrize(("duration", "start", "zone", "after", "runs"), ELAPSED)
def test_every_walks_back_over_the_same_runs(duration, start, zone, after, runs):
    trigger = every(duration, start=moment(zone, start), tz=zone)
    beyond = trigger.next_after(moment(zone, runs[-1]))
    assert runs_after(trigger.previous_before, beyond, len(runs)) == runs[::-1]
    assert trigger.count_between(moment(zone, after), moment(zone, runs[-1])) == len(runs)


def test_every_may_end_and_includes_its_end():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    trigger = every("1h", start=start, end=start + timedelta(hours=2), tz="UTC")
    assert [shown(run) for run in trigger.next_runs(5, after=start)] == ["2026-01-01 01:00+00", "2026-01-01 02:00+00"]
    assert trigger.next_after(start + timedelta(hours=2)) is None
    earlier = every("1h", start=start, end=start + timedelta(hours=2, seconds=-1), tz="UTC")
    assert [shown(run) for run in earlier.next_runs(5, after=start)] == ["2026-01-01 01:00+00"]


def test_every_may_end_with_a_local_date():
    trigger = every("12h", start=day("2026-01-01"), end=day("2026-01-02"), tz=NY)
    assert runs_after(trigger.next_after, moment(NY, "2026-01-01 12:00"), 3) == [
        "2026-01-02 00:00-05",
        "2026-01-02 12:00-05",
        None,
    ]


def test_every_has_no_run_before_its_start():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    trigger = every("1h", start=start)
    assert trigger.previous_before(start) is None
    assert trigger.previous_before(start + timedelta(seconds=1)) == start
    assert trigger.next_after(start - timedelta(days=400)) == start


def test_every_from_a_date_starts_at_that_local_midnight():
    trigger = every("1h", start=day("2026-07-01"), tz=NY)
    assert shown(trigger.next_after(moment("UTC", "2026-01-01"))) == "2026-07-01 00:00-04"


def test_every_takes_a_timedelta():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert every(timedelta(minutes=90), start=start) == every("1h30m", start=start) == every("90m", start=start)


def test_once_runs_once():
    moment_of_it = datetime(2026, 1, 1, 9, tzinfo=UTC)
    trigger = once(moment_of_it)
    assert trigger.next_after(moment_of_it - timedelta(seconds=1)) == moment_of_it
    assert trigger.next_after(moment_of_it) is None
    assert trigger.previous_before(moment_of_it) is None
    assert trigger.previous_before(moment_of_it + timedelta(days=1)) == moment_of_it
    assert trigger.count_between(moment_of_it - timedelta(days=1), moment_of_it) == 1
    assert trigger.count_between(moment_of_it, moment_of_it + timedelta(days=1)) == 0


def test_calendar_has_no_run_before_its_anchor():
    trigger = calendar(days=1, at="09:00", start=day("2026-01-01"), tz="UTC")
    first = datetime(2026, 1, 1, 9, tzinfo=UTC)
    assert trigger.previous_before(first) is None
    assert trigger.previous_before(first + timedelta(seconds=1)) == first
    assert trigger.count_between(first - timedelta(days=9), first) == 1
    assert trigger.count_between(first, first) == 0


@pytest.mark.parametrize(
    ("rule", "years", "runs"),
    [
        ({"days": 1}, 5, 1827),
        ({"weeks": 1}, 5, 261),
        ({"months": 1}, 5, 60),
        ({"quarters": 1}, 5, 20),
        ({"years": 1}, 5, 5),
        ({"months": 1, "month_end": "skip"}, 5, 35),
        ({"months": 1, "on": "fri", "nth": "last"}, 5, 60),
        ({"months": 1, "on": "fri", "nth": 5}, 2, 9),
    ],
)
def test_missed_runs_can_be_counted(rule, years, runs):
    trigger = build({"start": day("2024-01-31"), **rule})
    last = moment("UTC", "2024-01-31 00:05")
    assert trigger.count_between(last, last.replace(year=2024 + years)) == runs


def test_at_is_midnight_by_default():
    assert shown(calendar(days=1, start=day("2026-01-01"), tz="UTC").next_after(moment("UTC", "2025-01-01"))) == (
        "2026-01-01 00:00+00"
    )


@pytest.mark.parametrize("at_what", ["09:30", "09:30:00", time(9, 30)])
def test_at_is_text_or_a_time(at_what):
    trigger = calendar(days=1, at=at_what, start=day("2026-01-01"), tz="UTC")
    assert trigger == calendar(days=1, at="09:30", start=day("2026-01-01"), tz="UTC")
    assert shown(trigger.next_after(moment("UTC", "2025-01-01"))) == "2026-01-01 09:30+00"


def test_at_may_have_seconds():
    trigger = calendar(days=1, at="09:30:15", start=day("2026-01-01"), tz="UTC")
    assert shown(trigger.next_after(moment("UTC", "2025-01-01"))) == "2026-01-01 09:30:15+00"


def test_a_datetime_as_start_gives_the_date_and_the_wall_time():
    trigger = calendar(months=1, start=moment(NY, "2026-01-31 22:30"), tz=NY)
    assert runs_after(trigger.next_after, moment(NY, "2026-01-01"), 3) == [
        "2026-01-31 22:30-05",
        "2026-02-28 22:30-05",
        "2026-03-31 22:30-04",
    ]


def test_a_datetime_as_start_is_read_in_the_zone_of_the_trigger():
    trigger = calendar(months=1, start=datetime(2026, 2, 1, 3, 30, tzinfo=UTC), tz=NY)
    assert shown(trigger.next_after(moment(NY, "2026-01-01"))) == "2026-01-31 22:30-05"


def test_calendar_without_a_zone_is_utc_until_it_is_bound():
    trigger = calendar(days=1, at="09:00", start=day("2026-01-01"))
    assert trigger.tz is None
    assert shown(trigger.next_after(moment("UTC", "2026-06-01"))) == "2026-06-01 09:00+00"
    assert trigger.bound(tz=NY) == calendar(days=1, at="09:00", start=day("2026-01-01"), tz=NY)
    assert trigger.bound(tz=NY).bound(tz=LONDON).tz == NY


def test_a_bound_start_is_the_anchor_only_where_there_is_none():
    open_anchor = calendar(weeks=2, at="09:00", tz="UTC").bound(start=moment("UTC", "2026-01-06"))
    assert runs_after(open_anchor.next_after, moment("UTC", "2026-01-07"), 2) == [
        "2026-01-20 09:00+00",
        "2026-02-03 09:00+00",
    ]
    fixed = calendar(weeks=2, at="09:00", start=day("2026-01-01"), tz="UTC")
    assert fixed.bound(start=moment("UTC", "2026-01-06")) == fixed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"months": 3}, {"quarters": 1}),
        ({"months": 12}, {"years": 1}),
        ({"quarters": 4}, {"years": 1}),
        ({"days": 7}, {"weeks": 1}),
    ],
)
def test_units_agree_with_each_other(one, other):
    after = moment("UTC", "2026-01-01")
    first, second = (build({"start": day("2026-01-31"), **rule}) for rule in (one, other))
    assert first.next_runs(30, after=after) == second.next_runs(30, after=after)


# Changes of the zone: keep the anchor and the wall time, and never run a date again that is done.


def daily(zone: str):
    return calendar(days=1, at="00:05", start=day("2026-01-01"), tz=zone)


@pytest.mark.parametrize(
    ("old", "new", "done", "after", "runs"),
    [
        ("UTC", KOLKATA, "2026-01-16", "2026-01-16 00:05+00:00", ["2026-01-17 00:05+05:30", "2026-01-18 00:05+05:30"]),
        ("UTC", KOLKATA, "2026-01-15", "2026-01-15 12:00+00:00", ["2026-01-16 00:05+05:30", "2026-01-17 00:05+05:30"]),
        (KOLKATA, "UTC", "2026-01-16", "2026-01-15 20:00+00:00", ["2026-01-17 00:05+00", "2026-01-18 00:05+00"]),
        (NY, "Asia/Tokyo", "2026-01-15", "2026-01-15 05:05+00:00", ["2026-01-16 00:05+09"]),
        ("Asia/Tokyo", NY, "2026-01-16", "2026-01-15 15:05+00:00", ["2026-01-17 00:05-05"]),
    ],
)
def test_a_new_zone_never_repeats_a_date_that_is_done(old, new, done, after, runs):
    trigger = daily(old).rezoned(new, done_date=day(done))
    assert trigger.tz == new
    assert runs_after(trigger.next_after, moment(new, after), len(runs)) == runs


@pytest.mark.parametrize(
    ("done", "after", "runs"),
    [
        (datetime(2026, 1, 16, 0, 5), "2026-01-15 20:00+00:00", ["2026-01-17 00:05+00"]),
        (day("2026-01-16"), "2026-01-15 20:00+00:00", ["2026-01-17 00:05+00"]),
        (None, "2026-01-15 20:00+00:00", ["2026-01-16 00:05+00"]),
    ],
)
def test_a_cron_in_a_new_zone_never_repeats_a_local_time_that_is_done(done, after, runs):
    trigger = cron("5 0 * * *", tz=KOLKATA).rezoned("UTC", done_date=done)
    assert runs_after(trigger.next_after, moment("UTC", after), len(runs)) == runs


def test_a_new_zone_without_a_done_date_is_recomputed_at_once():
    trigger = daily(KOLKATA).rezoned("UTC")
    assert shown(trigger.next_after(moment("UTC", "2026-01-15 20:00"))) == "2026-01-16 00:05+00"


@pytest.mark.parametrize(
    ("old", "new", "kept", "runs"),
    [
        (
            "UTC",
            KOLKATA,
            "2026-01-17 00:05+00:00",
            ["2026-01-17 05:35+05:30", "2026-01-18 00:05+05:30", "2026-01-19 00:05+05:30"],
        ),
        (
            KOLKATA,
            "UTC",
            "2026-01-16 18:35+00:00",
            ["2026-01-16 18:35+00", "2026-01-18 00:05+00", "2026-01-19 00:05+00"],
        ),
    ],
)
def test_a_new_zone_may_keep_the_next_run_and_agrees_with_the_default_from_the_second_on(old, new, kept, runs):
    after = moment(new, "2026-01-16 12:00+00:00")
    keeping = daily(old).rezoned(new, done_date=day("2026-01-16"), keep_next=moment(new, kept))
    assert runs_after(keeping.next_after, after, 3) == runs
    default = daily(old).rezoned(new, done_date=day("2026-01-16"))
    assert runs_after(default.next_after, after, 3)[1:] == runs[1:]


# What does not fit together is refused.

START = day("2026-01-01")


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"days": 1, "weeks": 1},
        {"months": 1, "years": 1},
        {"days": 1, "weeks": 1, "months": 1, "quarters": 1, "years": 1},
        {"days": 0},
        {"weeks": -1},
        {"months": 0},
        {"quarters": -3},
        {"years": 0},
        {"days": 1.5},
        {"days": "1"},
        {"days": True},
        {"days": 1, "on": "tue"},
        {"days": 1, "nth": 1},
        {"days": 1, "on": "tue", "nth": 1},
        {"weeks": 1, "nth": 1},
        {"weeks": 1, "on": "tue", "nth": 1},
        {"months": 1, "nth": 2},
        {"months": 1, "nth": "last"},
        {"quarters": 1, "nth": 2},
        {"years": 1, "nth": 2},
        {"months": 1, "on": "tue", "nth": 0},
        {"months": 1, "on": "tue", "nth": 6},
        {"months": 1, "on": "tue", "nth": -1},
        {"months": 1, "on": "tue", "nth": "first"},
        {"months": 1, "on": "tue"},
        {"weeks": 1, "on": "xyz"},
        {"weeks": 1, "on": ""},
        {"weeks": 1, "on": 2},
        {"months": 1, "month_end": "never"},
        {"days": 1, "month_end": "skip"},
        {"weeks": 1, "month_end": "last"},
        {"days": 1, "at": "25:00"},
        {"days": 1, "at": "9"},
        {"days": 1, "at": "09:60"},
        {"days": 1, "at": "09:00:60"},
        {"days": 1, "at": "09:00+02:00"},
        {"days": 1, "at": "noon"},
        {"days": 1, "at": time(9, 0, 0, 1)},
        {"days": 1, "at": time(9, tzinfo=UTC)},
        {"days": 1, "end": day("2025-12-31")},
        {"days": 1, "start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2025, 12, 31, tzinfo=UTC)},
        {"days": 1, "start": "2026-01-01"},
        {"days": 1, "end": "2026-01-01"},
    ],
)
def test_calendar_refuses_what_does_not_fit_together(rule):
    with pytest.raises(BadInterval):
        calendar(**{"start": START, "tz": "UTC", **rule})


@pytest.mark.parametrize("edge", ["start", "end"])
def test_calendar_refuses_a_naive_datetime(edge):
    with pytest.raises(NaiveDatetime):
        calendar(**{"days": 1, "tz": "UTC", "start": START, edge: datetime(2026, 1, 1)})


@pytest.mark.parametrize("edge", ["start", "end"])
def test_every_refuses_a_naive_datetime(edge):
    with pytest.raises(NaiveDatetime):
        every("1h", **{edge: datetime(2026, 1, 1)})


def test_once_refuses_a_naive_datetime():
    with pytest.raises(NaiveDatetime):
        once(datetime(2026, 1, 1))


@pytest.mark.parametrize("method", ["next_after", "previous_before"])
@pytest.mark.parametrize(
    "trigger",
    [calendar(days=1, start=START), every("1h"), once(datetime(2026, 1, 1, tzinfo=UTC))],
    ids=["calendar", "every", "once"],
)
def test_a_question_with_a_naive_datetime_is_refused(trigger, method):
    with pytest.raises(NaiveDatetime):
        getattr(trigger, method)(datetime(2026, 1, 1))


@pytest.mark.parametrize("trigger", [calendar(days=1), every("1h")], ids=["calendar", "every"])
def test_an_anchor_without_a_zone_is_refused(trigger):
    with pytest.raises(NaiveDatetime):
        trigger.bound(start=datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "build_it",
    [
        lambda zone: calendar(days=1, tz=zone),
        lambda zone: every("1h", tz=zone),
        lambda zone: once(datetime(2026, 1, 1, tzinfo=UTC), tz=zone),
        lambda zone: daily("UTC").rezoned(zone),
        lambda zone: daily("UTC").bound(tz=None).rezoned(zone),
    ],
    ids=["calendar", "every", "once", "rezoned", "bound and rezoned"],
)
def test_a_zone_that_tzdata_does_not_have_is_refused(build_it):
    with pytest.raises(UnknownZone):
        build_it("Mars/Olympus")


@pytest.mark.parametrize(
    "duration",
    ["", "0s", "0", "-1h", "1", "h", "1h-30m", "1.5h", "1x", "1h 30", "tomorrow", "٣h", "9" * 50 + "h", timedelta(0)],
)
def test_every_refuses_what_is_not_a_duration_of_whole_seconds(duration):
    with pytest.raises(BadTrigger):
        every(duration)


@pytest.mark.parametrize("duration", [timedelta(milliseconds=1500), timedelta(seconds=-5), timedelta(microseconds=1)])
def test_every_refuses_fractions_of_a_second_and_negative_time(duration):
    with pytest.raises(BadDuration):
        every(duration)


def test_every_refuses_an_end_before_its_start():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(BadInterval):
        every("1h", start=start, end=start - timedelta(seconds=1))
