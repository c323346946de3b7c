"""The same stories, told by the kit and by a live node, end in the same histories."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from kit.live_node import LiveNode
from rota import App, Cancel, Retry, Snooze, backoff, current_job, every
from rota.model.jobs.job import history_of
from rota.testing import Kit, ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.testing.kit_store import KitStore

    Take = Callable[[float], None]
    Step = tuple[str, str | timedelta]
    Story = Callable[[App, Take], Iterator[Step]]

START = "2026-03-02T12:00:00Z"
ID = re.compile(r"\b[0-9a-f]{20,}\b")
CLOSE = 50_000  # microseconds: a live node claims and fires up to 25 ms before the time
MINUTE = 60


def outlasts(overlap: str, **options: Any) -> Story:
    """A task of two and a half minutes, every minute."""

    def story(app: App, take: Take) -> Iterator[Step]:
        @app.schedule(every("1m"), id="slow", overlap=overlap, **options)
        def slow() -> None:
            take(2.5 * MINUTE)

        yield "travel", "12m"
        yield "travel", "7m15s"

    return story


def replaced(app: App, take: Take) -> Iterator[Step]:
    """A task that looks whether it was replaced, and ends."""

    @app.schedule(every("1m"), id="slow", overlap="cancel")
    def slow() -> None:
        for _ in range(10):
            take(MINUTE / 4 + 1)
            if current_job.cancelled:
                raise Cancel("replaced")

    yield "travel", "9m30s"


def jittered(app: App, take: Take) -> Iterator[Step]:
    """A hundred schedules at one time, spread over two seconds: many are due within 25 ms of each other."""
    numbers = count()
    for number in range(100):

        @app.schedule(every("1h"), id=f"number-{number}", jitter="2s")
        @app.task(name=f"task-{number}")
        def task() -> None:
            if next(numbers) % 20 == 0:
                take(1.0)

    yield "travel", "1h1m"


def close_together(app: App, take: Take) -> Iterator[Step]:
    """Jobs due within 25 ms of each other."""

    @app.task
    def job(seconds: float) -> None:
        take(seconds)

    yield "travel", "1s"
    for number in range(5):
        job.using(delay="5s").enqueue(0.0)
        job.using(delay="5s").enqueue(0.004 * number)
    yield "travel", timedelta(milliseconds=10)
    job.using(delay="5s").enqueue(0.0)
    yield "travel", "1m"


def caught_up(app: App, take: Take) -> Iterator[Step]:
    """An outage of five hours, under each policy of catching up and overlap."""
    for catchup in ("latest", "all", "skip"):
        for overlap in ("skip", "queue", "allow"):

            @app.schedule(every("1h"), id=f"{catchup}-{overlap}", catchup=catchup, overlap=overlap)
            @app.task(name=f"task-{catchup}-{overlap}")
            def task() -> None:
                take(20 * MINUTE)

    yield "travel", "90m"
    yield "outage", "5h"
    yield "travel", "8h"


def retried(app: App, take: Take) -> Iterator[Step]:
    """Failures, retries asked for and snoozes of a schedule's job, while its next occurrences come."""

    @app.schedule(every("1m"), id="shaky", overlap="queue")
    @app.task(retries=2, backoff=backoff("40s", factor=2, longest="10m"))
    def shaky() -> None:
        take(5)
        minute = current_job.occurrence.minute
        if minute % 3 == 0:
            raise ConnectionError("down")
        if minute % 3 == 1 and current_job.attempt == 1:
            raise Retry(after="25s")

    @app.schedule(every("1m"), id="sleepy")
    def sleepy() -> None:
        take(1)
        if len(app.jobs.history(current_job.id)) < 8:
            raise Snooze(after="31s")

    yield "travel", "20m30s"


def timed_out(app: App, take: Take) -> Iterator[Step]:
    """A task over its timeout: it fails then, and is retried while the first run still lasts."""

    @app.schedule(every("5m"), id="late")
    @app.task(timeout="1m", retries=1, backoff=backoff("10s"))
    def late() -> None:
        take(2 * MINUTE if current_job.attempt == 1 else 30)

    yield "travel", "21m"


