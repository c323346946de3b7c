"""stats: a store in numbers, on one screen."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.cli.operate import QueueFacts, queue_facts
from rota.cli.options import on_a_store, output_option
from rota.cli.output import Output, aligned, coloured, heading
from rota.cli.schedule_page import read_schedules
from rota.cli.words import count, listed, span
from rota.model.micros import datetime_of
from rota.model.state import State
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.store.contract import Store

STATES = (
    State.QUEUED,
    State.RUNNING,
    State.SCHEDULED,
    State.HELD,
    State.SUCCEEDED,
    State.FAILED,
    State.CANCELLED,
)


class StatsFacts(Struct, kw_only=True):
    """A store in numbers; of states that end a job, all that ever ended so."""

    store: str
    at: datetime
    jobs: dict[str, int]  # over all queues, by state
    queues: list[QueueFacts]
    nodes: dict[str, int]  # alive, silent
    running: int  # jobs that live nodes say they run
    concurrency: int  # … of so many at once
    schedules: dict[str, int]  # on, paused, disabled, finished, broken
    oldest_at: datetime | None  # since when the first in line has been waiting
    oldest_queue: str | None


@click.command()
@on_a_store
@output_option
def stats(app: App, out: Output) -> None:
    """The store in numbers: jobs, nodes, schedules."""
    facts = _read(app.open())
    out.page(facts, lambda: _page(facts))


def _read(store: Store) -> StatsFacts:
    now = store.now()
    queues = [queue_facts(queue) for queue in store.list_queues()]
    nodes = store.list_nodes()
    alive = [node for node in nodes if is_alive(node, now)]
    schedules = Counter(shown.state for shown in read_schedules(store))
    oldest = min((queue for queue in queues if queue.oldest_at), key=_waiting_since, default=None)
    return StatsFacts(
        store=store.describe(),
        at=datetime_of(now),
        jobs={state.value: sum(getattr(queue, state.value) for queue in queues) for state in STATES},
        queues=queues,
        nodes={"alive": len(alive), "silent": len(nodes) - len(alive)},
        running=sum(node.running for node in alive),
        concurrency=sum(node.concurrency for node in alive),
        schedules={state: schedules[state] for state in ("on", "paused", "disabled", "finished", "broken")},
        oldest_at=oldest.oldest_at if oldest else None,
        oldest_queue=oldest.name if oldest else None,
    )


def _waiting_since(queue: QueueFacts) -> datetime:
    assert queue.oldest_at is not None  # noqa: S101 - those without were left out
    return queue.oldest_at


def _page(facts: StatsFacts) -> Iterator[str]:
    yield heading(facts.store)
    yield ""
    yield from _jobs_table(facts)
    yield ""
    rows = [
        ["oldest wait", _oldest(facts)],
        ["nodes", _nodes(facts)],
        ["schedules", _numbers(facts.schedules)],
    ]
    yield from aligned(rows)


def _jobs_table(facts: StatsFacts) -> list[str]:
    """Queues by states; the last line is their sum."""
    shown = [state for state in STATES if state is not State.HELD or facts.jobs["held"]]  # few apps ever hold a job
    rows = [["queue", *(state.value for state in shown)]]
    for queue in facts.queues:
        name = f"{queue.name} ({queue.state})" if queue.state == "paused" else queue.name
        rows.append([name, *(f"{getattr(queue, state.value):,}" for state in shown)])
    if len(facts.queues) != 1:
        rows.append(["all", *(f"{facts.jobs[state.value]:,}" for state in shown)])
    widths = [max(len(row[column]) for row in rows) for column in range(1, len(rows[0]))]
    lines = aligned(
        [[row[0], *(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))] for row in rows]
    )
    return [heading(lines[0]), *lines[1:]]


def _oldest(facts: StatsFacts) -> str:
    if facts.oldest_at is None:
        return "nothing waits"
    return f"{span((facts.at - facts.oldest_at).total_seconds())}, in queue {facts.oldest_queue}"


def _nodes(facts: StatsFacts) -> str:
    if not any(facts.nodes.values()):
        return "none; `rota run TARGET` starts one"
    busy = f"; running {facts.running} of at most {count(facts.concurrency, 'job')}" if facts.concurrency else ""
    return f"{_numbers(facts.nodes)}{busy}"


def _numbers(numbers: dict[str, int]) -> str:
    """2 on, 1 paused: what there is any of."""
    return listed([f"{number:,} {coloured(word)}" for word, number in numbers.items() if number]) or "none"
