"""Says what a process is about to run, before it does."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rota import __version__
from rota.app import internals
from rota.cli.output import aligned, heading
from rota.cli.schedule_page import next_words, read_schedules
from rota.cli.words import count, listed
from rota.model.micros import datetime_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.cli.target import Target

MOST = 20  # tasks and schedules that are named


def banner(
    target: Target, queues: tuple[str, ...], concurrency: int, *, is_scheduler: bool, has_documents: bool = False
) -> Iterator[str]:
    """The store, the tasks, the schedules with their next runs, and what this process does with them."""
    app = target.app
    yield heading(f"Rota {__version__}: {target.name}")
    tasks = list(internals(app).registry.names())
    yield from aligned(
        [
            ["store", app.open().describe()],
            ["tasks", _some(tasks) if tasks else "none"],
            ["does", _duties(queues, concurrency, is_scheduler=is_scheduler)],
            *_documents(app, is_wanted=has_documents),
        ],
        indent="  ",
    )
    yield from _schedules(app)


def _documents(app: App, *, is_wanted: bool) -> list[list[str]]:
    """The queues of documents, if there are any and this process runs them."""
    if not is_wanted or not internals(app).has_documents:
        return []
    return [["documents", _some(app.documents.catalogue.names)]]


def _duties(queues: tuple[str, ...], concurrency: int, *, is_scheduler: bool) -> str:
    duties = []
    if queues:
        noun = "queue" if len(queues) == 1 else "queues"
        duties.append(f"works on {noun} {listed(queues)}, {count(concurrency, 'job')} at once")
    if is_scheduler:
        duties.append("fires schedules")
    return "; ".join(duties)


def _schedules(app: App) -> Iterator[str]:
    store = app.open()
    now = datetime_of(store.now())
    found = list(islice(read_schedules(store), MOST + 1))
    if not found:
        yield "  no schedules"
        return
    yield "  schedules"
    rows = [[view.id, view.sentence, f"next {next_words(view, now)}"] for view in found[:MOST]]
    yield from aligned(rows, indent="    ")
    if len(found) > MOST:
        yield "    … and more: `rota schedules list` shows all"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"{', '.join(names[:MOST])}{more}"
