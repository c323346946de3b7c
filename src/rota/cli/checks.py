"""Checks a store that answers, for `doctor`. Each check reports what it finds and what to do."""

from __future__ import annotations

import os
import shutil
import stat
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
from msgspec import Struct

from rota.cli.misfits import misfits
from rota.cli.output import write
from rota.cli.schedule_page import read_schedules
from rota.cli.words import count, first_line, listed, printable, relative
from rota.inspector.reading import clock_record
from rota.inspector.search import matching_jobs
from rota.model.clock.record import recent_steps
from rota.model.jobs.job import State
from rota.model.micros import datetime_of
from rota.store.contract import JobFilter
from rota.store.shared.files import file_system_of
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rota.app import App
    from rota.cli.output import Output
    from rota.store.contract import QueueInfo, Store

MOST_JOBS = 10_000  # waiting jobs that are looked through for unknown tasks
MOST_OVERDUE = 1_000
MOST_RECOUNTED = 50_000  # jobs that are counted unasked: about a second
MOST_RECOUNTS = 3  # while jobs are added or end
MOST_SCHEDULES = 10_000  # that are looked at unasked: about a second
MOST_SHOWN = 20  # broken schedules that are listed one by one
MOST_USERS = 5  # schedules that are named for each unknown task
LEAST_ROOM = 200 * 1024 * 1024
FLEETING = ("tmpfs", "ramfs")

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}

Verdict = Literal["ok", "warning", "problem"]


class Facts(Struct, kw_only=True):
    """The fields of a check in JSON and CSV."""

    about: str
    verdict: str
    finding: str
    todo: str | None


class Check(NamedTuple):
    """One finding."""

    about: str
    verdict: Verdict
    finding: str
    todo: str = ""

    def facts(self) -> Facts:
        return Facts(about=self.about, verdict=self.verdict, finding=self.finding, todo=self.todo or None)


def show_checks(found: list[Check], out: Output, *, width: int = 10) -> None:
    """All findings and a last line that counts them, or data."""
    if out.form != "table":
        out.rows(found, [], Facts, Check.facts, empty="")
        return
    for check in found:
        word = click.style(f"{check.verdict:<8}", fg=COLOURS[check.verdict])
        write(f"{word} {check.about:<{width}} {printable(check.finding)}")
        if check.todo:
            write(f"{'':{width + 10}}→ {check.todo}")
    verdicts = [check.verdict for check in found]
    parts = [count(verdicts.count(word), word) for word in ("problem", "warning") if word in verdicts]
    write("")
    write(listed(parts) if parts else "all is well")


class SchedulesSeen:
    """The problems of schedules, which are read a page at a time: there may be a million."""

    def __init__(self, store: Store, most: int | None) -> None:
        self.turned_on = 0
        self.tasks: dict[str, list[str]] = {}  # of those that are on, each with the first schedules that run it
        self.broken = 0
        self.shown: list[tuple[str, str]] = []  # the first broken ones, and why
        found = read_schedules(store)
        for schedule in islice(found, most):
            if schedule.state == "on":
                self.turned_on += 1
                users = self.tasks.setdefault(schedule.record.spec.task, [])
                users += [schedule.id] if len(users) <= MOST_USERS else []
            elif schedule.state == "broken":
                self.broken += 1
                self.shown += [(schedule.id, schedule.problem or "")] if len(self.shown) < MOST_SHOWN else []
        self.are_all = next(found, None) is None

    @property
    def scope(self) -> str:
        """Which schedules were read, if there are more."""
        return "" if self.are_all else f" of the first {MOST_SCHEDULES:,}; `rota doctor --recount` looks at all"


class Examination:
    """The facts that the checks use, read once, so that they are of one instant."""

    def __init__(self, store: Store, app: App | None, *, reads_all: bool = False) -> None:
        self.store = store
        self.reads_all = reads_all  # however many jobs and schedules there are
        self.app = app  # the one that was named
        self.version = None if app is None else (app.name, app.version)
        self.now = store.now()
        self.nodes = store.list_nodes()
        self.alive = live_nodes(self.nodes, self.now)
        self.workers = [node for node in self.alive if "worker" in node.roles]
        self.queues = store.list_queues()
        self.schedules = SchedulesSeen(store, None if reads_all else MOST_SCHEDULES)


def examine(seen: Examination) -> Iterator[Check]:
    """All checks, the store's own first."""
    if seen.store.path is not None:
        yield from _file(seen.store.path)
    yield from _settings(seen.store)
    yield from _counters(seen)
    yield from _clock(seen)
    yield from _nodes(seen)
    yield from _queues(seen)
    yield from _tasks(seen)
    yield from _signatures(seen)
    yield from _schedules(seen)


