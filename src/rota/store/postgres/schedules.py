"""Schedules as rows: edited under their version, found when due by the index alone, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.occurrence import of_skip
from rota.model.settle import cancel
from rota.store.contract import Due, Page
from rota.store.postgres.rows import SCHEDULE_COLUMNS, SCHEDULE_TYPES, last_of, row_of_schedule, schedule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.edit import Edit
    from rota.model.schedule import LastRun, Schedule
    from rota.store.postgres.adding import Adding
    from rota.store.postgres.changes import Changes
    from rota.store.postgres.jobs import Jobs
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.transaction import Row, Transaction

Guard = tuple[int, int, "LastRun"]  # version, created_at, last

_COLUMNS = f"{SCHEDULE_COLUMNS}, due_at"
_MARKS = ", ".join(["%s"] * len(_COLUMNS.split(", ")))
_SETS = ", ".join(f"{name} = w.{name}" for name in _COLUMNS.split(", "))
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in SCHEDULE_TYPES)
_UPDATE = f"UPDATE {{ns}}.schedule s SET {_SETS} FROM unnest({_ARRAYS}) AS w ({_COLUMNS}) WHERE s.id = w.id"


class Schedules:
    """One namespace's schedules."""

    def __init__(self, jobs: Jobs, adding: Adding, changes: Changes, ledger: Ledger) -> None:
        self._jobs = jobs
        self._adding = adding
        self._changes = changes
        self._ledger = ledger

    def edit(self, tx: Transaction, edits: Sequence[Edit], now: int) -> list[str]:
        """Apply edits, each whole, or not at all where the version has moved on; the ids of those refused."""
        current = self.guards(tx, [edit.id for edit in edits])
        new = self._create(tx, [edit for edit in edits if edit.id not in current and edit.expect_version == 0])
        refused: list[str] = []
        for edit in edits:
            if edit.id not in current and edit.expect_version == 0:
                made = edit if new.get(edit.id) is edit else self._create(tx, [edit]).get(edit.id)
                if made is None:
                    refused.append(edit.id)  # somebody else makes it at this moment
                    continue
                current[edit.id] = (edit.after.version, edit.after.created_at, edit.after.last)
                self._follow(tx, edit, now)
            elif not edit.holds_for(*(current[edit.id][:2] if edit.id in current else (None, None))):
                refused.append(edit.id)
            else:
                self._change(tx, edit, current, now)
        return refused

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

    def get(self, tx: Transaction, ids: Sequence[str]) -> list[Schedule]:
        rows = tx.rows(f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE id = ANY(%s)", (list(ids),))
        found = {row[0]: row for row in rows}
        return [schedule_of(found[name]) for name in ids if name in found]

    def page(self, tx: Transaction, cursor: str | None, limit: int) -> Page[Schedule]:
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE id > %s ORDER BY id LIMIT %s"
        found = [schedule_of(row) for row in tx.rows(query, (cursor or "", limit + 1))]
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

    def _change(self, tx: Transaction, edit: Edit, current: dict[str, Guard], now: int) -> None:
        if edit.revoke is not None:
            waiting = self._jobs.waiting_of(tx, edit.id)
            self._changes.apply(tx, [(cancel(job, now, edit.revoke), job) for job in waiting], now)
        if edit.is_removal:
            tx.run("DELETE FROM {ns}.schedule WHERE id = %s", (edit.id,))
            self._ledger.forget(tx, edit.id)
            current.pop(edit.id, None)
        elif edit.id in current:
            last = current[edit.id][2]  # as it was: what is revoked here is no run
            current[edit.id] = (edit.after.version, edit.after.created_at, last)
            self.update(tx, [msgspec.structs.replace(edit.after, last=last)])
        self._follow(tx, edit, now)

    def _follow(self, tx: Transaction, edit: Edit, now: int) -> None:
        """What goes with an edit."""
        self._ledger.record(tx, [of_skip(edit.id, skip) for skip in edit.skips])
        if edit.jobs:
            self._adding.add(tx, edit.jobs, now)


def _readable(rows: Sequence[Row]) -> tuple[list[Schedule], list[tuple[str, str]]]:
    schedules = [schedule_of(row) for row in rows]
    broken = [(schedule.id, schedule.problem) for schedule in schedules if schedule.problem]
    return [schedule for schedule in schedules if not schedule.problem], broken
