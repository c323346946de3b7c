"""What becomes of a document: the pure rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import amount
from rota.documents.contract import LockedDocument, SideRecord, Terms, Update
from rota.documents.rules import (
    Ended,
    Failed,
    Remove,
    Succeeded,
    Timing,
    admit,
    begin,
    decide,
    decide_again,
)
from rota.model.jobs.retry import Backoff
from rota.model.micros import SECOND, datetime_of, micros_of

NOON = datetime(2026, 1, 7, 12, tzinfo=UTC)  # a Wednesday
HOUR = timedelta(hours=1)
TIMING = Timing(tz="UTC", reprocess_delay=0, backoff=Backoff())


def locked(sleep_until=NOON, *, nominal=None, failures=0, **fields):
    at = None if sleep_until is None else micros_of(sleep_until)
    return LockedDocument(
        id=1,
        document={},
        terms=Terms(sleep_until=at, **fields),
        side=SideRecord(nominal=micros_of(nominal or sleep_until or NOON), failures=failures),
        locked_until=micros_of(NOON + HOUR),
        token="t",  # noqa: S106 - of a lock
    )


def after(document, now, timing=TIMING, outcome=None):
    """The next time after a run that ended at that time; None if it is done."""
    decision = decide(document, outcome or Succeeded(), micros_of(now), timing)
    assert isinstance(decision, Update)
    return None if decision.sleep_until is None else datetime_of(decision.sleep_until)


def at(text):
    return datetime.fromisoformat(f"{text}+00:00")


def test_a_document_without_an_interval_is_done_after_one_run():
    assert after(locked(), NOON) is None


@pytest.mark.parametrize("interval", [None, ""])
def test_a_done_document_that_removes_itself_is_removed(interval):
    document = locked(interval=interval, auto_remove=True)
    assert decide(document, Succeeded(), micros_of(NOON), TIMING) == Remove(locked=document)


def test_a_recurring_document_is_not_removed_before_its_end():
    assert after(locked(interval="@hourly", auto_remove=True), NOON) == NOON + HOUR


def test_a_recurring_document_is_removed_at_its_end():
    document = locked(interval="@hourly", auto_remove=True, repeat_until=NOON + timedelta(minutes=59))
    assert decide(document, Succeeded(), micros_of(NOON), TIMING) == Remove(locked=document)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("30 14 * * *", "2026-01-07T14:30:00"),
        ("15 30 14 * * *", "2026-01-07T14:30:15"),  # seconds first, as mongodb-cron has them
        ("0 0 0 * * 7", "2026-01-11T00:00:00"),  # 7 is Sunday, as 0 is
        ("0 0 0 * * 0", "2026-01-11T00:00:00"),
        ("@daily", "2026-01-08T00:00:00"),
        ("@every 90m", "2026-01-07T13:30:00"),
        ("every 90m", "2026-01-07T13:30:00"),
        ("cron 0 9 * * mon-fri", "2026-01-08T09:00:00"),
        ("calendar weeks=2 on=mon at=08:00 start=2026-01-05", "2026-01-19T08:00:00"),
        ("calendar months=1 at=00:05", "2026-02-07T00:05:00"),
    ],
)
def test_every_kind_of_interval_is_understood(interval, expected):
    assert after(locked(interval=interval), NOON) == at(expected)


def test_an_interval_is_in_the_zone_of_the_queue_or_its_own():
    new_york = Timing(tz="America/New_York", reprocess_delay=0, backoff=Backoff())
    assert after(locked(interval="0 9 * * *"), NOON, new_york) == at("2026-01-07T14:00:00")
    assert after(locked(interval="cron 0 9 * * * tz=Asia/Kolkata"), NOON, new_york) == at("2026-01-08T03:30:00")
    summer = locked(datetime(2026, 7, 1, tzinfo=UTC), interval="0 9 * * *")
    assert after(summer, datetime(2026, 7, 1, tzinfo=UTC), new_york) == at("2026-07-01T13:00:00")


def test_an_overdue_document_runs_once_and_returns_to_its_rhythm():
    three_days_late = NOON + timedelta(days=3, hours=2)
    assert after(locked(interval="0 14 * * *"), three_days_late) == at("2026-01-11T14:00:00")
    assert after(locked(interval="every 7h"), three_days_late) == NOON + timedelta(hours=77)


def test_a_document_that_is_taken_up_after_a_crash_keeps_its_rhythm():
    put_off = locked(NOON + timedelta(minutes=10), nominal=NOON, interval="every 1h")
    assert after(put_off, NOON + timedelta(minutes=11)) == NOON + HOUR


def test_nothing_runs_after_its_end():
    end = NOON + timedelta(minutes=5)
    document = locked(interval="every 1m", repeat_until=end)
    assert admit(document, micros_of(end), TIMING) is None
    assert admit(document, micros_of(end) + 1, TIMING) == Ended()
    assert after(document, NOON + timedelta(minutes=4, seconds=30)) == end
    assert after(document, end) is None
    assert after(document, end + HOUR, outcome=Ended()) is None


def test_the_same_document_waits_for_the_reprocess_delay():
    timing = Timing(tz="UTC", reprocess_delay=150 * SECOND, backoff=Backoff())
    assert after(locked(interval="* * * * *"), NOON, timing) == NOON + timedelta(minutes=3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"interval": "every now and then"}, "'every now and then' cannot be understood"),
        ({"interval": "* * *"}, "expected 5 fields"),
        ({"interval": "0 0 30 2 *"}, "never fire"),
        ({"interval": 60}, "60 is not text"),
        ({"interval": ["@hourly"]}, "is not text"),
        ({"interval": "once 2026-01-01T00:00:00Z"}, "names one time"),
        ({"interval": " "}, "cannot be understood"),
        ({"repeat_until": "tomorrow"}, "repeatUntil is 'tomorrow'"),
        ({"auto_remove": "yes"}, "autoRemove is 'yes'"),
    ],
)
def test_a_document_that_cannot_be_understood_is_an_error_and_does_not_end(wrong, words):
    document = locked(**wrong)
    refusal = admit(document, micros_of(NOON), TIMING)
    assert isinstance(refusal, Failed)
    assert words in refusal.error
    decision = decide(document, refusal, micros_of(NOON), TIMING)
    assert isinstance(decision, Update)
    assert decision.sleep_until is not None
    assert decision.sleep_until > micros_of(NOON)
    assert decision.side.error == refusal.error


def test_a_monthly_rule_that_would_drift_is_refused_with_the_fix():
    refusal = admit(locked(datetime(2026, 1, 31, 9, tzinfo=UTC), interval="calendar months=1"), 0, TIMING)
    assert isinstance(refusal, Failed)
    assert "start=2026-01-31" in refusal.error
    for fine in ("calendar months=1 start=2026-01-31", "calendar months=1 month_end=last"):
        assert admit(locked(datetime(2026, 1, 31, 9, tzinfo=UTC), interval=fine), 0, TIMING) is None


def test_failures_back_off_further_and_further():
    pauses = []
    for failures in range(5):
        decision = decide(locked(failures=failures), Failed(error="Boom"), micros_of(NOON), TIMING)
        assert decision.side == SideRecord(
            nominal=micros_of(NOON), failures=failures + 1, error="Boom", failed_at=micros_of(NOON)
        )
        pauses.append((decision.sleep_until - micros_of(NOON)) // SECOND)
    assert pauses == [2, 6, 18, 54, 162]


def test_a_failed_recurring_document_does_not_miss_its_next_time():
    decision = decide(locked(failures=4, interval="* * * * *"), Failed(error="Boom"), micros_of(NOON), TIMING)
    next_minute = micros_of(NOON) + 60 * SECOND
    assert decision.sleep_until == next_minute
    assert (decision.side.nominal, decision.side.failures) == (next_minute, 5)


def test_an_owner_who_writes_another_time_is_not_overruled():
    was, fresh = locked(interval="@hourly"), locked(NOON + timedelta(days=2), interval="@hourly")
    assert decide_again(was, fresh, Succeeded(), micros_of(NOON), TIMING) == Update(locked=fresh, keeps_schedule=True)


def test_an_owner_who_writes_another_interval_is_followed():
    fresh = locked(interval="@daily")
    decision = decide_again(locked(interval="@hourly"), fresh, Succeeded(), micros_of(NOON), TIMING)
    assert datetime_of(decision.sleep_until) == at("2026-01-08T00:00:00")


def test_a_recurring_document_without_a_time_gets_its_first_one():
    decision = begin(locked(None, interval="@hourly"), micros_of(NOON), TIMING)
    assert decision.sleep_until == micros_of(NOON + HOUR)
    wrong = begin(locked(None, interval="nonsense"), micros_of(NOON), TIMING)
    assert "nonsense" in wrong.side.error


INTERVALS = [
    "* * * * *",
    "*/7 * * * * *",
    "0 9 * * 1-5",
    "@hourly",
    "every 90s",
    "every 7h",
    "calendar days=3 at=02:30",
]


@settings(max_examples=amount(150, 3000))
@given(
    st.sampled_from(INTERVALS),
    st.integers(0, 10**9),
    st.integers(0, 10**8),
    st.integers(-(10**7), 10**8),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
)
def test_the_next_time_is_later_than_now_in_rhythm_and_not_after_the_end(interval, second, late, left, tz):
    nominal = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    now, end = nominal + timedelta(seconds=late), nominal + timedelta(seconds=left)
    timing = Timing(tz=tz, reprocess_delay=0, backoff=Backoff())
    document = locked(nominal, interval=interval, repeat_until=end)
    found = after(document, now, timing)
    if found is None:
        unbounded = after(locked(nominal, interval=interval), now, timing)
        assert unbounded > end
        return
    assert now < found <= end
    step_back = after(locked(nominal, interval=interval), found - timedelta(seconds=1), timing)
    assert step_back == found  # no time of the rhythm lies in between by a second, and none was skipped onto
    if interval.startswith("every"):
        assert (found - nominal) % timedelta(seconds={"every 90s": 90, "every 7h": 25200}[interval]) == timedelta()
