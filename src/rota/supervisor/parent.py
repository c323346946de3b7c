"""Starts workers, watches them, replaces those that die, are stuck or leak, and passes signals on.

The first SIGTERM or SIGINT drains all workers, the second has them return running jobs at once; SIGHUP replaces them
one by one, each new one up before the old one drains. A parent that is killed takes nobody along: its workers see
their lines close, and drain by themselves.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

from rota.supervisor.deaths import Deaths
from rota.supervisor.judging import judge
from rota.supervisor.lines import Lines
from rota.supervisor.plan import taken_plan
from rota.supervisor.post import Post
from rota.supervisor.signals import Signals
from rota.supervisor.worker_process import End, WorkerProcess

if TYPE_CHECKING:
    from rota.supervisor.plan import Plan

LOOK = 1.0  # seconds between two looks at the workers
HOPELESS = {2, 3, 4}  # bad settings, a target that cannot be loaded, a store that cannot be used
INTERRUPTED = 130


class Parent:
    """One loop: start missing workers, wait, receive messages, obey signals, reap the dead, judge the living."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lines = Lines(plan.log_level, plan.log_format)
        self._signals = Signals()
        self._posts = [Post(place) for place in range(plan.processes)]
        self._workers: dict[int, WorkerProcess] = {}  # by pid, until they are reaped
        self._deaths = Deaths()
        self._poll = select.poll()
        self._poll.register(self._signals.pipe, select.POLLIN)
        self._looked_at = time.monotonic()
        self._generation = 0  # rises with every SIGHUP
        self._is_rolling = False
        self._was_up = False  # any worker, ever
        self._is_ending = False  # nobody is started any more
        self._ended_by: int | None = None  # the first signal to end
        self._code = 0

    def run(self) -> int:
        """Until the last worker has ended; the exit code."""
        while True:
            self._fill_posts()
            if not self._workers and (self._is_ending or not self._posts):
                break
            self._poll.poll(self._pause() * 1000)
            for worker in list(self._workers.values()):
                self._receive(worker)
            for number in self._signals.take():
                self._obey(number)
            self._reap()
            self._look()
            self._roll()
            self._deaths.deliver(self._workers.values())
        for node in self._deaths:
            self._lines.say("warning", f"the jobs of {node} restart elsewhere when their leases run out")
        return self._code

    # Starting.

    def _fill_posts(self) -> None:
        """The first worker must be up before the others start: what keeps it from that is said once, not N times."""
        for post in self._posts if self._was_up else self._posts[:1]:
            if post.worker is None and not self._is_ending and time.monotonic() >= post.start_at:
                post.worker = self._start(post)
                if post.worker is None:
                    self._lines.say("error", post.fail())

    def _start(self, post: Post) -> WorkerProcess | None:
        try:
            worker = WorkerProcess(
                self._plan, generation=self._generation, shows_banner=not self._was_up, place=post.place
            )
        except OSError as err:
            self._lines.say("error", f"no worker can be started: {err}")
            return None
        self._workers[worker.pid] = worker
        self._poll.register(worker.connection, select.POLLIN)
        return worker

    def _pause(self) -> float:
        """Until the next look, or until a post may be filled."""
        now = time.monotonic()
        empty = [] if self._is_ending else [post.start_at for post in self._posts if post.worker is None]
        return max(0.0, min([self._looked_at + LOOK, *(at for at in empty if at > now)]) - now)

    # Receiving and watching.

    def _receive(self, worker: WorkerProcess) -> None:
        was_up = worker.is_up
        try:
            messages = worker.receive()
        except EOFError:
            self._unregister(worker)
            return
        if worker.is_up and not was_up:
            self._was_up = True
            self._hand_over(worker)
        for message in messages:
            if "recorded" in message:
                self._deaths.forget(message["recorded"])

    def _look(self) -> None:
        """Once a second: what has lasted too long?"""
        now = time.monotonic()
        if now < self._looked_at + LOOK:
            return
        passed, self._looked_at = min(now - self._looked_at, LOOK), now
        for worker in self._workers.values():
            worker.look(passed)
            verdict = None if worker.fate else judge(worker, self._plan)
            if verdict is None:
                continue
            post = self._post_of(worker)
            if verdict.is_deaf:
                self._lines.say("error", f"worker {worker.pid} {verdict.why}, and is killed")
                worker.kill(verdict.why)
            elif post is not None:
                self._lines.say("warning", f"worker {worker.pid} {verdict.why}: it drains; {post.vacate()}")
                worker.drain("recycled")

    # Ends.

    def _reap(self) -> None:
        """Of every child: where this is a container's first process, others' orphans are its own."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._workers.pop(pid, None)
            if worker is not None:
                self._receive(worker)  # what it said last may be that the store knows of a death
                self._unregister(worker)
                worker.connection.close()
                self._ended(worker, End(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024))

    def _ended(self, worker: WorkerProcess, end: End) -> None:
        """Report how it ended, and fill its post again if it is needed."""
        story = f"{worker.fate}, and {end}" if worker.fate else str(end)
        self._deaths.take_back(worker.pid)
        if worker.node and end.code:
            self._deaths.add(worker.node, story)
        post = self._post_of(worker)
        if self._is_ending or post is None:
            if worker.is_up and end.code not in (0, INTERRUPTED):
                self._lines.say("warning", f"worker {worker.pid} {story}")
                self._code = 1 if self._is_ending else self._code
        elif worker is post.successor:
            post.successor, self._is_rolling = None, False
            self._lines.say("error", f"the new worker {worker.pid} {story}: the replacing ends, the old ones go on")
        elif not self._was_up and end.code in HOPELESS:
            self._is_ending, self._code = True, end.code
        elif self._plan.is_until_empty and end.code == 0:
            self._posts.remove(post)  # there is nothing left to do
        else:
            self._lines.say("warning", f"worker {worker.pid} {story}; {post.vacate()}")

    def _post_of(self, worker: WorkerProcess) -> Post | None:
        return next((post for post in self._posts if worker in (post.worker, post.successor)), None)

    def _unregister(self, worker: WorkerProcess) -> None:
        try:
            self._poll.unregister(worker.connection)
        except KeyError:
            return  # its connection was closed before

    # Signals.

    def _obey(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._end(signal.Signals(number))
        elif number == signal.SIGHUP and not self._is_ending:
            self._generation += 1
            self._is_rolling = True
            self._lines.say("info", "SIGHUP: workers are replaced one by one")

    def _end(self, ended_by: signal.Signals) -> None:
        if self._ended_by is not None:
            for worker in self._workers.values():
                worker.stop_now()
            return
        self._ended_by, self._is_ending = ended_by, True
        self._code = INTERRUPTED if ended_by == signal.SIGINT else 0
        for worker in self._workers.values():
            worker.drain(ended_by.name, ended_by)

    def _roll(self) -> None:
        """Start the next successor, once the last has taken over and its predecessor has ended."""
        if not self._is_rolling or self._is_ending:
            return
        if any(worker.is_leaving or not worker.is_up for worker in self._workers.values()):
            return
        for post in self._posts:
            if post.worker is not None and post.worker.generation < self._generation:
                post.successor = self._start(post)
                self._is_rolling = post.successor is not None
                return
        self._is_rolling = False
        self._lines.say("info", "all workers have been replaced")

    def _hand_over(self, successor: WorkerProcess) -> None:
        """The successor is up: whom it replaces may go."""
        post = self._post_of(successor)
        if post is None or post.successor is not successor or post.worker is None:
            return
        post.worker.drain("SIGHUP")
        post.worker, post.successor = successor, None


def main() -> None:
    sys.exit(Parent(taken_plan()).run())