def looked_ahead(overlap: str) -> Story:
    """Jobs that are made an hour ahead; overlap is decided when they are due."""

    def story(app: App, take: Take) -> Iterator[Step]:
        @app.schedule(every("1m"), id="ahead", lookahead="1h", overlap=overlap)
        def ahead() -> None:
            take(97)  # no run ends at an instant at which another begins: which is first then, is a race

        @app.task
        def operate(verb: str) -> None:
            getattr(app.schedules, verb)("ahead")

        yield "travel", "1s"
        operate.using(delay="10m45s").enqueue("pause")
        operate.using(delay="15m45s").enqueue("resume")
        yield "travel", "21m"

    return story


STORIES: dict[str, Story] = {
    **{f"outlasts-{overlap}": outlasts(overlap) for overlap in ("skip", "queue", "cancel", "allow")},
    "outlasts-with-jitter": outlasts("allow", jitter="20s"),
    "replaced": replaced,
    "jittered": jittered,
    "close-together": close_together,
    "caught-up": caught_up,
    "retried": retried,
    "timed-out": timed_out,
    **{f"looked-ahead-{overlap}": looked_ahead(overlap) for overlap in ("skip", "queue", "allow")},
}


@pytest.mark.parametrize("name", STORIES)
def test_the_kit_tells_a_story_as_a_live_node_does(name):
    by_kit, instants = told_by_kit(STORIES[name])
    by_node = told_by_node(STORIES[name], instants)
    differences = [
        (at, by_kit.get(at), by_node.get(at)) for at in by_kit | by_node if by_kit.get(at) != by_node.get(at)
    ]
    assert differences == []
    assert any(line[0] in {"succeeded", "cancelled"} for lines in by_kit.values() for line in lines)


def told_by_kit(story: Story) -> tuple[dict[str, Any], list[int]]:
    app, clock = App(name="stories"), ManualClock(START)
    instants: list[int] = []
    kit = Kit(app, clock)
    steps = story(app, lambda seconds: kit.travel(timedelta(seconds=seconds)) and None)
    step = next(steps, None)
    with kit:
        while step is not None:
            what, span = step
            (kit if what == "travel" else clock).travel(span)
            instants.append(clock.micros())
            step = next(steps, None)
        return histories(kit._store, instants[-1]), instants


def told_by_node(story: Story, instants: list[int]) -> dict[str, Any]:
    app, clock = App(name="stories"), ManualClock(START)
    node = LiveNode(app, clock)
    steps = story(app, node.take)
    step = next(steps)
    with node:
        for instant in instants:
            (node.travel_to if step[0] == "travel" else clock.move_to)(instant)
            step = next(steps, ("", ""))
        return histories(node.store, instants[-1])


def histories(store: KitStore, end: int) -> dict[str, Any]:
    """What became of every job and every occurrence before that instant, to a tenth of a second."""
    found: dict[str, Any] = {}
    for number, job in enumerate(store.seen):
        name = f"{job.schedule_id}@{job.fire_at}" if job.schedule_id else f"job-{number}"
        moves = [move for move in history_of(job) if move.at < end - CLOSE]
        lines = [(str(move.state), tenths(move.at), ID.sub("…", move.reason)) for move in moves]
        found[name] = without_head_start(lines)
    for schedule in store.list_schedules(limit=500).items:
        ledger = store.list_occurrences(schedule.id, 0, end - CLOSE, limit=1000).items
        found[schedule.id] = [
            (line.through_at, line.count, line.outcome, ID.sub("…", line.reason)) for line in ledger if not line.job_id
        ]
    return {name: lines for name, lines in found.items() if lines}


def without_head_start(lines: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Fired up to 25 ms early by a live node, a job is scheduled first, and due at its time: one line, not two."""
    if [line[0] for line in lines[:2]] == ["scheduled", "queued"] and lines[0][1:] == (lines[1][1], "fired"):
        return [("queued", *lines[0][1:]), *lines[2:]]
    return lines


def tenths(micros: int) -> int:
    return round(micros / 100_000)
