"""A manual clock stands still until it is moved, and moves forward only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from rota import BadDuration, BadOption, NaiveDatetime
from rota.testing import ManualClock

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "start", ["2026-03-07T12:00:00Z", "2026-03-07T07:00:00-05:00", NOON, NOON.astimezone(timezone(timedelta(hours=9)))]
)
def test_it_shows_the_instant_that_it_was_given(start):
    assert ManualClock(start).now == NOON


def test_it_moves_by_durations_and_to_instants():
    clock = ManualClock(NOON)
    assert clock.travel("1h30m") == clock.now == NOON + timedelta(minutes=90)
    clock.travel(timedelta(microseconds=5))
    assert clock.now == NOON + timedelta(minutes=90, microseconds=5)
    assert clock.travel_to(NOON + timedelta(days=1)) == NOON + timedelta(days=1)
    assert clock.travel_to("2027-01-01T00:00:00Z") == datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("start", ["2026-03-07T12:00:00", datetime(2026, 3, 7)])
def test_a_time_without_a_zone_is_refused(start):
    with pytest.raises(NaiveDatetime):
        ManualClock(start)


def test_text_that_is_no_instant_is_refused():
    with pytest.raises(BadOption, match="is no instant; write it as"):
        ManualClock("tomorrow")


def test_a_bare_number_is_no_duration():
    with pytest.raises(BadDuration):
        ManualClock(NOON).travel(90)


@pytest.mark.parametrize(
    "move", [lambda c: c.travel(timedelta(seconds=-1)), lambda c: c.travel_to("2026-03-07T11:59Z")]
)
def test_it_never_moves_back(move):
    clock = ManualClock(NOON)
    with pytest.raises(BadOption, match="moves forward only"):
        move(clock)
    assert clock.now == NOON
