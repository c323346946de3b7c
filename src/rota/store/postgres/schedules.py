"""Schedules as rows: edited under their version, found when due by the index alone, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.edit import audit_after, schedule_after
from rota.model.occurrence import of_skip
from rota.model.settle import cancel
from rota.store.contract import Due, Page
from rota.store.postgres.codec import (
    FOUND_BY,
    SCHEDULE_COLUMNS,
    SCHEDULE_TYPES,
    last_of,
    row_of_schedule,
    schedule_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.edit import Edit
    from rota.model.schedule import LastRun, Schedule
    from rota.store.contract import ScheduleFilter
    from rota.store.postgres.adding import Adder
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.job_rows import JobRows
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.records import Notes
    from rota.store.postgres.transaction import Row, Transaction

Guard = tuple[int, int, "LastRun"]  # version, created_at, last

_COLUMNS = f"{SCHEDULE_COLUMNS}, {FOUND_BY}"
_MARKS = ", ".join(["%s"] * len(_COLUMNS.split(", ")))
_SETS = ", ".join(f"{name} = w.{name}" for name in _COLUMNS.split(", "))
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in SCHEDULE_TYPES)
_UPDATE = f"UPDATE {{ns}}.schedule s SET {_SETS} FROM unnest({_ARRAYS}) AS w ({_COLUMNS}) WHERE s.id = w.id"


class Schedules:
    """One namespace's schedules."""

    def __init__(self, jobs: JobRows, adder: Adder, changer: Changer, ledger: Ledger, notes: Notes) -> None:
        self._jobs = jobs
        self._adder = adder
        self._changer = changer
        self._ledger = ledger
        self._notes = notes

    def edit(self, tx: Transaction, edits: Sequence[Edit], now: int) -> list[str]:
        """Apply edits, each whole, or not at all where the version has moved on; the ids of those refused.

        However many they are, the schedules are written at once, and so are their notes.
        """
        current = self.guards(tx, [edit.id for edit in edits])
        new = self._create(tx, [edit for edit in edits if edit.id not in current and edit.expect_version == 0])
        batch = Batch(current, new)
        refused = [edit.id for edit in edits if not self._take(tx, edit, batch, now)]
        self.update(tx, list(batch.after.values()))
        self._notes.add(tx, batch.notes)
        return refused

    def _take(self, tx: Transaction, edit: Edit, batch: Batch, now: int) -> bool:
        """Apply one edit, or say that it no longer holds."""
        guard = batch.current.get(edit.id)
        if guard is None and edit.expect_version == 0:
            if batch.new.get(edit.id) is not edit and edit.id not in self._create(tx, [edit]):
                return False  # somebody else makes it at this moment
        elif not edit.holds_for(*(guard[:2] if guard else (None, None))):
            return False
        else:
            self._clear_way(tx, edit, batch, now)
        made = self._follow(tx, edit, now)
        if not edit.is_removal:
            batch.put(edit, schedule_after(edit, guard[2] if guard else None, made))
        audit = audit_after(edit, made)
        batch.notes += [audit] if audit else []
        return True

    def guards(self, tx: Transaction, ids: Sequence[str]) -> dict[str, Guard]:
        """What an edit or a firing must have been decided on, locked until the transaction ends."""
        rows = tx.rows(
            "SELECT id, version, created_at, last FROM {ns}.schedule WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
            (sorted(set(ids)),),
        )
        return {name: (version, created_at, last_of(last)) for name, version, created_at, last in rows}

    def update(self, tx: Transaction, schedules: Sequence[Schedule]) -> None:
        if schedules:
            columns = zip(*(row_of_schedule(schedule) for schedule in schedules), strict=True)
            tx.run(_UPDATE, [list(column) for column in columns])

    def take(self, tx: Transaction, ids: Sequence[str]) -> list[Schedule]:
        """Those of the schedules that nobody else has locked, locked until the transaction ends."""
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE id = ANY(%s) ORDER BY id FOR UPDATE SKIP LOCKED"
        return [schedule_of(row) for row in tx.rows(query, (list(ids),))]

    def get(self, tx: Transaction, ids: Sequence[str]) -> list[Schedule]:
        rows = tx.rows(f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE id = ANY(%s)", (list(ids),))
        found = {row[0]: row for row in rows}
        return [schedule_of(found[name]) for name in ids if name in found]

    def page(self, tx: Transaction, where: ScheduleFilter, cursor: str | None, limit: int) -> Page[Schedule]:
        query, values = found_by(where, cursor, limit + 1)
        found = [schedule_of(row) for row in tx.rows(query, values)]
        shown = found[:limit]
        return Page(shown, shown[-1].id if len(found) > limit else None)

    def due(self, tx: Transaction, limit: int, now: int | None) -> tuple[Due, list[tuple[str, str]]]:
        """What is due, in order, and when the next is; and the rows that cannot be read, with the reason."""
        rows = tx.rows(
            f"SELECT clock.now, s.* FROM (SELECT coalesce(%s::bigint, {{ns}}.micros()) AS now) clock LEFT JOIN LATERAL "
            f"(SELECT due_at, {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE due_at IS NOT NULL "
            "ORDER BY due_at, id LIMIT %s) s ON true",
            (now, limit + 1),
        )
        at = rows[0][0]
        waiting = [row[1:] for row in rows if row[1] is not None]
        is_due = [row for row in waiting[:limit] if row[0] <= at]
        following = waiting[len(is_due)][0] if len(waiting) > len(is_due) else None
        schedules, broken = _readable([row[1:] for row in is_due])
        return Due(now=at, schedules=schedules, next_due_at=following), broken

    def set_aside(self, tx: Transaction, broken: Sequence[tuple[str, str]]) -> None:
        """Schedules that cannot be read are never due again, and say why."""
        tx.run_many(
            "UPDATE {ns}.schedule SET due_at = NULL, problem = %s WHERE id = %s",
            [(problem, name) for name, problem in sorted(broken)],
        )

    def _create(self, tx: Transaction, edits: Sequence[Edit]) -> dict[str, Edit]:
        """Insert new schedules, the first of each name; of two who make the same one, the other is refused."""
        first: dict[str, Edit] = {}
        for edit in edits:
            if not edit.is_removal:
                first.setdefault(edit.id, edit)
        if not first:
            return {}
        rows = [row_of_schedule(first[name].after) for name in sorted(first)]
        made = self._insert(tx, rows)
        return {name: edit for name, edit in first.items() if name in made}

    def _insert(self, tx: Transaction, rows: Sequence[Row]) -> set[str]:
        made: set[str] = set()
        for start in range(0, len(rows), 100):
            chunk = rows[start : start + 100]
            marks = ", ".join([f"({_MARKS})"] * len(chunk))
            found = tx.rows(
                f"INSERT INTO {{ns}}.schedule ({_COLUMNS}) VALUES {marks} ON CONFLICT (id) DO NOTHING RETURNING id",
                [value for row in chunk for value in row],
            )
            made |= {name for (name,) in found}
        return made

    def _clear_way(self, tx: Transaction, edit: Edit, batch: Batch, now: int) -> None:
        """What an edit ends: the jobs that it revokes, none of which was a run, and the schedule that it removes."""
        if edit.revoke is not None:
            self._revoke(tx, edit, edit.revoke, now)
        if edit.is_removal:
            batch.drop(edit.id)
            tx.run("DELETE FROM {ns}.schedule WHERE id = %s", (edit.id,))
            self._ledger.forget(tx, edit.id)

    def _revoke(self, tx: Transaction, edit: Edit, reason: str, now: int) -> None:
        """Cancel what waits; what was made ahead of its time goes without a trace."""
        waiting = self._jobs.waiting_of(tx, edit.id)
        self._changer.unmake(tx, [job for job in waiting if edit.unmakes(job)], now)
        cancels = [(cancel(job, now, reason), job) for job in waiting if not edit.unmakes(job)]
        self._changer.apply(tx, cancels, now)

    def _follow(self, tx: Transaction, edit: Edit, now: int) -> list[str]:
        """What goes with an edit; gives the jobs that were made."""
        self._ledger.erase(tx, edit.id, edit.reopens)
        self._ledger.record(tx, [of_skip(edit.id, skip) for skip in edit.skips])
        if not edit.jobs:
            return []
        made = self._jobs.made(tx, [(edit.id, job.fire_at) for job in edit.jobs if job.fire_at is not None])
        fresh = [job for job in edit.jobs if (edit.id, job.fire_at) not in made]
        return [added.id for added in self._adder.add(tx, fresh, now) if not added.existed]


class Batch:
    """What a call's edits come to."""

    def __init__(self, current: dict[str, Guard], new: dict[str, Edit]) -> None:
        self.current = current  # the schedules as they are by now
        self.new = new  # the edits that have made theirs
        self.after: dict[str, Schedule] = {}  # to be written when all are through
        self.notes: list[AuditRecord] = []

    def put(self, edit: Edit, after: Schedule) -> None:
        """What an edit leaves; what was inserted as it is needs no other write."""
        self.current[edit.id] = (after.version, after.created_at, after.last)
        if edit.expect_version or after != edit.after:
            self.after[edit.id] = after

    def drop(self, schedule_id: str) -> None:
        self.current.pop(schedule_id, None)
        self.after.pop(schedule_id, None)


def found_by(where: ScheduleFilter, cursor: str | None, limit: int) -> tuple[str, list[Any]]:
    """The query for the schedules that a filter shows, by id; each index gives them in that order."""
    wanted = {"tenant": where.tenant, "origin_name": where.origin}
    given = {column: text_of(value) for column, value in wanted.items() if value is not None}
    conditions = [f"{column} = %s" for column in given]
    if where.tenant:
        conditions.append("tenant <> ''")  # as the index says it
    clause = " AND ".join([*conditions, "id > %s"])
    query = f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE {clause} ORDER BY id LIMIT %s"
    return query, [*given.values(), cursor or "", limit]


def _readable(rows: Sequence[Row]) -> tuple[list[Schedule], list[tuple[str, str]]]:
    schedules = [schedule_of(row) for row in rows]
    broken = [(schedule.id, schedule.problem) for schedule in schedules if schedule.problem]
    return [schedule for schedule in schedules if not schedule.problem], broken
