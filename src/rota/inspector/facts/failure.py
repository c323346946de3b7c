"""Groups failures by their cause, as JSON shows them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.model.jobs.cause import LONGEST_TITLE, cause_of
from rota.model.micros import datetime_of, span_of
from rota.store.contract import LARGEST_BATCH

if TYPE_CHECKING:
    from rota.store.contract import Failure, Store

MOST_READ = LARGEST_BATCH  # the newest failures, which are grouped
MOST_TASKS = 5  # that one group names
LAST = "24h"


class FailureFacts(Struct, kw_only=True):
    """Jobs that failed for one cause: the same error but for its values, in the same function."""

    id: str  # of the cause: the same in every process, at any time
    title: str  # the error without its values
    error: str  # the last error's first line
    place: str  # where it was raised, such as mail.py in send; empty if the error does not show it
    count: int
    tasks: list[str]  # those that failed most often first; at most 5
    first_at: datetime
    last_at: datetime
    job_id: str  # the last of them


class FailuresFacts(Struct, kw_only=True):
    """The failed jobs of a time, grouped by cause; the cause with the newest failure first."""

    since: datetime
    count: int  # failed jobs that were grouped
    truncated: bool  # whether there are more: only the newest 1,000 are grouped
    items: list[FailureFacts]


def read_failures(store: Store, last: str | timedelta = LAST) -> FailuresFacts:
    """The failures of the last so long whose jobs are still failed and kept."""
    since = store.now() - span_of(last)
    newest = store.list_failures(since, limit=MOST_READ + 1)
    found = newest[:MOST_READ]
    groups: dict[str, list[Failure]] = {}
    for failure in found:
        groups.setdefault(cause_of(failure.error).id, []).append(failure)
    return FailuresFacts(
        since=datetime_of(since),
        count=len(found),
        truncated=len(newest) > MOST_READ,
        items=[_facts(group) for group in groups.values()],
    )


def failed_jobs(store: Store, cause: str, until: int) -> list[str]:
    """The ids of the jobs that failed for one cause within a day, up to an instant, of the newest 1,000 failures."""
    found = store.list_failures(store.now() - span_of(LAST), limit=MOST_READ)
    return [failure.id for failure in found if failure.at <= until and cause_of(failure.error).id == cause]


def _facts(group: list[Failure]) -> FailureFacts:
    cause = cause_of(group[0].error)
    tasks = Counter(failure.task for failure in group).most_common(MOST_TASKS)
    return FailureFacts(
        id=cause.id,
        title=cause.title,
        error=group[0].error.partition("\n")[0][:LONGEST_TITLE],
        place=cause.place,
        count=len(group),
        tasks=[task for task, _ in tasks],
        first_at=datetime_of(group[-1].at),
        last_at=datetime_of(group[0].at),
        job_id=group[0].id,
    )
