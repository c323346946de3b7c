"""What would surprise a trigger's author is told beforehand, with its dates."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from rota import calendar, cron, every, once

START = datetime(2026, 1, 1, tzinfo=UTC)
NEW_YORK = "America/New_York"


def kinds(trigger) -> list[str]:
    return [caveat.kind for caveat in trigger.warnings(after=START)]


def messages(trigger) -> str:
    return "\n".join(caveat.message for caveat in trigger.warnings(after=START))


def test_a_time_inside_a_gap_is_told_with_its_date():
    (caveat,) = cron("30 2 * * *", tz=NEW_YORK).warnings(after=START)
    assert caveat.kind == "gap"
    assert caveat.message == (
        "2026-03-08 02:30 does not exist in America/New_York (clocks jump from 02:00 to 03:00): "
        "one run at 03:00 instead"
    )
    assert caveat.at is not None
    assert caveat.at.isoformat() == "2026-03-08T03:00:00-04:00"


def test_a_time_inside_a_fold_is_told_with_its_date():
    (caveat,) = cron("30 1 * * *", tz=NEW_YORK).warnings(after=START)
    assert caveat.kind == "repeat"
    assert "2026-11-01 01:30 happens twice" in caveat.message
    assert caveat.message.endswith("runs once, on the first pass")


def test_a_cadence_says_that_it_goes_on_through_both_passes():
    assert "runs on both passes" in messages(cron("*/15 * * * *", tz=NEW_YORK))
    assert "no run, because the next one follows within the hour" in messages(cron("*/15 * * * *", tz=NEW_YORK))


def test_a_missing_date_is_told():
    caveats = cron("0 12 * * *", tz="Pacific/Apia").warnings("60d", after=datetime(2011, 12, 1, tzinfo=UTC))
    assert ["the whole date is missing" in caveat.message for caveat in caveats] == [True]


def test_a_time_that_clock_changes_never_touch_has_no_warning():
    assert kinds(cron("0 9 * * *", tz=NEW_YORK)) == []
    assert kinds(cron("30 2 * * *")) == []
    assert kinds(every("1h")) == kinds(once(START)) == []


def test_the_horizon_bounds_what_is_looked_at():
    assert cron("30 2 * * *", tz=NEW_YORK).warnings("30d", after=START) == []
    two_years = cron("30 2 * * *", tz=NEW_YORK).warnings("104w", after=START)
    assert [caveat.at.year for caveat in two_years if caveat.at] == [2026, 2027]


def test_both_day_fields_are_told_as_or_and_as_and():
    assert kinds(cron("0 0 13 * FRI")) == ["day-or"]
    assert kinds(cron("0 0 */2 * MON")) == ["day-and"]
    assert kinds(cron("0 0 13 * *")) == kinds(cron("0 0 * * FRI")) == []


def test_a_star_later_in_a_list_of_days_is_told_as_or():
    assert kinds(cron("0 0 2,*/25,*/12 * TUE")) == ["day-or"]
    assert kinds(cron("0 0 */12,2 * TUE")) == ["day-and"]


@pytest.mark.parametrize(
    ("expression", "only"),
    [
        ("0 */24 * * *", "hour field '*/24': the step leaves one value only, hour 0"),
        ("*/60 * * * *", "minute field '*/60': the step leaves one value only, minute 0"),
        ("30/40 * * * *", "minute field '30/40': the step leaves one value only, minute 30"),
        ("0 0 1 */12 *", "month field '*/12': the step leaves one value only, month 1"),
        ("0 0 * * */7", "day-of-week field '*/7': the step leaves one value only, SUN"),
        ("0 0 */31 * *", "day-of-month field '*/31': the step leaves one value only, day-of-month 1"),
        ("0 0 0 1 1 ? */230", "year field '*/230': the step leaves one value only, year 1970"),
    ],
)
def test_a_step_that_leaves_one_value_is_told(expression: str, only: str):
    (caveat,) = cron(expression).warnings(after=START)
    assert caveat.kind == "step"
    assert caveat.message == f"{only}; it never counts on across the end of the field"


@pytest.mark.parametrize("expression", ["*/30 * * * *", "0 */12 * * *", "0 0 1-31/2 * *", "59 23 31 12 *"])
def test_a_step_that_leaves_several_values_is_not_told(expression: str):
    assert "step" not in kinds(cron(expression))


@pytest.mark.parametrize(
    ("expression", "runs", "one"),
    [
        ("0/1 * 0 ? * * *", "every second of the times that it names, 3,600 times", "0 0 0 ? * * *"),
        ("* 30 9 * * *", "every second of the times that it names, 60 times", "0 30 9 * * *"),
        ("* * 0,12 * * *", "every second of the times that it names, 7,200 times", "0 0 0,12 * * *"),
        ("* 9 * * mon", "every minute of the times that it names, 60 times", "0 9 * * MON"),
    ],
)
def test_every_second_of_a_named_hour_is_told(expression: str, runs: str, one: str):
    (caveat,) = cron(expression).warnings(after=START)
    assert caveat.kind == "every"
    assert caveat.message == f"it runs {runs} on each such day; for one run, write '{one}'"
    assert cron(one)


@pytest.mark.parametrize("expression", ["* * * * *", "* * * * * *", "* 9-17 * * *", "*/5 9 * * *", "*/10 0 9 * * *"])
def test_a_cadence_that_is_meant_is_not_told(expression: str):
    assert kinds(cron(expression)) == []


def test_days_that_months_lack_are_told():
    assert messages(cron("0 0 31 4,5 *")) == "April never has day 31: no run on it there"
    assert "leap years" in messages(cron("0 0 29 2 *"))
    assert kinds(cron("0 0 1-31 * *")) == []


def test_a_fifth_weekday_is_told_as_rare():
    assert kinds(cron("0 0 * * FRI#5")) == ["rare-date"]
    assert kinds(cron("0 0 * * FRI#4")) == []
    assert kinds(calendar(months=1, on="fri", nth=5)) == ["rare-date"]


def test_month_ends_of_calendar_triggers_are_told():
    clamped = calendar(months=1, start=date(2026, 1, 31))
    assert messages(clamped) == "in months without day 31 it runs on their last day"
    assert "skipped" in messages(calendar(months=1, start=date(2026, 1, 31), month_end="skip"))
    assert kinds(calendar(months=1, start=date(2026, 1, 28))) == []


def test_calendar_triggers_tell_gaps_and_folds():
    assert kinds(calendar(days=1, at="02:30", tz=NEW_YORK)) == ["gap"]
    assert kinds(calendar(days=1, at="01:30", tz=NEW_YORK)) == ["repeat"]
    assert kinds(calendar(days=1, at="00:05", tz="Africa/Cairo")) == ["gap"]
