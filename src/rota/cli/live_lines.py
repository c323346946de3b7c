"""Prints one line for each job as it ends, with what the job prints, for a person who watches.

09:00:01 ✔   12 ms  greet('world')
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

import click

from rota.app import internals
from rota.cli.job_page import call_of
from rota.cli.output import say
from rota.cli.words import first_line, printable, relative, span
from rota.engine.executors.run import current_run
from rota.errors import StoreError
from rota.model.micros import SECOND, datetime_of
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.app import App
    from rota.engine.events import Event
    from rota.store.contract import LogLine, Store

LOOK = 0.5  # seconds between two looks at what runs
LONG = 2 * SECOND  # a job that runs for this long is shown before it ends
MARGIN = " " * 21  # where calls begin


class Mark(NamedTuple):
    """The symbol and the colour of a kind of line."""

    symbol: str
    colour: str | None


MARKS = {
    "job.succeeded": Mark("✔", "green"),
    "job.failed": Mark("✘", "red"),
    "job.retried": Mark("↻", "yellow"),
    "job.snoozed": Mark("☾", "blue"),
    "job.cancelled": Mark("⊘", "yellow"),
    "job.returned": Mark("↩", "yellow"),
    "job.refused": Mark("!", "yellow"),
    "job.rescued": Mark("!", "yellow"),
}
RUNNING = Mark("▸", "cyan")
PRINTED = Mark("│", None)


class Watched:
    """A running job, and how much of its output was shown."""

    __slots__ = ("call", "is_shown", "number", "since")

    def __init__(self, call: str, since: int) -> None:
        self.call = call
        self.since = since
        self.number = 0  # of its last line that was shown
        self.is_shown = False


class LiveLines:
    """Learns of jobs from the app's events, and reads what those that take longer have printed."""

    def __init__(self, app: App, *, shows_tracebacks: bool) -> None:
        self._app = app
        self._zone = find_zone(app.settings.tz)
        self._shows_tracebacks = shows_tracebacks
        self._running: dict[str, Watched] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="rota-live-lines", daemon=True)

    def start(self) -> None:
        self._app.on("job.started", self._begin)
        for name in MARKS:
            self._app.on(name, self._end)
        logging.getLogger("rota.job").setLevel(logging.CRITICAL)  # these lines say it instead
        for handler in logging.getLogger().handlers:
            handler.addFilter(_is_from_no_job)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _begin(self, event: Event) -> None:
        job_id, task = event.data["job_id"], event.data["task"]
        try:
            found = self._app.open().get_jobs([job_id])
        except StoreError:
            found = []
        with self._lock:
            self._running[job_id] = Watched(
                _brief(call_of(found[0], internals(self._app).redaction)) if found else f"{task}(…)", event.at
            )

    def _end(self, event: Event) -> None:
        data = event.data
        with self._lock:
            watched = self._running.pop(data["job_id"], None) or Watched(f"{data['task']}(…)", 0)
            self._show_prints(data["job_id"], watched)
            took = span((event.at - watched.since) / SECOND) if watched.since else ""
            self._show(event.at, MARKS[event.name], took, watched.call, _note(event))
            if self._shows_tracebacks and event.name == "job.failed":
                _show_rest(data.get("error"))

    def _look(self) -> None:
        while not self._is_over.wait(LOOK):
            with self._lock:
                for job_id, watched in self._running.items():
                    self._show_prints(job_id, watched)
                    self._show_long(watched)

    def _show_long(self, watched: Watched) -> None:
        now = self._app.open().now()
        if not watched.is_shown and now - watched.since >= LONG:
            watched.is_shown = True
            self._show(now, RUNNING, "", watched.call, "is running")

    def _show_prints(self, job_id: str, watched: Watched) -> None:
        while lines := _new_lines(self._app.open(), job_id, watched):
            watched.number = lines[-1].number
            watched.is_shown = True
            for line in lines:
                for text in line.text.splitlines() or [""]:
                    self._show(line.at, PRINTED, "", watched.call, printable(text))

    def _show(self, at: int, mark: Mark, took: str, call: str, note: str) -> None:
        """Print one line, with its time in the app's timezone, as in the list of schedules above it."""
        time = click.style(f"{self._zone.datetime_of(at // SECOND):%H:%M:%S}", dim=True)
        symbol = click.style(mark.symbol, fg=mark.colour, bold=True)
        room = _room()
        call = _cut(call, room)
        note = _cut(note, room - len(call) - 2)
        words = f"  {click.style(note, fg=mark.colour)}" if note else ""
        say(f"{time} {symbol} {took:>8}  {call}{words}")


def _new_lines(store: Store, job_id: str, watched: Watched) -> list[LogLine]:
    """The lines that this run has written since the last call; none if the store cannot be read."""
    if not watched.since:
        return []
    try:
        return store.list_logs(job_id, after=watched.number, start=watched.since)
    except StoreError:
        return []


def _is_from_no_job(record: logging.LogRecord) -> bool:
    """Whether no job wrote the record. What a job logs is shown as a line of the job."""
    return record.name.startswith("rota.") or current_run() is None


def _note(event: Event) -> str:
    data = event.data
    match event.name:
        case "job.failed":
            return first_line(data.get("error"))
        case "job.retried":
            return f"again {_in(event)}: {first_line(data.get('error'))}"
        case "job.snoozed":
            return f"comes back {_in(event)}"
        case "job.cancelled":
            return first_line(data.get("reason"))
        case "job.returned":
            return f"returned to its queue: {first_line(data.get('reason'))}"
        case "job.refused":
            return "ended too late: its lease was lost"
        case "job.rescued":
            return f"its worker fell silent; it is {data.get('state')} now"
        case _:
            return ""


def _in(event: Event) -> str:
    return relative(datetime_of(event.data["run_at"]), datetime_of(event.at))


def _show_rest(error: str | None) -> None:
    """The traceback below an error's first line."""
    for line in (error or "").splitlines()[1:]:
        say(f"{MARGIN}{click.style(printable(line), dim=True)}")


def _brief(call: str, most: int = 40) -> str:
    call = printable(call).replace("\n", "\\n")
    return call if len(call) <= most else f"{call[: most - 2]}…)"


def _room() -> int:
    """How wide a call and its note may be: what the terminal has; in a pipe lines stay whole."""
    return shutil.get_terminal_size().columns - len(MARGIN) if sys.stderr.isatty() else 10_000


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…" if width > 1 else ""
