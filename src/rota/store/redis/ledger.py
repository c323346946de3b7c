"""The ledger: what became of expected times; ranges and kept jobs together, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import is_record_of, of_job
from rota.store.contract import Page
from rota.store.redis.packing import job_of, line_of, schedule_of
from rota.store.shared.matching import check_cursor

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.model.occurrence import Occurrence
    from rota.store.redis.desk import Desk


def list_occurrences(
    desk: Desk, schedule_id: str, start: int, end: int, cursor: str | None, limit: int
) -> Page[Occurrence]:
    check_cursor(cursor)
    after = int(cursor) if cursor else start - 1
    some = ["LIMIT", 0, limit + 1]
    packed, ranges = desk.ask(
        ["HGET", "schedule", schedule_id], ["ZRANGEBYSCORE", f"ledger:{schedule_id}", f"({after}", "+inf", *some]
    )
    schedule = None if packed is None else schedule_of(schedule_id, packed, [])
    made_at = schedule.created_at if schedule else 0
    lines = [of_job(job) for job in _kept(desk, schedule_id, after, end, limit + 1, made_at)]
    lines += [line for line in (line_of(schedule_id, packed) for packed in ranges) if line.earliest_at < end]
    lines.sort(key=lambda line: line.through_at)
    shown = lines[:limit]
    return Page(shown, str(shown[-1].through_at) if len(lines) > limit else None)


def _kept(desk: Desk, schedule_id: str, after: int, end: int, most: int, made_at: int) -> list[Job]:
    """The first jobs that are records of this schedule; an earlier namesake's are passed over."""
    found: list[Job] = []
    place = 0
    while len(found) < most:
        between = [f"({after}", f"({end}", "LIMIT", place, most]
        (ids,) = desk.ask(["ZRANGEBYSCORE", f"slot:{schedule_id}", *between])
        sights = desk.sights([job_id.decode() for job_id in ids])
        jobs = [job_of(job_id, sight) for job_id, sight in sights.items() if sight is not None]
        found += [job for job in jobs if is_record_of(job, made_at)]
        place += most
        if len(ids) < most:
            break
    return found[:most]
