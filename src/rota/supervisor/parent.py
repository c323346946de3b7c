"""Starts workers, watches them, replaces those that die, are stuck or leak, and passes signals on.

The first SIGTERM or SIGINT drains all workers. The second makes them return their running jobs at once. SIGHUP replaces
them one by one, and each new one is up before the old one drains. If the parent is killed, the workers notice that
their connection to it closes, and drain by themselves.
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
from rota.supervisor.position import Position
from rota.supervisor.signals import Signals
from rota.supervisor.worker_process import End, WorkerProcess

if TYPE_CHECKING:
    from rota.supervisor.plan import Plan

CHECK_EVERY = 1.0  # seconds
PERMANENT = {2, 3, 4}  # exit codes: bad settings, a target that cannot be loaded, a store that cannot be used
INTERRUPTED = 130


class Parent:
    """One loop: starts missing workers, receives messages, handles signals, collects exit codes, checks the workers."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lines = Lines(plan.log_level, plan.log_format)
        self._signals = Signals()
        self._positions = [Position(place) for place in range(plan.processes)]
        self._workers: dict[int, WorkerProcess] = {}  # by pid, until they are reaped
        self._deaths = Deaths()
        self._poll = select.poll()
        self._poll.register(self._signals.pipe, select.POLLIN)
        self._checked_at = time.monotonic()
        self._generation = 0  # rises with every SIGHUP
        self._is_rolling = False
        self._was_up = False  # any worker, ever
        self._is_ending = False  # no worker is started any more
        self._ended_by: int | None = None  # the first signal to end
        self._code = 0

    def run(self) -> int:
        """Run until the last worker has ended; return the exit code."""
        while True:
            self._start_missing()
            if not self._workers and (self._is_ending or not self._positions):
                break
            self._poll.poll(self._pause() * 1000)
            for worker in list(self._workers.values()):
                self._receive(worker)
            for number in self._signals.take():
                self._handle(number)
            self._reap()
            self._check()
            self._roll()
            self._deaths.deliver(self._workers.values())
        for node in self._deaths:
            self._lines.say("warning", f"the jobs of {node} run again when their leases expire")
        return self._code

    # Starting.

    def _start_missing(self) -> None:
        """The first worker must be up before the others start, so that an error that all have is logged once."""
        for position in self._positions if self._was_up else self._positions[:1]:
            if position.worker is None and not self._is_ending and time.monotonic() >= position.start_at:
                position.worker = self._start(position)
                if position.worker is None:
                    self._lines.say("error", position.fail())

    def _start(self, position: Position) -> WorkerProcess | None:
        try:
            worker = WorkerProcess(
                self._plan, generation=self._generation, shows_banner=not self._was_up, place=position.place
            )
        except OSError as err:
            self._lines.say("error", f"no worker can be started: {err}")
            return None
        self._workers[worker.pid] = worker
        self._poll.register(worker.connection, select.POLLIN)
        return worker

    def _pause(self) -> float:
        """The seconds until the next check, or until a missing worker may start."""
        now = time.monotonic()
        missing = [] if self._is_ending else [one.start_at for one in self._positions if one.worker is None]
        return max(0.0, min([self._checked_at + CHECK_EVERY, *(at for at in missing if at > now)]) - now)

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

    def _check(self) -> None:
        """Once a second: replace the workers that must not continue."""
        now = time.monotonic()
        if now < self._checked_at + CHECK_EVERY:
            return
        passed, self._checked_at = min(now - self._checked_at, CHECK_EVERY), now
        for worker in self._workers.values():
            worker.observe(passed)
            verdict = None if worker.killed_for else judge(worker, self._plan)
            if verdict is None:
                continue
            position = self._position_of(worker)
            if verdict.is_unresponsive:
                self._lines.say("error", f"worker {worker.pid} {verdict.why}, and is killed")
                worker.kill(verdict.why)
            elif position is not None:
                self._lines.say("warning", f"worker {worker.pid} {verdict.why}: it drains; {position.clear()}")
                worker.drain("recycled")

    # Ends.

    def _reap(self) -> None:
        """Collect the exit codes of all children. A container's first process has the orphans of others, too."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._workers.pop(pid, None)
            if worker is not None:
                self._receive(worker)  # its last message may be that it has recorded a death
                self._unregister(worker)
                worker.connection.close()
                self._ended(worker, End(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024))

    def _ended(self, worker: WorkerProcess, end: End) -> None:
        """Log how it ended, and have it replaced if needed."""
        cause = f"{worker.killed_for}, and {end}" if worker.killed_for else str(end)
        self._deaths.worker_ended(worker.pid)
        if worker.node and end.code:
            self._deaths.add(worker.node, cause)
        position = self._position_of(worker)
        if self._is_ending or position is None:
            if worker.is_up and end.code not in (0, INTERRUPTED):
                self._lines.say("warning", f"worker {worker.pid} {cause}")
                self._code = 1 if self._is_ending else self._code
        elif worker is position.successor:
            position.successor, self._is_rolling = None, False
            rest = "no more workers are replaced, and the old ones continue"
            self._lines.say("error", f"the new worker {worker.pid} {cause}: {rest}")
        elif not self._was_up and end.code in PERMANENT:
            self._is_ending, self._code = True, end.code
        elif self._plan.is_until_empty and end.code == 0:
            self._positions.remove(position)  # its queues are empty
        else:
            self._lines.say("warning", f"worker {worker.pid} {cause}; {position.clear()}")

    def _position_of(self, worker: WorkerProcess) -> Position | None:
        return next((position for position in self._positions if worker in (position.worker, position.successor)), None)

    def _unregister(self, worker: WorkerProcess) -> None:
        try:
            self._poll.unregister(worker.connection)
        except KeyError:
            return  # its connection was closed before

    # Signals.

    def _handle(self, number: int) -> None:
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
        for position in self._positions:
            if position.worker is not None and position.worker.generation < self._generation:
                position.successor = self._start(position)
                self._is_rolling = position.successor is not None
                return
        self._is_rolling = False
        self._lines.say("info", "all workers have been replaced")

    def _hand_over(self, successor: WorkerProcess) -> None:
        """The successor is up, so the worker that it replaces drains."""
        position = self._position_of(successor)
        if position is None or position.successor is not successor or position.worker is None:
            return
        position.worker.drain("SIGHUP")
        position.worker, position.successor = successor, None


def main() -> None:
    sys.exit(Parent(taken_plan()).run())
