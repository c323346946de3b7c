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
MOST_JOBS = 20_000  # that one search reads
SURE = 16  # digits, of which the last are random: no two jobs share them
MOST_SCHEDULES = 10_000
MOST_SHOWN = 5
TIME_DIGITS = 11  # an id begins with its millisecond
SLACKS = (3_600 * SECOND, 60 * SECOND, SECOND)  # between the caller's clock, which the id has, and the store's

_ID = re.compile(r"[0-9a-f]+")


def job_id_from(store: Store, name: str) -> str | None:
    """The id of the job with this id, or of the only one whose id begins so; None if there is none."""
    if store.get_jobs([name]):
        return name
    if len(name) < LEAST or not _ID.fullmatch(name):
        return None
    for slack in SLACKS:  # the widest that can be read whole decides
        ids = [job.id for job in matching_jobs(store, _around(name, slack), most=MOST_JOBS + 1)]
        is_cut = len(ids) > MOST_JOBS
        found = [job_id for job_id in ids if job_id.startswith(name)]
        if len(found) > 1:
            raise BadOption(_several(name, found, is_cut=is_cut))
        if found and (not is_cut or len(name) >= SURE):
            return found[0]
        if not is_cut:
            break
    if is_cut or slack != SLACKS[0]:
        raise BadOption(_not_known(name, slack, is_cut=is_cut))
    return None


def _several(name: str, found: list[str], *, is_cut: bool) -> str:
    shown = listed(found[:MOST_SHOWN]) if len(found) <= MOST_SHOWN else f"{', '.join(found[:MOST_SHOWN])} and more"
    number = f"at least {len(found):,}" if is_cut else f"{len(found):,}"
    return f"{name!r} begins the ids of {number} jobs; write more of it: {shown}"


def _not_known(name: str, slack: int, *, is_cut: bool) -> str:
    """The error if the jobs that may have the id are too many to read."""
    near = f"within {slack // SECOND} s of the time that {name!r} begins with"
    if is_cut:
        return f"more than {MOST_JOBS:,} jobs were created {near}, too many to search; write the whole id"
    return f"no job whose id begins so was created {near}, and there are too many others to search; write the whole id"


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


def _around(name: str, slack: int) -> JobFilter:
    """The jobs that were created when an id with this beginning was made."""
    digits = name[:TIME_DIGITS]
    first = int(digits.ljust(TIME_DIGITS, "0"), 16) * 1000
    last = int(digits.ljust(TIME_DIGITS, "f"), 16) * 1000
    return JobFilter(since=first - slack, until=last + slack)
