"""Builds charts as values: paths for an SVG that stretches, the labels beside it, and the table behind it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.inspector.facts.series import PointFacts, SeriesFacts

HEIGHT = 100.0
TICKS = 4
ROWS = 6  # of the table
LEAST_BAR = 6.0  # one failure among thousands is seen


def throughput(series: SeriesFacts) -> dict[str, Any]:
    """Jobs that ended: bars of those that succeeded, and above them, broken off, those that failed."""
    points = series.points
    top = _round_up(max((point.succeeded + point.failed for point in points), default=0), least=4)
    good, bad = [], []
    for number, point in enumerate(points):
        high = point.succeeded / top * HEIGHT
        if point.succeeded:
            good.append(f"M{number + 0.14:.2f} 100v-{high:.1f}h.72v{high:.1f}z")
        if point.failed:
            length = min(max(point.failed / top * HEIGHT, LEAST_BAR), HEIGHT)
            base = min(high + 3, HEIGHT - length)
            bad.append(f"M{number + 0.14:.2f} {HEIGHT - base:.1f}v-{length:.1f}h.72v{length:.1f}z")
    return {
        **_scale(series, top),
        "good": "".join(good),
        "bad": "".join(bad),
        "succeeded": series.whole.succeeded,
        "failed": series.whole.failed,
        "most": max((point.succeeded + point.failed for point in points), default=0),
        "rows": [
            {
                "at": group[0].at,
                "succeeded": sum(point.succeeded for point in group),
                "failed": sum(point.failed for point in group),
            }
            for group in _groups(points)
        ],
    }


def latency(series: SeriesFacts) -> dict[str, Any]:
    """How long jobs waited from ready to begun: the line that 95 % and the line that half of them do not exceed."""
    most = [point.waited.most_within_seconds for point in series.points]
    half = [point.waited.half_within_seconds for point in series.points]
    top = _round_span(max((value for value in most if value is not None), default=0.0))
    return {
        **_scale(series, top),
        "most_line": _line(most, top),
        "half_line": _line(half, top),
        "area": _area(most, top),
        "most": series.whole.waited.most_within_seconds,
        "half": series.whole.waited.half_within_seconds,
        "count": series.whole.waited.count,
        "rows": [
            {
                "at": group[0].at,
                "most": _worst([point.waited.most_within_seconds for point in group]),
                "half": _worst([point.waited.half_within_seconds for point in group]),
            }
            for group in _groups(series.points)
        ],
    }


def ribbon(minutes: Sequence[int]) -> dict[str, Any]:
    """A bar for each minute of the next hour that has runs, on 600 by 26 units."""
    top = max(minutes)
    bars = [(10 * place + 3, round(4 + 20 * number / top, 1)) for place, number in enumerate(minutes) if number]
    return {
        "bars": "".join(f"M{x} {25 - height:.1f}h4v{height}h-4z" for x, height in bars),
        "total": sum(minutes),
        "most_in": minutes.index(top),
    }


def _scale(series: SeriesFacts, top: float) -> dict[str, Any]:
    step = (series.end - series.start) / TICKS
    return {
        "width": len(series.points),
        "top": top,
        "ticks": [series.start + step * number for number in range(TICKS + 1)],
        "step": timedelta(seconds=series.step_seconds).total_seconds(),
        "start": series.start,
    }


def _line(values: Sequence[float | None], top: float) -> str:
    """One path per stretch of points; where nothing ran, there is no line. A lone point is a dash."""
    shown = []
    for stretch in _stretches(values):
        if len(stretch) == 1:
            shown.append(f"M{stretch[0][0] + 0.1:.1f} {_y(stretch[0][1], top):.1f}h.8")
        else:
            shown.append("M" + "L".join(f"{at + 0.5:.1f} {_y(high, top):.1f}" for at, high in stretch))
    return "".join(shown)


def _area(values: Sequence[float | None], top: float) -> str:
    shown = []
    for stretch in _stretches(values):
        line = "L".join(f"{at + 0.5:.1f} {_y(high, top):.1f}" for at, high in stretch)
        shown.append(f"M{stretch[0][0] + 0.5:.1f} 100L{line}L{stretch[-1][0] + 0.5:.1f} 100z")
    return "".join(shown)


def _stretches(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Points that follow each other, with their positions."""
    found: list[list[tuple[int, float]]] = []
    for number, value in enumerate(values):
        if value is None:
            continue
        if found and found[-1][-1][0] == number - 1:
            found[-1].append((number, value))
        else:
            found.append([(number, value)])
    return found


def _y(value: float, top: float) -> float:
    return HEIGHT - min(value / top, 1.0) * HEIGHT


def _groups(points: Sequence[PointFacts]) -> list[Sequence[PointFacts]]:
    size = max(1, math.ceil(len(points) / ROWS))
    return [points[start : start + size] for start in range(0, len(points), size)]


def _worst(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _round_up(value: int, least: int) -> int:
    """A number that an axis can end with: 4, 10, 20, 50, 100, …"""
    size = int(10 ** (len(str(max(value, 1))) - 1))
    steps = (least, *(factor * size for factor in (1, 2, 4, 5, 8, 10)))
    return next(step for step in sorted(set(steps)) if step >= value and step >= least)


def _round_span(seconds: float) -> float:
    """Seconds that an axis can end with."""
    steps = (0.02, 0.1, 0.2, 0.4, 1, 2, 4, 10, 20, 60, 120, 240, 600, 1_200, 3_600)
    return next((step for step in steps if step >= seconds), 3_600)
