"""Filters as conditions of SQL, for the stores that keep tables. `?` stands for a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.store.shared.matching import audit_position

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.contract import AuditFilter, ScheduleFilter


class Conditions(NamedTuple):
    """What follows WHERE, and its values."""

    text: str
    values: list[Any]


def all_of(wanted: Iterable[tuple[str, Any]]) -> Conditions:
    """The conditions whose value is asked for, all of which must hold."""
    chosen = [(condition, value) for condition, value in wanted if value is not None]
    return Conditions(" AND ".join(condition for condition, _ in chosen) or "TRUE", [value for _, value in chosen])


def audit_conditions(where: AuditFilter, cursor: str | None) -> Conditions:
    """Which audit records a page shows; it is ordered by time and id, the last first."""
    asked = all_of((("subject = ?", where.subject), ("at >= ?", where.since), ("at < ?", where.until)))
    if cursor is None:
        return asked
    return Conditions(f"{asked.text} AND (at, id) < (?, ?)", [*asked.values, *audit_position(cursor)])


def schedule_conditions(where: ScheduleFilter | None, cursor: str | None) -> Conditions:
    """Which schedules a page shows; it is ordered by id."""
    tenant, origin = (None, None) if where is None else (where.tenant, where.origin)
    return all_of((("tenant = ?", tenant), ("origin_name = ?", origin), ("id > ?", cursor or "")))