def _file(path: Path) -> Iterator[Check]:
    found = [*_place(path.resolve()), *_access(path)]
    yield from found
    if not found:
        yield Check("file", "ok", f"on a disk ({file_system_of(path.parent)}) with room; its owner alone may open it")


def _place(path: Path) -> Iterator[Check]:
    kind = file_system_of(path.parent)  # a network's is refused by the store itself
    if kind in FLEETING:
        yield Check("file", "warning", f"{path} is on {kind}, which a restart empties", "move it to a disk")
    free = shutil.disk_usage(path.parent).free
    if free < LEAST_ROOM:
        todo = "make room: a full disk stops all work"
        yield Check("file", "warning", f"only {free // 2**20:,} MiB are free beside {path}", todo)


def _access(path: Path) -> Iterator[Check]:
    for place, way in ((path, "file"), (path.parent, "folder")):
        if not os.access(place, os.W_OK):
            todo = f"let this user write to it, or run as its owner ({place.owner()})"
            yield Check("file", "problem", f"the {way} {place} cannot be written by this user", todo)
    hidden = not path.parent.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) and not hidden:
        todo = f"chmod 600 {path}: jobs' arguments may be private"
        yield Check("file", "warning", f"others than its owner may open {path}", todo)


def _settings(store: Store) -> Iterator[Check]:
    for warning in store.warnings():
        finding, _, todo = warning.partition("; ")
        yield Check("server", "warning", finding, todo)


def _counters(seen: Examination) -> Iterator[Check]:
    """Compare the counters with a fresh count. It reads every job, so it is skipped if there are many."""
    kept = sum(sum(queue.counts.values()) for queue in seen.queues)
    if kept > MOST_RECOUNTED and not seen.reads_all:
        finding = f"not compared: a fresh count would read all {kept:,} jobs; `rota doctor --recount` does"
        yield Check("counters", "ok", finding)
        return
    off = _recounted(seen.store)
    if off is None:
        finding = "not compared: jobs were added or ended during each fresh count"
        yield Check("counters", "warning", finding, "run this again when the system is less busy")
        return
    if not off:
        yield Check("counters", "ok", "they equal a fresh count")
    for name, number in sorted(off.items()):
        todo = "jobs are safe, only numbers are wrong; this is a bug of Rota, please report it"
        yield Check("counters", "problem", f"{name} is off by {number:+,}", todo)


def _recounted(store: Store) -> dict[str, int] | None:
    """How far the counters are off; None if they changed during each count: some stores count page by page."""
    for _ in range(MOST_RECOUNTS):
        before = store.list_queues()
        off = store.recount()
        if not off or before == store.list_queues():
            return off
    return None


def _clock(seen: Examination) -> Iterator[Check]:
    """Whether the store's clock was set within the last day."""
    steps = recent_steps(clock_record(seen.store), seen.now)
    for step in steps:
        moved = f"; {step.repair_words}" if step.is_back else ""
        yield Check("clock", "warning", f"{step.words}{moved}", "keep the clock of the store's host in step, as by NTP")
    if not steps:
        yield Check("clock", "ok", "no node has seen the store's clock set within a day")


def _nodes(seen: Examination) -> Iterator[Check]:
    if not seen.alive:
        yield Check("nodes", "warning", "none is alive", "`rota run TARGET` starts one")
    for node in seen.nodes:
        if node not in seen.alive:
            heard = relative(datetime_of(node.beat_at), datetime_of(seen.now))
            todo = "it died, hangs, or cannot reach the store; what it ran is given to others"
            yield Check("nodes", "warning", f"{node.id} was heard of {heard}", todo)
    mixed = list(_versions(seen))
    yield from mixed
    if seen.alive and not mixed:
        yield Check("nodes", "ok", f"{len(seen.alive)} alive, of one version for each app")


def _versions(seen: Examination) -> Iterator[Check]:
    """Nodes of one app that run different code."""
    for app in sorted({node.app for node in seen.alive}):
        nodes = [node for node in seen.alive if node.app == app]
        if seen.version is not None and seen.version[0] == app:
            wanted = seen.version[1]
            for node in nodes:
                if node.version != wanted:
                    finding = f"{node.id} runs {app} {_version(node.version)}, the code here is {_version(wanted)}"
                    yield Check("nodes", "warning", finding, "restart it with the code that is wanted")
        elif len(versions := sorted({node.version for node in nodes})) > 1:
            finding = f"{app} runs in versions {listed([_version(text) for text in versions])} at once"
            yield Check(
                "nodes", "warning", finding, "fine during a deploy; else restart the old ones: `rota nodes list`"
            )


