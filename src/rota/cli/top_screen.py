"""Formats the screen of `top`: as plain text in a pipe, and drawn to fit on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rota.cli.columns import Column
from rota.cli.operate import number_of, state_of_node
from rota.cli.output import aligned, heading
from rota.cli.words import coarse, instant, printable, relative, span
from rota.model.jobs.job import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from rich.text import Text

    from rota.cli.top_facts import TopFacts, TopFailure, TopJob, TopQueue, TopSchedule
    from rota.inspector.facts.node import NodeFacts

BAR = 10  # characters
_SHARE = re.compile(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)(.*)", re.DOTALL)


class Section(NamedTuple):
    """A part of the screen: what is in it, or what is said where nothing is."""

    items: Sequence[Any]
    columns: Sequence[Column[Any]]
    empty: str
    more: int = 0  # that were not even read
    most: int = 1_000  # rows on a terminal


def sections(facts: TopFacts) -> list[Section]:
    """The sections. Those that change least come first, so that rows stay in place."""
    unread = facts.running_total - len(facts.running)
    return [
        Section(facts.nodes, _node_columns(facts.at), "no node is running; `rota run TARGET` starts one"),
        Section(facts.queues, _queue_columns(facts.at), "no queues yet"),
        Section(facts.schedules, _schedule_columns(facts), "no schedule will fire", most=5),
        Section(facts.failures, _failure_columns(facts.at), "no failed jobs are kept", most=5),
        Section(facts.running, _running_columns(), "no job is running", max(0, unread)),
    ]


def plain(facts: TopFacts) -> Iterator[str]:
    """Everything that was read, as text."""
    yield title(facts)
    for section in sections(facts):
        yield ""
        if not section.items:
            yield section.empty
            continue
        cells = [[printable(column.cell(item)) for column in section.columns] for item in section.items]
        first, *rest = aligned([[column.title for column in section.columns], *cells])
        yield heading(first)
        yield from rest
        if section.more:
            yield f"… and {section.more:,} more"


def drawn(facts: TopFacts, trouble: str, height: int) -> Text:
    """The lines that fit into a terminal of this height."""
    from rich.text import Text  # noqa: PLC0415 - only a terminal needs rich, and it is slow to import

    from rota.cli.terminal import draw  # noqa: PLC0415

    parts = sections(facts)
    lines = [heading(title(facts)), click.style(trouble, fg="red") if trouble else click.style("q ends it", dim=True)]
    for section, number in zip(parts, _fitting(parts, height - len(lines)), strict=True):
        lines.append("")
        if not section.items:
            lines.append(click.style(section.empty, dim=True))
            continue
        lines += draw(section.items[:number], section.columns).rstrip("\n").split("\n")
        hidden = len(section.items) - number + section.more
        if hidden:
            lines.append(click.style(f"… and {hidden:,} more", dim=True))
    return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis")


def title(facts: TopFacts) -> str:
    return f"{facts.store}  {instant(facts.at)}"


def _fitting(parts: Sequence[Section], room: int) -> list[int]:
    """How many rows of each section fit. The longest section is cut first, and each keeps one row."""
    shown = [min(len(section.items), section.most) for section in parts]
    while sum(_height(section, number) for section, number in zip(parts, shown, strict=True)) > room:
        longest = max(range(len(shown)), key=lambda index: shown[index])
        if shown[longest] <= 1:
            break
        shown[longest] -= 1
    return shown


def _height(section: Section, number: int) -> int:
    """An empty line, the titles, the rows, and a line that says how many are missing."""
    if not section.items:
        return 2
    return 2 + number + (1 if number < len(section.items) or section.more else 0)


def _node_columns(now: datetime) -> list[Column[NodeFacts]]:
    return [
        Column("NODE", lambda node: node.id, "cut"),
        Column("state", state_of_node),
        Column("running", lambda node: f"{node.running} of {node.concurrency}" if node.concurrency else "-"),
        Column("roles", lambda node: ", ".join(node.roles), dropped=2),
        Column("queues", lambda node: ", ".join(node.queues) or "-", "cut", dropped=1),
        Column("app", lambda node: f"{node.app} {node.version}".strip(), dropped=3),
        Column("heard of", lambda node: relative(node.beat_at, now), dropped=4),
    ]


def _queue_columns(now: datetime) -> list[Column[TopQueue]]:
    def number(name: str, state: State, dropped: int = 0) -> Column[TopQueue]:
        return Column(name, lambda queue: f"{number_of(queue, state):,}", is_number=True, dropped=dropped)

    return [
        Column("QUEUE", lambda queue: queue.name, "cut"),
        Column("state", lambda queue: queue.state),
        number("waiting", State.QUEUED),
        number("running", State.RUNNING),
        number("later", State.SCHEDULED),
        Column("oldest", lambda queue: _age(queue, now), is_number=True),
        Column("per second", lambda queue: _rate(queue.per_second), is_number=True),
        number("succeeded", State.SUCCEEDED, dropped=2),
        number("failed", State.FAILED, dropped=1),
    ]


def _running_columns() -> list[Column[TopJob]]:
    return [
        Column("RUNNING", lambda job: job.call, "cut"),
        Column("for", lambda job: span(job.seconds), is_number=True),
        Column("progress", lambda job: _bar(job.progress), "cut"),
        Column("queue", lambda job: job.queue, dropped=2),
        Column("job", lambda job: job.id, dropped=1),
    ]


def _failure_columns(now: datetime) -> list[Column[TopFailure]]:
    return [
        Column("FAILED", lambda job: job.call, "cut"),
        Column("when", lambda job: relative(job.at, now)),
        Column("error", lambda job: job.error, "cut"),
        Column("job", lambda job: job.id, dropped=1),
    ]


def _schedule_columns(facts: TopFacts) -> list[Column[TopSchedule]]:
    name = f"NEXT OF THE FIRST {facts.schedules_seen:,}" if facts.schedules_cut else "NEXT"
    return [
        Column(name, lambda schedule: schedule.id, "cut"),
        Column("when", lambda schedule: _away(schedule.next_run, facts.at)),
        Column("at", lambda schedule: instant(schedule.next_run), dropped=1),
        Column("runs", lambda schedule: schedule.sentence, "cut"),
    ]


def _age(queue: TopQueue, now: datetime) -> str:
    return span((now - queue.oldest_at).total_seconds()) if queue.oldest_at is not None else "-"


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return "-"
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _away(at: datetime, now: datetime) -> str:
    late = (now - at).total_seconds()
    return f"overdue by {coarse(late)}" if late >= 1 else relative(at, now)


def _bar(progress: str | None) -> str:
    """███████░░░ 7/10 note; as the job said it where that is no share of a whole."""
    if progress is None:
        return "-"
    found = _SHARE.fullmatch(progress)
    if found is None or float(found[2]) <= 0:
        return progress
    full = round(BAR * min(1.0, float(found[1]) / float(found[2])))
    return f"{'█' * full}{'░' * (BAR - full)} {progress}"
