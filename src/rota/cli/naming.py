"""Finds the job whose id begins with a text, or the schedule with the most similar name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rota.cli.words import listed
from rota.errors import BadOption, JobNotFound, ScheduleNotFound
from rota.inspector.reading import all_schedules
from rota.inspector.search import matching_jobs
from rota.model.micros import SECOND
from rota.store.contract import JobFilter

if TYPE_CHECKING:
    from rota.store.contract import Store

LEAST = 4  # digits; fewer say nothing
MOST_JOBS = 20_000  # that are looked at; beyond, nobody knows whether a short prefix is of one job alone
SURE = 16  # digits, of which the last are random: no two jobs share them
MOST_SCHEDULES = 10_000
MOST_SHOWN = 5
TIME_DIGITS = 11  # an id begins with its millisecond
SLACK = 3_600 * SECOND  # between the clock of the caller that made the id and the store's

_ID = re.compile(r"[0-9a-f]+")


def job_id_from(store: Store, name: str) -> str | None:
    """The id of the job with this id, or of the only one whose id begins so; None if there is none."""
    if store.get_jobs([name]):
        return name
    if len(name) < LEAST or not _ID.fullmatch(name):
        return None
    looked_at = [job.id for job in matching_jobs(store, _around(name), most=MOST_JOBS)]
    found = [job_id for job_id in looked_at if job_id.startswith(name)]
    if len(found) > 1:
        shown = listed(found[:MOST_SHOWN]) if len(found) <= MOST_SHOWN else f"{', '.join(found[:MOST_SHOWN])} and more"
        raise BadOption(f"{name!r} begins the ids of {len(found)} jobs; write more of it: {shown}")
    if len(looked_at) == MOST_JOBS and len(name) < SURE:
        raise BadOption(f"{name!r} is too short to name one of more than {MOST_JOBS:,} jobs; write more of the id")
    return found[0] if found else None


def one_job_id(store: Store, name: str) -> str:
    """Like job_id_from, but fails if no job is found."""
    found = job_id_from(store, name)
    if found is None:
        raise JobNotFound(f"no job has the id {name!r}, and no id begins with it; it may have been pruned")
    return found


def nothing_named(store: Store, name: str) -> ScheduleNotFound:
    """The error about a name that neither a schedule nor a job has, with the schedule that was probably meant."""
    known = [schedule.id for schedule, _ in zip(all_schedules(store), range(MOST_SCHEDULES), strict=False)]
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean the schedule {close[0]}?" if close else "; a job may have been pruned"
    return ScheduleNotFound(f"no schedule and no job has the id {name!r}{hint}")


def _around(name: str) -> JobFilter:
    """The jobs that were created when an id with this beginning was made."""
    digits = name[:TIME_DIGITS]
    first = int(digits.ljust(TIME_DIGITS, "0"), 16) * 1000
    last = int(digits.ljust(TIME_DIGITS, "f"), 16) * 1000
    return JobFilter(since=first - SLACK, until=last + SLACK)
