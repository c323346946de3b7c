"""Defines points for charts of throughput and latency, as JSON shows them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.errors import BadOption
from rota.model.jobs.series import KEPT_MINUTES, MINUTE, merged
from rota.model.micros import SECOND, datetime_of, span_of

if TYPE_CHECKING:
    from rota.model.jobs.series import Bucket, Spans
    from rota.store.contract import Store

MOST_POINTS = 120
LAST = "1h"


class SpanFacts(Struct, kw_only=True):
    """How long attempts took, or waited. A length that some do not exceed is the end of a class: 1 s, 2 s, 5 s, …"""

    count: int
    mean_seconds: float | None  # None if there were none
    half_within_seconds: float | None  # half of them do not exceed it; None if they exceed an hour
    most_within_seconds: float | None  # 95 % of them do not


class PointFacts(Struct, kw_only=True):
    """The counts from an instant on."""

    at: datetime
    succeeded: int  # jobs with this outcome
    failed: int
    cancelled: int  # while they ran
    failed_attempts: int  # including the last attempts of failed jobs
    ran: SpanFacts  # of each attempt that ended
    waited: SpanFacts  # from ready to begun


class SeriesFacts(Struct, kw_only=True):
    """The counts of the last hour, or of any time up to a day."""

    start: datetime
    end: datetime  # the end of this minute
    step_seconds: int  # from point to point
    whole: PointFacts  # all of it together
    points: list[PointFacts]  # oldest first, also where nothing happened


def read_series(store: Store, last: str | timedelta = LAST) -> SeriesFacts:
    """The points of the last so many minutes; at most 120, each of one or more whole minutes."""
    minutes = _minutes(last)
    step = -(-minutes // MOST_POINTS) * MINUTE
    end = store.now() // MINUTE * MINUTE + MINUTE
    start = end - -(-minutes * MINUTE // step) * step
    buckets = store.read_series(start, end)
    (whole,) = merged(buckets, start, end, end - start)
    return SeriesFacts(
        start=datetime_of(start),
        end=datetime_of(end),
        step_seconds=step // SECOND,
        whole=_point(whole),
        points=[_point(bucket) for bucket in merged(buckets, start, end, step)],
    )


def _minutes(last: str | timedelta) -> int:
    minutes = -(-span_of(last) // MINUTE)
    if minutes > KEPT_MINUTES:
        raise BadOption(f"last={last!r} is longer than the 24h of minutes that are kept; ask for 24h at most")
    return minutes


def _point(bucket: Bucket) -> PointFacts:
    return PointFacts(
        at=datetime_of(bucket.at),
        succeeded=bucket.succeeded,
        failed=bucket.failed,
        cancelled=bucket.cancelled,
        failed_attempts=bucket.failed_attempts,
        ran=_spans(bucket.ran),
        waited=_spans(bucket.waited),
    )


def _spans(spans: Spans) -> SpanFacts:
    return SpanFacts(
        count=spans.count,
        mean_seconds=_seconds(spans.mean),
        half_within_seconds=_seconds(spans.within(50)),
        most_within_seconds=_seconds(spans.within(95)),
    )


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND
