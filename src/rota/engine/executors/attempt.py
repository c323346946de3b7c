"""Runs one job in one child process, until it ends, exceeds its time or memory, is stopped, or dies."""

from __future__ import annotations

import logging
import signal
import time
from typing import TYPE_CHECKING

from rota.engine.executors.capture import log_of
from rota.engine.executors.messages import Finished, Output, Progress, RunRequest, Secrets, Started, outcome_in
from rota.engine.executors.run import too_late
from rota.engine.executors.sources import source_of
from rota.model.jobs.outcome import Died, Failed, Returned, Stopped
from rota.tasks.middleware import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.executors.child_process import ChildProcess
    from rota.engine.executors.messages import Message
    from rota.engine.executors.run import Run
    from rota.model.jobs.outcome import Outcome

LOOK = 0.2  # seconds between two checks of memory, cancellation and exit code
LOAD_FOR = 60.0  # seconds that a child may take to start and to import the task's module, beside the timeout
ASK_AGAIN = 1.0  # seconds after which a task that was asked to stop is interrupted …
STOP_FOR = 2.0  # … and killed


class Attempt:
    """Reads what the child sends, and decides what becomes of it."""

    def __init__(self, run: Run, child: ChildProcess, is_stopping: Callable[[], bool]) -> None:
        self._run = run
        self._child = child
        self._is_stopping = is_stopping
        self._asked_at: float | None = None
        self._asked = 0
        self._looked_at = 0.0
        self._has_begun = False

    def outcome(self) -> Outcome:
        """Have the child run the job, and return the outcome."""
        run = self._run
        if run.stop_reason is not None:
            return Stopped(run.stop_reason)
        if not run.begin():
            return Returned()
        if run.deadline is not None:
            run.deadline += LOAD_FOR
        assert run.task is not None  # noqa: S101 - prepare() found it
        self._child.jobs += 1
        self._child.read_rest()  # output that a leftover of an earlier job has written since is dropped
        self._child.send(
            RunRequest(
                job=run.job,
                source=source_of(run.task),
                log_level=logging.getLogger().level,
                redact=run.host.redaction.extra,
                checks_types=run.task.sender.checks_types,
                middleware=names_of(run.task.middleware),
            )
        )
        while True:
            outcome = self._receive(self._child.turn(self._pause())) or self._judge()
            if outcome is not None:
                return outcome

    def _pause(self) -> float:
        if self._run.deadline is None:
            return LOOK
        return min(LOOK, self._run.deadline - self._run.host.monotonic())

    def _receive(self, messages: list[Message]) -> Outcome | None:
        run = self._run
        end: Outcome | None = None
        for secrets in (message for message in messages if isinstance(message, Secrets)):
            run.add_secrets(secrets.texts)  # before any output, which comes by other ways too
        for message in messages:
            match message:
                case Output(level, text, is_record):
                    log_of(run).line(level, text) if is_record else log_of(run).write(level, text)
                case Progress(progress):
                    run.progress = progress
                case Started():
                    self._has_begun = True
                    self._child.measure_memory()
                    run.deadline = None if run.timeout is None else run.host.monotonic() + run.timeout
                case Finished():
                    end = self._ended(message)
                case RunRequest() | Secrets():
                    pass
        return end

    def _ended(self, message: Finished) -> Outcome:
        self._receive([said for said in self._child.read_rest() if isinstance(said, Output)])
        outcome = outcome_in(message)
        if isinstance(outcome, Stopped) and self._run.stop_reason is not None:
            return Stopped(self._run.stop_reason)  # the child does not know the reason
        return outcome

    def _judge(self) -> Outcome | None:
        """What to do about a task that has not ended."""
        run, child = self._run, self._child
        if run.is_over or self._is_stopping():
            return self._kill(Returned())
        if child.is_disconnected or child.exit_code is not None:
            return self._dead()
        if run.deadline is not None and run.host.monotonic() >= run.deadline:
            return self._kill(self._late())
        now = time.monotonic()
        if now < self._looked_at + LOOK / 2:
            return None
        self._looked_at = now
        return self._judge_memory() or self._press_to_stop(now)

    def _late(self) -> Outcome:
        if self._has_begun:
            return too_late(self._run, "; its process was killed")
        error = f"TimeoutError: a process could not load {self._run.job.task} within {LOAD_FOR:g} s, and was killed"
        return Failed(error, may_retry=self._run.policy.may_retry(TimeoutError()))

    def _judge_memory(self) -> Outcome | None:
        used, options = self._child.measure_memory(), self._run.task and self._run.task.options
        cap = options.memory if options else None
        if cap is None or used <= cap:
            return None
        error = f"MemoryError: used {megabytes(used)} MB, more than its cap of {megabytes(cap)} MB"
        return self._kill(Failed(error, may_retry=self._run.policy.may_retry(MemoryError())))

    def _press_to_stop(self, now: float) -> Outcome | None:
        """Ask a task to stop, then interrupt it after 1 s, then kill it after 2 s."""
        if self._run.stop_reason is None:
            return None
        self._asked_at = self._asked_at or now
        waited = now - self._asked_at
        if waited >= STOP_FOR:
            return self._kill(Stopped(self._run.stop_reason))
        if self._asked == 0 or (self._asked == 1 and waited >= ASK_AGAIN):
            self._asked += 1
            self._child.ask_to_stop()
        return None

    def _kill(self, outcome: Outcome) -> Outcome:
        self._child.kill()
        self._receive([said for said in self._child.read_rest() if isinstance(said, Output)])
        return outcome

    def _dead(self) -> Outcome:
        """The child has ended by itself: a result that it sent before still counts."""
        end = self._receive(self._child.read_rest())
        if end is not None:
            return end
        hung_up = self._child.is_disconnected and not self._child.wait(1.0)
        self._child.kill()
        self._receive([said for said in self._child.read_rest() if isinstance(said, Output)])
        if self._run.stop_reason is not None:
            return Stopped(self._run.stop_reason)
        how = "closed its socket and was killed" if hung_up else how_it_ended(self._child.exit_code or 0)
        return Died(f"child process {self._child.pid} {how}, last seen with {megabytes(self._child.rss)} MB")


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exited by itself with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name} (exit code {code})"


def megabytes(size: int) -> int:
    return round(size / 1024**2)
