"""Durations: whole seconds for rules, milliseconds for what may be short, and back to text."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota import every
from rota.errors import BadDuration
from rota.triggers.duration import fine_text_of, milliseconds_of


@pytest.mark.parametrize(
    ("duration", "milliseconds"),
    [
        ("0s", 0),
        ("0ms", 0),
        ("250ms", 250),
        ("0.5s", 500),
        ("1.5h", 5_400_000),
        ("1s500ms", 1_500),
        ("1h30m", 5_400_000),
        (" 2D ", 172_800_000),
        (timedelta(milliseconds=1_500), 1_500),
        (timedelta(0), 0),
    ],
)
def test_a_duration_may_be_as_short_as_a_millisecond_or_nothing(duration, milliseconds):
    assert milliseconds_of(duration) == milliseconds
    assert milliseconds_of(fine_text_of(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    "duration",
    [
        "",
        "5",
        ".5s",
        "1.s",
        "1e3s",
        "ms",
        "1ms1s",
        "1s1s",
        "0.0001s",
        "٣s",
        "9" * 11 + "s",
        "101w1000000d",
        5,
        0.5,
        None,
    ],
)
def test_what_is_no_duration_is_refused(duration):
    with pytest.raises(BadDuration):
        milliseconds_of(duration)


@pytest.mark.parametrize("duration", [timedelta(microseconds=1), timedelta(milliseconds=-1), "0s", "99ms"])
def test_a_duration_has_whole_milliseconds_and_no_fewer_than_asked_for(duration):
    with pytest.raises(BadDuration):
        milliseconds_of(duration, least=100)


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0s"), (1, "1ms"), (1_500, "1s500ms"), (5_400_000, "1h30m"), (60_001, "1m1ms")]
)
def test_text_has_the_largest_units_first(milliseconds, text):
    assert fine_text_of(milliseconds) == text


@pytest.mark.parametrize("duration", ["0.5s", "1.5h", "250ms", timedelta(milliseconds=500)])
def test_a_rule_says_that_it_needs_whole_seconds(duration):
    with pytest.raises(BadDuration, match=r"must be whole seconds.*the least is '1s'"):
        every(duration)
