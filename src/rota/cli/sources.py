"""Runs `sources`: shows collections that are kept in sync and their tasks, and starts a task by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.columns import Column
from rota.cli.groups import Group
from rota.cli.options import on_a_store, output_option
from rota.cli.output import Output, say
from rota.cli.words import relative
from rota.inspector.facts.collection import (
    CollectionFacts,
    SyncTaskFacts,
    collection_facts,
    collection_sentence,
    sync_task_facts,
)
from rota.model.micros import datetime_of
from rota.model.sync import Status
from rota.operations.audit import whoami

if TYPE_CHECKING:
    from datetime import datetime

    from rota.app import App
    from rota.inspector.collection_view import CollectionView
    from rota.inspector.sync_task import SyncTask


@click.group(cls=Group)
def sources() -> None:
    """List collections that are kept in sync; start one."""


@sources.command("list")
@on_a_store
@output_option
def list_sources(app: App, out: Output) -> None:
    """List all sources and their collections."""
    found = [collection for source in app.sources.list() for collection in source.collections]
    now = datetime_of(app.open().now())
    empty = f"{app.open().describe()} knows no source yet"
    out.rows(found, _columns(now), CollectionFacts, collection_facts, empty=empty)


@sources.command("run")
@click.argument("source")
@click.argument("collection")
@on_a_store
@output_option
def run_collection(app: App, source: str, collection: str, out: Output) -> None:
    """Start a task of a collection, unless one waits or runs already."""
    task = app.sources.run(source, collection, by=whoami())
    if out.form == "table":
        done = f"{task.status.lower()} already" if task.existed else "started"
        say(f"{task.id} is {done}" if task.existed else f"{done} {task.id}")
    else:
        out.rows([task], [], SyncTaskFacts, sync_task_facts, empty="")


@sources.command("tasks")
@click.argument("source")
@click.argument("collection", required=False)
@click.option("--status", type=click.Choice([*Status], case_sensitive=False), help="Only tasks with this status.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Show this many at most."
)
@on_a_store
@output_option
def list_tasks(app: App, source: str, collection: str | None, status: str | None, limit: int, out: Output) -> None:
    """List the tasks of a source, or of one of its collections, newest first."""
    page = app.sources.tasks(source, collection, status=status, limit=limit)
    now = datetime_of(app.open().now())
    out.rows(page.items, _task_columns(now), SyncTaskFacts, sync_task_facts, empty="no task is kept")
    if page.cursor is not None and out.form == "table":
        say(f"these are the newest {limit}; -n shows more")


def _columns(now: datetime) -> list[Column[CollectionView]]:
    return [
        Column("source", lambda one: one.source),
        Column("collection", lambda one: one.name),
        Column("schedule", collection_sentence, "wrap"),
        Column("priority", lambda one: str(one.priority), is_number=True, dropped=3),
        Column("next", lambda one: _when(one.schedule.next_run, now)),
        Column("last", lambda one: one.schedule.last_status or "-"),
        Column("ended", lambda one: _when(one.schedule.last_finished, now), dropped=1),
        Column("task", lambda one: one.task, dropped=2),
    ]


def _task_columns(now: datetime) -> list[Column[SyncTask]]:
    return [
        Column("task", lambda task: task.id),
        Column("status", lambda task: task.status),
        Column("created", lambda task: _when(task.created_at, now)),
        Column("started", lambda task: _when(task.started_at, now), dropped=2),
        Column("finished", lambda task: _when(task.finished_at, now), dropped=1),
        Column("error", lambda task: task.error.partition("\n")[0] or "-", "wrap", dropped=3),
    ]


def _when(at: datetime | None, now: datetime) -> str:
    return "-" if at is None else relative(at, now)
