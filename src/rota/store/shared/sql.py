"""What the stores that keep tables share of SQL: how they run statements, and filters as conditions.

In a statement that both run, `{ns}.` stands in front of each table, `?` for a value, and `= ANY(?)` compares with each
value of a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rota.store.shared.matching import audit_position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.store.contract import AuditFilter, ScheduleFilter

    Row = tuple[Any, ...]
    Select = Callable[[str, Sequence[Any]], list[Row]]  # reads by one statement


class Tables(Protocol):
    """A transaction on one namespace's tables."""

    def rows(self, statement: str, values: Sequence[Any] = (), /) -> list[Row]:
        """What a statement finds."""

    def run(self, statement: str, values: Sequence[Any] = (), /) -> int:
        """Run a statement; returns how many rows it affected."""

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]], /) -> int:
        """Run a statement for each row; returns how many rows they affected together."""

    def insert(self, table: str, types: Mapping[str, str], rows: Iterable[Row], tail: str = "", /) -> int:
        """Insert rows, whose columns have these types; returns how many were inserted."""


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


def schedule_conditions(where: ScheduleFilter | None, cursor: str | None, no_tenant: str | None) -> Conditions:
    """Which schedules a page shows; it is ordered by id. `no_tenant` stands for none in the table."""
    tenant, origin = (None, None) if where is None else (where.tenant, where.origin)
    of_tenant = "coalesce(tenant, '') = ?" if tenant == "" and no_tenant is None else "tenant = ?"
    return all_of(((of_tenant, tenant), ("origin_name = ?", origin), ("id > ?", cursor or "")))