def _version(text: str) -> str:
    return text or "(no version)"


def _queues(seen: Examination) -> Iterator[Check]:
    worked = {name for node in seen.workers for name in node.queues}
    found = [check for queue in seen.queues for check in _queue(seen, queue, is_worked=queue.name in worked)]
    yield from found
    if not found:
        yield Check("queues", "ok", "no waiting job lacks a live worker")


def _queue(seen: Examination, queue: QueueInfo, *, is_worked: bool) -> Iterator[Check]:
    ready, later = queue.counts.get(State.QUEUED.value, 0), queue.counts.get(State.SCHEDULED.value, 0)
    if not ready + later:
        return
    waiting = f"queue {queue.name} has {count(ready + later, 'waiting job')}"
    if queue.is_paused:
        yield Check("queues", "warning", f"{waiting} and is paused", f"`rota queues resume {queue.name}`")
    if not is_worked:
        verdict: Verdict = "problem" if ready or _has_overdue(seen, queue.name) else "warning"
        todo = f"`rota worker TARGET -q {queue.name}` starts one"
        yield Check("queues", verdict, f"{waiting} and no live worker", todo)


def _has_overdue(seen: Examination, queue: str) -> bool:
    """Whether a job's time has come: without a worker nobody makes it ready."""
    where = JobFilter(states=(State.SCHEDULED,), queue=queue)
    return any(job.run_at <= seen.now for job in matching_jobs(seen.store, where, most=MOST_OVERDUE))


def _tasks(seen: Examination) -> Iterator[Check]:
    if not seen.workers:
        return  # said already, and all would be unknown
    known = {task for node in seen.workers for task in node.tasks}
    where = JobFilter(states=(State.QUEUED, State.SCHEDULED, State.HELD))
    waiting = {job.task for job in matching_jobs(seen.store, where, most=MOST_JOBS)}
    wanted = waiting | seen.schedules.tasks.keys()
    for task in sorted(wanted - known):
        yield _unknown_task(task, seen.schedules.tasks.get(task, []), has_jobs=task in waiting)
    if wanted <= known:
        yield Check(
            "tasks", "ok", f"live workers know the task of every waiting job and schedule{seen.schedules.scope}"
        )


def _unknown_task(task: str, schedules: list[str], *, has_jobs: bool) -> Check:
    """A task that no worker runs, the jobs that wait for it, and what to do."""
    shown = [f"schedule {name}" for name in schedules[:MOST_USERS]]
    more = ["other schedules"] if len(schedules) > MOST_USERS else []
    users = listed([*(["waiting jobs"] if has_jobs else []), *shown, *more])
    ways = [f"cancel the jobs: `rota jobs cancel --where task:{task}`"] if has_jobs else []
    ways += [f"disable what makes them: `rota schedules disable {' '.join(schedules[:MOST_USERS])}`"] if shown else []
    todo = f"deploy the code that has it, or {' and '.join(ways)}"
    return Check("tasks", "problem", f"no live worker knows {task}, the task of {users}", todo)


def _signatures(seen: Examination) -> Iterator[Check]:
    """Whether the code of the app that was named takes the arguments that wait for it."""
    if seen.app is None:
        return
    found = list(misfits(seen.app, seen.store))
    for one in found:
        way = one.cancelling if one.what == "job" else "change its arguments"
        yield Check(
            "arguments", "problem", one.sentence, f"deploy code that takes both the old and the new call, or {way}"
        )
    if not found:
        yield Check("arguments", "ok", "the code takes those of all waiting jobs and schedules that were looked at")


def _schedules(seen: Examination) -> Iterator[Check]:
    is_fired = any("scheduler" in node.roles for node in seen.alive)
    turned_on, broken = seen.schedules.turned_on, seen.schedules.broken
    for name, problem in seen.schedules.shown:
        todo = f"mend its rule where it is defined, or `rota schedules remove {name}`"
        yield Check("schedules", "problem", f"{name} is broken: {first_line(problem)}", todo)
    if broken > MOST_SHOWN:
        todo = "`rota schedules list` shows them all"
        yield Check("schedules", "problem", f"{broken - MOST_SHOWN:,} more are broken{seen.schedules.scope}", todo)
    if turned_on and not is_fired:
        least = "" if seen.schedules.are_all else "at least "
        finding = f"{least}{count(turned_on, 'schedule')} on, and no live node that fires them"
        yield Check("schedules", "problem", finding, "`rota run TARGET` or `rota scheduler TARGET` starts one")
    elif not broken:
        yield Check("schedules", "ok", f"{turned_on:,} on, none broken{seen.schedules.scope}")
