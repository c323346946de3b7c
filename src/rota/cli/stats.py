"""Runs `stats`: shows the numbers of a store on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.operate import number_of
from rota.cli.options import check_duration, on_a_store, output_option
from rota.cli.output import Output, aligned, coloured, heading
from rota.cli.words import count, instant, listed, span
from rota.inspector.facts.series import read_series
from rota.inspector.facts.stats import read_stats
from rota.model.jobs.job import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.inspector.facts.series import PointFacts, SeriesFacts, SpanFacts
    from rota.inspector.facts.stats import StatsFacts

STATES = (
    State.QUEUED,
    State.RUNNING,
    State.SCHEDULED,
    State.HELD,
    State.SUCCEEDED,
    State.FAILED,
    State.CANCELLED,
)


@click.command()
@click.option(
    "--last",
    metavar="DURATION",
    callback=check_duration,
    help="Show throughput and latency over this time instead, such as 1h or 24h.",
)
@on_a_store
@output_option
def stats(app: App, last: str | None, out: Output) -> None:
    """Show the store in numbers: jobs, nodes, schedules."""
    if last is not None:
        series = read_series(app.open(), last)
        out.page(series, lambda: _series_page(series))
        return
    facts = read_stats(app.open())
    out.page(facts, lambda: _page(facts))


def _series_page(series: SeriesFacts) -> Iterator[str]:
    """One line for each step in which something happened, then all together."""
    rows = [["from", "succeeded", "failed", "attempts failed", "95 % waited", "95 % ran"]]
    rows += [[instant(point.at), *_numbers_of(point)] for point in series.points if _has_runs(point)]
    if len(rows) == 1:
        yield "nothing ran in this time"
        return
    lines = aligned([*rows, ["all", *_numbers_of(series.whole)]])
    yield heading(lines[0])
    yield from lines[1:]


def _has_runs(point: PointFacts) -> bool:
    return bool(point.ran.count or point.succeeded or point.failed or point.cancelled)


def _numbers_of(point: PointFacts) -> list[str]:
    numbers = [f"{number:,}" for number in (point.succeeded, point.failed, point.failed_attempts)]
    return [*numbers, _within(point.waited), _within(point.ran)]


def _within(spans: SpanFacts) -> str:
    if not spans.count:
        return "-"
    return "over 1h" if spans.most_within_seconds is None else f"within {span(spans.most_within_seconds)}"


def _page(facts: StatsFacts) -> Iterator[str]:
    yield heading(facts.store)
    yield ""
    yield from _jobs_table(facts)
    yield ""
    rows = [
        ["oldest wait", _oldest(facts)],
        ["nodes", _nodes(facts)],
        ["schedules", _schedules(facts)],
    ]
    yield from aligned(rows)


def _jobs_table(facts: StatsFacts) -> list[str]:
    """Queues by states; the last line is their sum."""
    shown = [state for state in STATES if state is not State.HELD or facts.jobs["held"]]  # few apps ever hold a job
    rows = [["queue", *(state.value for state in shown)]]
    for queue in facts.queues:
        name = f"{queue.name} ({queue.state})" if queue.state == "paused" else queue.name
        rows.append([name, *(f"{number_of(queue, state):,}" for state in shown)])
    if len(facts.queues) != 1:
        rows.append(["all", *(f"{_sum(facts, state):,}" for state in shown)])
    widths = [max(len(row[column]) for row in rows) for column in range(1, len(rows[0]))]
    lines = aligned(
        [[row[0], *(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))] for row in rows]
    )
    return [heading(lines[0]), *lines[1:]]


def _sum(facts: StatsFacts, state: State) -> int:
    return (facts.totals if state.is_final else facts.jobs)[state.value]


def _oldest(facts: StatsFacts) -> str:
    if facts.oldest_at is None:
        return "nothing waits"
    return f"{span((facts.at - facts.oldest_at).total_seconds())}, in queue {facts.oldest_queue}"


def _nodes(facts: StatsFacts) -> str:
    if not any(facts.nodes.values()):
        return "none; `rota run TARGET` starts one"
    busy = f"; running {facts.running} of at most {count(facts.concurrency, 'job')}" if facts.concurrency else ""
    return f"{_numbers(facts.nodes)}{busy}"


def _schedules(facts: StatsFacts) -> str:
    numbers = _numbers(facts.schedules)
    return f"{numbers} of the first {sum(facts.schedules.values()):,}" if facts.schedules_truncated else numbers


def _numbers(numbers: dict[str, int]) -> str:
    """2 on, 1 paused: what there is any of."""
    return listed([f"{number:,} {coloured(word)}" for word, number in numbers.items() if number]) or "none"
