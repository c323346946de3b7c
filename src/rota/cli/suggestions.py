"""Offers values for a shell's completion. Each source reads a little, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rota.app import internals
from rota.cli.operate import store_of
from rota.cli.target import load_target
from rota.inspector.health import why_unusable
from rota.inspector.search import FIELDS
from rota.model.jobs.job import State
from rota.model.tenant import KIND
from rota.store.contract import LARGEST_PAGE, JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import click

    from rota.store.contract import Store

MOST_JOBS = 20
SPANS = ("15m", "1h", "24h", "7d")


class Source(Protocol):
    """The values that fit a parameter, given the typed part of the command and of this word."""

    def __call__(self, ctx: click.Context, typed: str, /) -> Iterable[str]: ...


def task_names(ctx: click.Context, typed: str) -> Iterable[str]:
    """From the app where one is named; else those that nodes and schedules have."""
    del typed
    target = ctx.params.get("target")
    if target:
        return internals(load_target(target).app).registry.names()
    return _known_tasks(_store(ctx))


def schedule_ids(ctx: click.Context, typed: str) -> Iterable[str]:
    """A page of them, from where the typed text would be."""
    page = _store(ctx).list_schedules(cursor=_just_before(typed), limit=LARGEST_PAGE)
    return [schedule.id for schedule in page.items]


def tenant_names(ctx: click.Context, typed: str) -> Iterable[str]:
    """A page of them, from where the typed text would be."""
    page = _store(ctx).list_entries(KIND, cursor=_just_before(typed), limit=LARGEST_PAGE)
    return [entry.name for entry in page.items]


def queue_names(ctx: click.Context, typed: str) -> Iterable[str]:
    """The names of queues, for the last item of a list with commas."""
    before, comma, _ = typed.rpartition(",")
    return [f"{before}{comma}{queue.name}" for queue in _store(ctx).list_queues()]


def job_ids(ctx: click.Context, typed: str) -> Iterable[str]:
    """The newest jobs."""
    del typed
    return [job.id for job in _store(ctx).list_jobs(JobFilter(), limit=MOST_JOBS).items]


def filters(ctx: click.Context, typed: str) -> Iterator[str]:
    """The last term of a filter: a field that was not said yet, or its value."""
    said, space, term = typed.rpartition(" ")
    field, colon, value = term.partition(":")
    if not colon:
        taken = {word.partition(":")[0] for word in said.split()}
        yield from (f"{said}{space}{name}:" for name in FIELDS if name not in taken)
        return
    yield from (f"{said}{space}{field}:{found}" for found in _values(ctx, field, value))


def target_files(ctx: click.Context, typed: str) -> Iterable[str]:
    """The shell's own completion of files knows them best."""
    del ctx, typed
    return ["*.py"]


SOURCES: dict[str, Source] = {  # by group and name of the parameter; * stands for any group
    "* target": target_files,
    "* named": target_files,
    "* where": filters,
    "* task_name": task_names,
    "* queue": queue_names,
    "* queues": queue_names,
    "queues names": queue_names,
    "schedules ids": schedule_ids,
    "* schedule_id": schedule_ids,
    "tenants name": tenant_names,
    "* tenant": tenant_names,
    "jobs ids": job_ids,
    "* job_id": job_ids,
}


def _values(ctx: click.Context, field: str, typed: str) -> Iterable[str]:
    match field:
        case "state":
            before, comma, _ = typed.rpartition(",")
            return [f"{before}{comma}{state.value}" for state in State if state.value not in before.split(",")]
        case "task":
            return _known_tasks(_store(ctx))
        case "queue":
            return [queue.name for queue in _store(ctx).list_queues()]
        case "schedule":
            return schedule_ids(ctx, typed)
        case "since" | "until":
            return SPANS
        case _:
            return ()


def _known_tasks(store: Store) -> list[str]:
    nodes = {task for node in store.list_nodes() for task in node.tasks}
    return sorted(nodes | {schedule.spec.task for schedule in store.list_schedules(limit=LARGEST_PAGE).items})


def _store(ctx: click.Context) -> Store:
    """The store that the command would use, open; an error if that would make or change anything."""
    store = store_of(ctx.params.get("target"), ctx.params.get("store_url"))
    reason = why_unusable(store)
    if reason:
        raise LookupError(reason)
    store.open()
    ctx.call_on_close(store.close)
    return store


def _just_before(typed: str) -> str | None:
    """A cursor after which ids that begin with this text come."""
    return typed[:-1] + chr(ord(typed[-1]) - 1) + "\U0010ffff" if typed else None
