"""Counts for each minute how many jobs ended and how, how long runs waited, and how long they ran.

A store adds the numbers of each batch of settled runs to the bucket of the minute in which it settles them, in the same
write. It keeps 24 hours of minutes. Spans are also counted by length, in a few fixed classes, so that "95 % began
within 2 s" can be said of any number of minutes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.model.jobs.job import State
from rota.model.micros import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.settle import Change

MINUTE = 60 * SECOND
KEPT_MINUTES = 1_440
SPANS = (  # a span is in the first class whose length it does not exceed; longer ones are in a class of their own
    *(5 * MILLISECOND, 10 * MILLISECOND, 20 * MILLISECOND, 50 * MILLISECOND),
    *(100 * MILLISECOND, 200 * MILLISECOND, 500 * MILLISECOND),
    *(SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND),
    *(MINUTE, 5 * MINUTE, 15 * MINUTE, 60 * MINUTE),
)
_CLASSES = len(SPANS) + 1
# What is stored, in this order. Later versions add names at the end; a number that is missing is 0.
SUMS = ("succeeded", "failed", "cancelled", "failed_attempts", "ran", "waited")
NAMES = (*SUMS, *(f"ran_{number}" for number in range(_CLASSES)), *(f"waited_{number}" for number in range(_CLASSES)))
_FIRST_RAN, _FIRST_WAITED = len(SUMS), len(SUMS) + _CLASSES
_FAILED_ATTEMPTS, _RAN, _WAITED = 3, 4, 5


class Spans(Struct, frozen=True):
    """How long something took: the sum in microseconds, and how many spans each class of SPANS has."""

    total: int
    by_length: tuple[int, ...]

    @property
    def count(self) -> int:
        return sum(self.by_length)

    @property
    def mean(self) -> int | None:
        return self.total // self.count if self.count else None

    def within(self, percent: int) -> int | None:
        """A length that so many percent of the spans do not exceed: the end of a class. None if there are no spans, or
        if they exceed every class."""
        left = -(-self.count * percent // 100)
        for length, number in zip(SPANS, self.by_length, strict=False):
            left -= number
            if left <= 0:
                return length if self.count else None
        return None


class Bucket(Struct, frozen=True, kw_only=True):
    """The counts from an instant on: of one minute, or of several."""

    at: int  # the start, a whole minute
    succeeded: int = 0  # jobs that ended so
    failed: int = 0
    cancelled: int = 0  # while they ran
    failed_attempts: int = 0  # the last attempts of failed jobs included
    ran: Spans = Spans(0, (0,) * _CLASSES)  # of each attempt that ended
    waited: Spans = Spans(0, (0,) * _CLASSES)  # from ready to begun


def minute_of(now: int) -> int:
    """The number of the minute that an instant is in."""
    return now // MINUTE


def first_kept(now: int) -> int:
    """The first minute that is kept; upkeep removes those before it."""
    return minute_of(now) - KEPT_MINUTES + 1


def last_kept(now: int) -> int:
    """The last minute that is kept. A later one is of a clock that was ahead: upkeep removes it."""
    return minute_of(now) + 1


def count_runs(changes: Iterable[Change]) -> list[int]:
    """The numbers that settled runs add to their minute, in the order of NAMES; empty if there are none.

    A job that is returned, put back because its task is unknown, or lost with its worker adds nothing until it ends.
    """
    succeeded = failed = cancelled = failed_attempts = ran_sum = waited_sum = 0
    spans = [0] * (2 * _CLASSES)
    for change in changes:  # every run passes here, so the most common end is checked first
        job, state = change.job, change.state
        if job.state is not State.RUNNING:
            continue
        if state is State.SUCCEEDED:
            succeeded += 1
        elif state is State.FAILED:
            failed += 1
        elif state is State.CANCELLED:
            cancelled += 1
        if change.attempts == job.attempts:
            continue
        if state is State.FAILED or change.failures > job.failures:
            failed_attempts += 1
        began = job.started_at or 0
        ran = (change.finished_at or change.ended_at or began) - began
        waited = max(0, began - (job.queued_at or job.run_at))  # the clock may have been set back
        ran_sum += ran
        waited_sum += waited
        spans[bisect_left(SPANS, ran)] += 1
        spans[_CLASSES + bisect_left(SPANS, waited)] += 1
    numbers = [succeeded, failed, cancelled, failed_attempts, ran_sum, waited_sum, *spans]
    return numbers if any(numbers) else []


def added(numbers: Sequence[int], others: Sequence[int]) -> list[int]:
    """Two lists of numbers together; a number that one of them lacks is 0."""
    longer, shorter = (numbers, others) if len(numbers) >= len(others) else (others, numbers)
    return [*map(sum, zip(longer, shorter, strict=False)), *longer[len(shorter) :]]


def minutes_within(start: int, end: int) -> range:
    """The minutes that begin from one instant on and before another."""
    return range(-(-start // MINUTE), -(-end // MINUTE))


def summed(rows: Iterable[tuple[int, Sequence[int]]]) -> dict[int, list[int]]:
    """The numbers of each minute; a store may keep several rows of one minute."""
    minutes: dict[int, list[int]] = {}
    for minute, numbers in rows:
        minutes[minute] = added(minutes.get(minute, ()), numbers)
    return minutes


def buckets_of(rows: Iterable[tuple[int, Sequence[int]]]) -> list[Bucket]:
    """Stored minutes in their order."""
    return [bucket_of(minute, numbers) for minute, numbers in sorted(summed(rows).items())]


def bucket_of(minute: int, numbers: Sequence[int]) -> Bucket:
    """A stored minute, from its numbers in the order of NAMES."""
    whole = [*numbers, *(0,) * (len(NAMES) - len(numbers))]
    return Bucket(
        at=minute * MINUTE,
        succeeded=whole[0],
        failed=whole[1],
        cancelled=whole[2],
        failed_attempts=whole[_FAILED_ATTEMPTS],
        ran=Spans(whole[_RAN], tuple(whole[_FIRST_RAN:_FIRST_WAITED])),
        waited=Spans(whole[_WAITED], tuple(whole[_FIRST_WAITED : len(NAMES)])),
    )


def merged(buckets: Iterable[Bucket], start: int, end: int, step: int) -> list[Bucket]:
    """One bucket for each step of time from `start` to before `end`, also where nothing happened."""
    sums = {at: Bucket(at=at) for at in range(start, end, step)}
    for bucket in buckets:
        if start <= bucket.at < end:
            at = start + (bucket.at - start) // step * step
            sums[at] = _sum(sums[at], bucket)
    return list(sums.values())


def _sum(one: Bucket, other: Bucket) -> Bucket:
    return Bucket(
        at=one.at,
        succeeded=one.succeeded + other.succeeded,
        failed=one.failed + other.failed,
        cancelled=one.cancelled + other.cancelled,
        failed_attempts=one.failed_attempts + other.failed_attempts,
        ran=_joined(one.ran, other.ran),
        waited=_joined(one.waited, other.waited),
    )


def _joined(one: Spans, other: Spans) -> Spans:
    return Spans(one.total + other.total, tuple(map(sum, zip(one.by_length, other.by_length, strict=True))))
