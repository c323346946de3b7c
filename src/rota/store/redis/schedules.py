"""Schedules: decisions about them, each a draft guarded by what the schedule was; edits; and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.edit import audit_after, schedule_after
from rota.model.occurrence import of_skip
from rota.model.schedule import LastRun
from rota.model.settle import cancel
from rota.store.contract import Due, Page
from rota.store.redis.desk import text_of
from rota.store.redis.draft import Draft
from rota.store.redis.packing import (
    UNKNOWN_LAST,
    Sight,
    job_of,
    pack_last,
    pack_schedule,
    schedule_of,
    sights_of,
)
from rota.store.redis.wire import binary
from rota.store.shared.matching import schedule_matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.model.edit import Edit
    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.contract import ScheduleFilter
    from rota.store.redis.desk import Desk

MOST_AT_ONCE = 250  # schedules in one survey
LONGEST_STEP = 500  # schedules looked at in one call where most of them do not match


class Want(NamedTuple):
    """What a decision about a schedule needs to know."""

    name: str
    ledger_from: int  # lines of the ledger that end at or after this may be touched
    jobs: list[str]  # that it may make
    slots: list[int | None]  # their nominal times
    needs_live: bool  # whether its live jobs matter: where they may overlap they do not, and may be many
    needs_soon: bool = False  # whether those matter that were made ahead
    known: Sequence[str] = ()  # jobs that there are, and that it may change
    places: Sequence[int] = ()  # in line, for the jobs that it may make; those behind the last one where there are none


class Found:
    """A schedule as a survey found it, with all that a decision on it needs."""

    def __init__(self, want: Want, found: list[Any], sights: dict[str, Sight | None], places: Iterator[int]) -> None:
        packed, holder, live, lines, made, soon = found
        name = want.name
        self.name = name
        self.ledger_from = want.ledger_from
        self.packed: bytes | None = packed
        self.schedule = None if packed is None else schedule_of(name, packed, [])
        self.holder: bytes | None = holder
        self.lines: list[bytes] = lines
        self.made: list[int] = made  # how many jobs each slot that was asked for has
        self.places = places
        self._number_live = len(live) if want.needs_live else None
        ids = [job_id.decode() for job_id in (*live, *soon, *([holder] if holder else []))]
        self.sights = {job_id: sights[job_id] for job_id in (*ids, *want.jobs, *want.known)}

    def was(self, job_id: str) -> Job | None:
        """A job as it was found."""
        sight = self.sights[job_id]
        return None if sight is None else job_of(job_id, sight)

    def draft(self, desk: Desk, now: int) -> Draft:
        """A draft on this schedule, which holds while it is what was found."""
        draft = Draft(desk, now)
        draft.expect(["HGET", "schedule", self.name], self.packed)
        draft.expect(["HGET", "busy", self.name], self.holder)
        if self._number_live is not None:  # each is guarded by itself; that none has come is seen by their number
            draft.expect(["ZCARD", f"live:{self.name}"], self._number_live)
        draft.show(self.sights)
        draft.show_ledger(self.name, self.ledger_from, self.lines)
        return draft


class ScheduleBook:
    """One namespace's schedules."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # Edits.

    def edit(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        def decide(edit: Edit, found: Found, at: int) -> tuple[Draft | None, bool]:
            draft = self._edited(edit, found, at)
            return draft, draft is not None

        wants = [
            Want(
                edit.id,
                _ledger_start(edit),
                [job.id for job in edit.jobs],
                [job.fire_at or 0 for job in edit.jobs],
                needs_live=edit.revoke is not None,
                needs_soon=edit.revoke is not None,
            )
            for edit in edits
        ]
        taken = self.decide("edit", list(zip(wants, edits, strict=True)), decide, now)
        return [edit.id for edit, is_taken in zip(edits, taken, strict=True) if not is_taken]

    def _edited(self, edit: Edit, found: Found, now: int) -> Draft | None:
        current = found.schedule
        if not edit.holds_for(current.version if current else None, current.created_at if current else None):
            return None
        draft = found.draft(self._desk, now)
        if edit.revoke is not None:
            _revoke(draft, edit, edit.revoke, [draft.find(job_id) for job_id in found.sights])
        made: list[str] = []
        if edit.is_removal:
            _remove(draft, edit.id, current)
        else:
            made = _add_jobs(draft, edit, found)
            after = schedule_after(edit, None if current is None else UNKNOWN_LAST, made)
            put_schedule(draft, after, current)
            if after.last != (LastRun() if current is None else UNKNOWN_LAST):
                draft.note(edit.id, pack_last(after.last))
        draft.keep_note(audit_after(edit, made))
        draft.erase(edit.id, edit.reopens)
        for skip in edit.skips:
            draft.record(of_skip(edit.id, skip))
        draft.notify("schedules")
        return draft

    # Deciding, upon what a schedule is.

    def decide(
        self, verb: str, entries: Sequence[tuple[Want, Any]], decide: Callable[..., Any], now: int | None
    ) -> list[Any]:
        """Survey, decide and commit, until every entry was decided on what still held; the answers in order."""
        answers: dict[int, Any] = {}
        for batch in _rounds(entries):
            left = list(batch)

            def turn(left: list[int] = left) -> bool:
                drafts = []
                at, found = self._survey([entries[number][0] for number in left], now)
                for number, one in zip(left, found, strict=True):
                    draft, answers[number] = decide(entries[number][1], one, at)
                    if draft is not None:
                        drafts.append((number, draft))
                held = self._desk.commit(verb, [draft for _, draft in drafts], is_work=True)
                left[:] = [number for (number, _), is_held in zip(drafts, held, strict=True) if not is_held]
                return not left

            self._desk.settle_down(turn)
        return [answers[number] for number in range(len(entries))]

    def _survey(self, wants: Sequence[Want], now: int | None) -> tuple[int, list[Found]]:
        """Schedules as they are at one instant."""
        number = sum(len(want.jobs) for want in wants if not want.places)
        reply = self._desk.link.call(
            "survey",
            now=text_of(now),
            is_work=True,
            schedules=[
                (
                    want.name,
                    want.ledger_from,
                    want.slots,
                    want.needs_live,
                    want.needs_soon,
                )
                for want in wants
            ],
            jobs=[job_id for want in wants for job_id in (*want.jobs, *want.known)],
            reserve=number,
        )
        answers, raw, base = reply.body
        sights = sights_of(raw)
        places = iter(range(base + 1, base + 1 + number))
        found = zip(wants, answers, strict=True)
        return reply.now, [
            Found(want, one, sights, iter(want.places) if want.places else places) for want, one in found
        ]

    # Reading.

    def get(self, ids: Sequence[str]) -> list[Schedule]:
        return _schedules_of(self._rows(ids=list(ids)))

    def page(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> Page[Schedule]:
        """By id, from the smallest index that has all of them; what that does not know is looked at and left out."""
        found: list[Schedule] = []
        indexes = _indexes_with(where)
        after, step = cursor, limit + 1
        while len(found) <= limit:
            rows = self._rows(indexes=indexes, after=after, limit=step)
            found += [schedule for schedule in _schedules_of(rows) if schedule_matches(schedule, where)]
            if len(rows) < step:
                break
            after, step = rows[-1][0].decode(), max(step, LONGEST_STEP)
        shown = found[:limit]
        return Page(shown, shown[-1].id if len(found) > limit else None)

    def _rows(self, **ask: Any) -> list[Any]:
        rows: list[Any] = self._desk.link.call("schedules", **ask).body
        return rows

    def due(self, limit: int, now: int | None) -> Due:
        """What is due; a schedule that cannot be read is kept out of the schedulers' way."""
        reply = self._desk.link.call("due", now=text_of(now), limit=limit)
        rows, following = reply.body
        schedules = []
        for name, packed, last in rows:
            schedule = None if packed is None else schedule_of(name.decode(), packed, last)
            if schedule is None or schedule.problem:
                self._set_aside(name.decode(), packed)
            else:
                schedules.append(schedule)
        return Due(now=reply.now, schedules=schedules, next_due_at=None if following is None else int(following))

    def _set_aside(self, name: str, packed: bytes | None) -> None:
        draft = Draft(self._desk, 0)
        draft.expect(["HGET", "schedule", name], packed)
        draft.write("ZREM", "dues", name)
        self._desk.commit("edit", [draft], is_work=False)


def _schedules_of(rows: list[Any]) -> list[Schedule]:
    return [schedule_of(name.decode(), packed, last) for name, packed, last in rows if packed is not None]


def _indexes_with(where: ScheduleFilter | None) -> list[str]:
    """The indexes that have all schedules that a filter shows; those of no tenant have none of their own."""
    tenant = where.tenant if where else None
    origin = where.origin if where else None
    indexes = [f"tenant:{tenant}"] if tenant else []
    return indexes + ([f"origin:{origin}"] if origin is not None else []) or ["names"]


def _indexes_of(schedule: Schedule | None) -> list[str]:
    """The indexes that a schedule is in for what it says."""
    if schedule is None:
        return []
    tenant = schedule.spec.tenant
    return [f"origin:{schedule.origin.name}", *([f"tenant:{tenant}"] if tenant else [])]


def _revoke(draft: Draft, edit: Edit, reason: str, found: list[Job | None]) -> None:
    """Cancel what the schedule's trigger made and nobody has started; what is yet to come goes without a trace."""
    made = [job for job in found if job and job.schedule_id == edit.id and job.fire_at]
    waiting = [job for job in made if job.state.is_waiting]
    draft.unmake([job for job in waiting if edit.unmakes(job)])
    draft.apply(cancel(job, draft.now, reason) for job in waiting if not edit.unmakes(job))
    draft.forget_notes(edit.id)


def _add_jobs(draft: Draft, edit: Edit, found: Found) -> list[str]:
    """The jobs that go with an edit; gives those that were made."""
    gone = {job.fire_at for job in map(found.was, found.sights) if job and edit.unmakes(job)}
    numbers = zip(edit.jobs, found.made, strict=True)
    fresh = [new for new, number in numbers if not number or new.fire_at in gone]
    return [added.id for new in fresh if not (added := draft.add(new, next(found.places))).existed]


def put_schedule(draft: Draft, schedule: Schedule, before: Schedule | None) -> None:
    draft.write("HSET", "schedule", schedule.id, binary(pack_schedule(schedule)))
    draft.write("ZADD", "names", 0, schedule.id)
    old, new = _indexes_of(before), _indexes_of(schedule)
    for index in old:
        if index not in new:
            draft.write("ZREM", index, schedule.id)
    for index in new:
        if index not in old or (before is not None and before.problem):  # what cannot be read does not tell where it is
            draft.write("ZADD", index, 0, schedule.id)
    if schedule.due_at is None:
        draft.write("ZREM", "dues", schedule.id)
    else:
        draft.write("ZADD", "dues", schedule.due_at, schedule.id)


def _remove(draft: Draft, name: str, before: Schedule | None) -> None:
    for index in _indexes_of(before):
        draft.write("ZREM", index, name)
    draft.write("HDEL", "schedule", name)
    draft.write("ZREM", "names", name)
    draft.write("ZREM", "dues", name)
    draft.write("UNLINK", f"last:{name}")
    draft.write("UNLINK", f"ledger:{name}")


def _ledger_start(edit: Edit) -> int:
    """Where the end of the ledger begins that an edit's skips may touch."""
    return min((skip.after_at for skip in edit.skips), default=edit.after.fired_through)


def _rounds(entries: Sequence[tuple[Want, Any]]) -> list[list[int]]:
    """Numbers of entries in batches in which each schedule occurs once: a second entry follows the first."""
    rounds: list[dict[str, int]] = []
    for number, (want, _) in enumerate(entries):
        free = next((one for one in rounds if want.name not in one), None)
        if free is None:
            free = {}
            rounds.append(free)
        free[want.name] = number
    numbers = [list(one.values()) for one in rounds]
    return [some[start : start + MOST_AT_ONCE] for some in numbers for start in range(0, len(some), MOST_AT_ONCE)]
