"""A process to be killed: `python killed_child.py ROLE …`, in the folder of its app. It says what happens on stdout."""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import signal
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from kill_harness import wait_until
from killable_app import app, note

from rota import StoreUnavailable, every, failpoints
from rota.app import internals
from rota.model.jobs.job import State
from rota.model.micros import datetime_of
from rota.store.contract import JobFilter, Retention

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Event

FOLDER = Path.cwd()
PRUNE_ALL = Retention(succeeded_for=0, failed_for=0, cancelled_for=0)


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    options = read_options()
    for name in ("job.*", "store.*", "service.failed", "node.started"):
        app.on(name, tell)
    ROLES[options.role](options)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--die-at", help="the failpoint at which this process kills itself …")
    parser.add_argument("--nth", type=int, default=1, help="… when it is reached for the nth time")
    parser.add_argument("--hang-at", help="the failpoint that nothing gets past")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--drain", default="25s")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds from one job to the next")
    parser.add_argument("--count", type=int, default=30, help="how many jobs, or jobs per batch")
    return parser.parse_args()


# Services.


def serve(options: argparse.Namespace, **services: bool) -> None:
    """Run services until SIGTERM; a second one hurries."""
    arm(options)
    news: SimpleQueue[str] = SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: news.put("signal"))
    node = app.start(concurrency=options.concurrency, drain=options.drain, **services)
    _next(news)

    def stop() -> None:
        try:
            app.stop()
        finally:
            news.put("stopped")

    threading.Thread(target=stop).start()
    say("stopping")
    while _next(news) != "stopped":
        node.stop_now()
    app.close()
    say("stopped")


def _next(news: SimpleQueue[str]) -> str:
    """What comes next; a signal that arrives just before a wait begins is handled at the next look."""
    while True:
        try:
            return news.get(timeout=0.25)
        except Empty:
            continue


def worker(options: argparse.Namespace) -> None:
    serve(options, scheduler=False)


def scheduler(options: argparse.Namespace) -> None:
    serve(options, worker=False)


def node(options: argparse.Namespace) -> None:
    serve(options)


# People and programs that change things. Each runs a node beside, so that there is something to change.


def enqueuer(options: argparse.Namespace) -> None:
    """Adds jobs one by one, with keys, delays and priorities, until there is a file `enough`, or enough of them."""
    arm(options)
    pause = threading.Event()
    for number in range(options.count):
        pause.wait(options.pause)
        if (FOLDER / "enough").exists():
            break
        note(FOLDER, "tried", number)
        try:
            enqueue_one(number)
        except StoreUnavailable as err:  # it may have been taken, or not: both are right
            say(f"not accepted {number}: {err}")


def enqueue_one(number: int) -> None:
    key = f"key-{number % 15}" if number % 5 == 0 else None
    delay = "1s" if number % 3 == 0 else None
    task = "flaky" if number % 7 == 3 else "quick"
    arguments = () if task == "flaky" else (number,)
    job = internals(app).registry.find(task).using(key=key, delay=delay, priority=number % 4).enqueue(*arguments)
    note(FOLDER, "accepted", job.id)
    wait_until(lambda: waiting_jobs() < 100, "room in the queue")


def batcher(options: argparse.Namespace) -> None:
    """Adds batches; with --die-at insert, it dies while the database takes one."""
    store = app.open()
    if options.die_at == "insert":
        reach_insert = Trap("insert", options.nth)
        store._database._writer.set_trace_callback(
            lambda statement: (
                reach_insert("insert") if statement.startswith(f"INSERT INTO {store.namespace}_job") else None
            )
        )
    else:
        arm(options)
    for batch in itertools.count():
        note(FOLDER, "batches", batch)
        app.enqueue_many([internals(app).registry.find("quick").job(batch) for _ in range(options.count)])


def editor(options: argparse.Namespace) -> None:
    """Rewords, pauses, resumes and re-times a schedule, again and again.

    Alone: an edit that a firing came before is made again, and would pass the points more often than it is done.
    """
    with_some_work_done(options)
    app.stop()
    job, end = internals(app).registry.find("quick").job(), datetime_of(app.open().now()) + timedelta(seconds=4)
    app.schedules.put("edited", job, every("1s"), overlap="allow", end=end)
    arm(options, by_hand=True)
    for turn in itertools.count():
        app.schedules.put("edited", job, every("1s"), overlap="allow", end=end, description=f"turn {turn}")
        paused = app.schedules.pause("edited", reason="a look", by="the editor")
        wait_until(lambda at=paused.record.next_at: app.open().now() > at, "a time that falls into the pause")
        app.schedules.resume("edited")
        app.schedules.put("edited", job, every("2s"), overlap="allow", end=end)


def deleter(options: argparse.Namespace) -> None:
    with_some_work_done(options)
    arm(options, by_hand=True)
    for job in app.jobs.list(state="succeeded").items:
        note(FOLDER, "deleted", job.id)
        app.jobs.delete(job.id)


def canceller(options: argparse.Namespace) -> None:
    with_some_work_done(options)
    arm(options, by_hand=True)
    while True:
        job = internals(app).registry.find("quick").using(delay="1s").enqueue(0)
        note(FOLDER, "accepted", job.id)
        app.jobs.cancel(job.id)


def pruner(options: argparse.Namespace) -> None:
    with_some_work_done(options)
    arm(options, by_hand=True)
    while True:
        app.open().prune(PRUNE_ALL, 500)


ROLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "worker": worker,
    "scheduler": scheduler,
    "node": node,
    "enqueuer": enqueuer,
    "batcher": batcher,
    "editor": editor,
    "deleter": deleter,
    "canceller": canceller,
    "pruner": pruner,
}


def with_some_work_done(options: argparse.Namespace) -> None:
    app.start(concurrency=options.concurrency)
    succeeded = JobFilter(states=(State.SUCCEEDED,))
    wait_until(lambda: len(app.open().list_jobs(succeeded).items) >= 3, "jobs that have ended")


def waiting_jobs() -> int:
    return sum(queue.counts.get(State.QUEUED, 0) for queue in app.open().list_queues())


# Dying, and last words.


class Trap:
    """Kills this process when a point is reached for the nth time, by any thread or by the main one alone."""

    def __init__(self, point: str, nth: int, *, by_hand: bool = False) -> None:
        self._point = point
        self._nth = nth
        self._by_hand = by_hand
        self._numbers = itertools.count(1)

    def __call__(self, point: str) -> None:
        if self._by_hand and threading.current_thread() is not threading.main_thread():
            return
        if point == self._point and next(self._numbers) == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)


def arm(options: argparse.Namespace, *, by_hand: bool = False) -> None:
    if options.hang_at:
        failpoints.install(partial(hang, options.hang_at))
    elif options.die_at:
        failpoints.install(Trap(options.die_at, options.nth, by_hand=by_hand))


def hang(at: str, point: str) -> None:
    if point == at:
        say(f"hangs at {point}")
        threading.Event().wait()


def tell(event: Event) -> None:
    say(f"{event.name} {event.data.get('job_id') or event.data}")


def say(text: str) -> None:
    """Past Python's buffers and Rota's capture, whole."""
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    main()
