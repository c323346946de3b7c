"""Shows the progress of a copy on stderr: as bars on a terminal, as a line every few seconds in a pipe."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rota.cli.output import say
from rota.cli.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import TaskID

    from rota.operations.copy import OnStep, Step

SILENCE = 5.0  # seconds between two lines about the same part
VERBS = {"copy": "copying", "check": "checking"}


@contextmanager
def progress() -> Iterator[OnStep]:
    """The function that shows each step, in a form for this stderr."""
    if not sys.stderr.isatty():
        lines = Lines()
        yield lines
        lines.finish()
        return
    with _bars() as on_step:
        yield on_step


class Lines:
    """Prints a line when a part begins, every few seconds while it goes on, and when it has ended."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None
        self._said_at = 0.0
        self._unsaid: Step | None = None  # the last step of this part, if no line shows it

    def __call__(self, step: Step) -> None:
        what = (step.phase, step.part)
        if what == self._last and time.monotonic() < self._said_at + SILENCE:
            self._unsaid = step
            return
        if what != self._last:
            self.finish()
        self._last, self._said_at, self._unsaid = what, time.monotonic(), None
        say(words(step))

    def finish(self) -> None:
        """Print how far the last part has come."""
        if self._unsaid is not None:
            say(words(self._unsaid))
            self._unsaid = None


def words(step: Step) -> str:
    if step.phase == "wait":
        return f"waiting for {count(step.done, 'running job')}" if step.done else "nothing runs any more"
    total = f" of {step.total:,}" if step.total is not None else ""
    return f"{VERBS[step.phase]} {step.part}: {step.done:,}{total}"


@contextmanager
def _bars() -> Iterator[OnStep]:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs rich, and it is slow to import
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        bars: dict[
            tuple[str, str], tuple[TaskID, int]
        ] = {}  # of each phase and part: its bar, and the most it ever had

        def on_step(step: Step) -> None:
            what = (step.phase, step.part)
            if step.phase == "wait" and not step.done and what not in bars:
                return  # nothing ran
            if what not in bars:
                bars[what] = (shown.add_task(_title(step), total=None), step.done)
            bar, most = bars[what]
            most = max(most, step.done)
            bars[what] = (bar, most)
            done = most - step.done if step.phase == "wait" else step.done
            shown.update(bar, completed=done, total=most if step.phase == "wait" else step.total or step.done)

        yield on_step


def _title(step: Step) -> str:
    return "running jobs end" if step.phase == "wait" else f"{VERBS[step.phase]} {step.part}"
