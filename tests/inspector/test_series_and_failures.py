"""What happened over time, and failures by their cause, as a caller reads them."""

from __future__ import annotations

import pytest

from rota.errors import BadOption
from rota.inspector.facts.failure import MOST_READ, failed_jobs, read_failures
from rota.inspector.facts.series import MOST_POINTS, read_series
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.micros import SECOND, datetime_of, micros_of
from rota.store.memory import MemoryStore
from rota.testing.store_suite.builders import DAY, MINUTE, T0
from rota.testing.store_suite.steps import running_job, settle_job

NOON = T0 + DAY // 2


class StoreAtNoon(MemoryStore):
    """A memory store whose clock stands still."""

    def now(self) -> int:
        return NOON + 20 * SECOND


@pytest.fixture
def store():
    store = StoreAtNoon()
    store.open()
    return store


def run(store, outcome, *, at, ran=SECOND, task="mail.send"):
    job = running_job(store, now=at - ran, task=task)
    settle_job(store, job, outcome, now=at)
    return job.id


def test_an_hour_has_a_point_for_every_minute(store):
    run(store, Succeeded(), at=NOON - 59 * MINUTE)
    run(store, Failed("boom", may_retry=False), at=NOON + SECOND)
    run(store, Succeeded(), at=NOON - 60 * MINUTE)  # before the hour
    series = read_series(store)
    assert (len(series.points), series.step_seconds) == (60, 60)
    assert (micros_of(series.start), micros_of(series.end)) == (NOON - 59 * MINUTE, NOON + MINUTE)
    assert (series.points[0].succeeded, series.points[-1].failed) == (1, 1)
    assert (series.whole.succeeded, series.whole.failed, series.whole.ran.count) == (1, 1, 2)


@pytest.mark.parametrize(
    ("last", "points", "step"), [("1s", 1, 60), ("2h", 120, 60), ("24h", 120, 720), ("3h1m", 91, 120)]
)
def test_any_time_has_at_most_120_points(store, last, points, step):
    run(store, Succeeded(), at=NOON)
    series = read_series(store, last)
    assert (len(series.points), series.step_seconds) == (points, step)
    assert len(series.points) <= MOST_POINTS
    assert sum(point.succeeded for point in series.points) == 1


def test_more_than_a_day_is_refused(store):
    with pytest.raises(BadOption, match="24h"):
        read_series(store, "25h")


def test_95_percent_within_a_length_is_said(store):
    for _ in range(19):
        run(store, Succeeded(), at=NOON, ran=SECOND)
    run(store, Succeeded(), at=NOON, ran=9 * SECOND)
    ran = read_series(store).whole.ran
    assert (ran.count, ran.mean_seconds) == (20, 1.4)
    assert (ran.half_within_seconds, ran.most_within_seconds) == (1.0, 1.0)
    run(store, Succeeded(), at=NOON, ran=9 * SECOND)
    assert read_series(store).whole.ran.most_within_seconds == 10.0


def test_a_time_without_runs_has_no_lengths(store):
    whole = read_series(store).whole
    assert (whole.ran.count, whole.ran.mean_seconds, whole.ran.most_within_seconds) == (0, None, None)


def test_failures_are_grouped_by_cause(store):
    first = run(store, Failed("ValueError: no order 17", may_retry=False), at=NOON - 3 * MINUTE)
    run(store, Failed("KeyError: 'ann'", may_retry=False), at=NOON - 2 * MINUTE, task="pay")
    last = run(store, Failed("ValueError: no order 4", may_retry=False), at=NOON - MINUTE, task="ship")
    run(store, Failed("ValueError: no order 5", may_retry=False), at=NOON - 2 * DAY)
    found = read_failures(store)
    assert (found.count, found.truncated) == (3, False)
    assert [(group.title, group.count) for group in found.items] == [
        ("ValueError: no order N", 2),
        ("KeyError: '…'", 1),
    ]
    group = found.items[0]
    assert (group.tasks, group.job_id) == (["ship", "mail.send"], last)
    assert (group.first_at, group.last_at) == (datetime_of(NOON - 3 * MINUTE), datetime_of(NOON - MINUTE))
    assert failed_jobs(store, group.id, until=NOON) == [last, first]
    assert failed_jobs(store, group.id, until=NOON - 2 * MINUTE) == [first]


def test_only_the_newest_thousand_are_grouped_and_that_is_said(store):
    for _ in range(MOST_READ + 1):
        run(store, Failed("boom", may_retry=False), at=NOON)
    found = read_failures(store)
    assert (found.count, found.truncated, found.items[0].count) == (MOST_READ, True, MOST_READ)
