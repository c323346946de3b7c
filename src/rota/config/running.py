"""Checks the arguments of `app.start()`, and uses the settings for those that are not given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec import Struct

from rota.model.micros import SECOND, span_of
from rota.model.names import check_queues
from rota.model.sizes import bytes_of, check_concurrency, jobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from rota.config.settings import Settings


class StartOptions(TypedDict, total=False):
    """The options of a node that a caller may set; None leaves one to the settings."""

    queues: Sequence[str] | None
    concurrency: int | None
    drain: str | None
    recycle_jobs: int | None
    recycle_age: str | timedelta | None
    recycle_memory: str | int | None


class RunSettings(Struct, frozen=True, kw_only=True):
    """How a node runs, checked; spans are microseconds, except the drain."""

    queues: tuple[str, ...]
    concurrency: int
    drain_for: float  # seconds
    recycle_jobs: int | None
    recycle_age: int | None
    recycle_memory: int | None


def run_settings(settings: Settings, **options: Unpack[StartOptions]) -> RunSettings:
    """The settings of a node. BadOption if an argument makes no sense."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    worker = settings.worker
    return RunSettings(
        queues=check_queues(given.get("queues", worker.queues or ("default",))),
        concurrency=check_concurrency(given.get("concurrency", worker.concurrency)),
        drain_for=(span_of(given["drain"]) if "drain" in given else settings.drain) / SECOND,
        recycle_jobs=jobs_of(given["recycle_jobs"]) if "recycle_jobs" in given else worker.recycle_jobs,
        recycle_age=span_of(given["recycle_age"]) if "recycle_age" in given else worker.recycle_age,
        recycle_memory=bytes_of(given["recycle_memory"]) if "recycle_memory" in given else worker.recycle_memory,
    )
