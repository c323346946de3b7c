"""Defines what differs between SQL databases: how a field is read, compared and written, and how rows are locked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rota.model.micros import datetime_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from rota.documents.contract import Finding

Row = dict[str, Any]


class Selected(NamedTuple):
    """The reply to a query: the names of its columns, and its rows."""

    names: list[str]
    rows: list[tuple[Any, ...]]


class Names(NamedTuple):
    """What a table must have: a key, columns of the owner's condition, and the paths of the schedule's fields."""

    key: str
    columns_of_condition: Sequence[str]
    times: Sequence[str]
    others: Sequence[str]
    flag: str  # the one of them that is true or false

    def columns(self) -> list[str]:
        paths = [path.split(".")[0] for path in (*self.times, *self.others)]
        return list(dict.fromkeys([self.key, *self.columns_of_condition, *paths]))


def split_path(path: str) -> tuple[str, list[str]]:
    """A column, and the path into its JSON, if there is one."""
    column, *inner = path.split(".")
    return column, inner


def parents(paths: Sequence[str]) -> list[tuple[str, ...]]:
    """The objects that must be there before values are set in them, outer ones first."""
    found = {
        tuple(inner[:length]) for path in paths for inner in [split_path(path)[1]] for length in range(1, len(inner))
    }
    return sorted(found, key=lambda parent: (len(parent), parent))


class Session(ABC):
    """One connection, for one query or for one transaction."""

    now: int  # the server's clock when the transaction began

    @abstractmethod
    def select(self, sql: str, params: Sequence[Any] = ()) -> Selected: ...

    @abstractmethod
    def run(self, sql: str, params: Sequence[Any] = ()) -> None: ...

    @abstractmethod
    def run_many(self, sql: str, params: Sequence[Sequence[Any]]) -> None:
        """One statement for several rows."""


class Database(ABC):
    """Where the table is."""

    @abstractmethod
    def now(self) -> int: ...

    @abstractmethod
    def read(self) -> AbstractContextManager[Session]:
        """For queries without a transaction."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Session]:
        """One transaction, in which no other caller changes the rows that were selected to be locked."""

    @abstractmethod
    def close(self) -> None: ...


class Dialect(ABC):
    """The SQL of one table. Names are data: every one is quoted."""

    mark: ClassVar[str]  # of a parameter
    name: str  # of the table, for people
    misfits: ClassVar[tuple[type[Exception], ...]] = ()  # raised for an id that the key's column cannot hold
    times_are: str  # what the owner may write as a time, as advice

    @abstractmethod
    def quote(self, name: str) -> str: ...

    @abstractmethod
    def table(self) -> str: ...

    @abstractmethod
    def side_table(self) -> str: ...

    @abstractmethod
    def id_text(self) -> str:
        """An expression for an id as text; it differs for different ids of any type."""

    @abstractmethod
    def lock_rows(self, *, skips: bool) -> str:
        """The end of a query whose rows are locked; `skips`: rows that another caller has locked are left out."""

    @abstractmethod
    def read(self, path: str) -> str:
        """An expression for the value of a field."""

    @abstractmethod
    def sortable(self, path: str) -> str:
        """An expression for a time that can be indexed and compared; null if the field holds no time."""

    @abstractmethod
    def bound(self, path: str, at: int) -> Any:
        """An instant as `sortable` shows it."""

    @abstractmethod
    def micros(self, path: str, value: Any) -> int | None:
        """The instant that the value of a field is; None if it is none."""

    def instant(self, path: str, value: Any) -> Any:
        """The same as a datetime; a value that is no time stays as it is."""
        at = self.micros(path, value)
        return value if at is None else datetime_of(at)

    @abstractmethod
    def stored(self, path: str, at: int, like: Any) -> int:
        """The nearest instant that the field can hold in the form of the time that stood there: not earlier."""

    @abstractmethod
    def value(self, path: str, at: int, like: Any) -> Any:
        """An instant as the field holds it, in the form of the time that stood there."""

    def assignments(self, paths: Sequence[str], *, frees: Sequence[str] = ()) -> tuple[str, list[str]]:
        """The SET clause, and the paths in the order of its parameters; `frees` are fields that are taken away."""
        clauses, order = [], []
        for column in dict.fromkeys(split_path(path)[0] for path in (*paths, *frees)):
            mine = [path for path in paths if split_path(path)[0] == column]
            freed = [path for path in frees if split_path(path)[0] == column]
            clauses.append(f"{self.quote(column)} = {self.new_value(column, mine, freed)}")
            order += mine
        return ", ".join(clauses), order

    @abstractmethod
    def new_value(self, column: str, paths: list[str], frees: list[str]) -> str:
        """An expression for a column in which these fields are set, by one parameter each, and those are freed."""

    @property
    def key_mark(self) -> str:
        """The mark of a parameter that is an id."""
        return self.mark

    def key_value(self, given: Any) -> Any:
        """An id as a parameter."""
        return given

    # What a table needs.

    @abstractmethod
    def has_side_table(self, session: Session) -> bool: ...

    @abstractmethod
    def create_side_table(self, session: Session) -> None: ...

    @abstractmethod
    def faults(self, session: Session, names: Names) -> list[Finding]:
        """What is wrong with the table and its columns, so that nothing can be asked of it."""

    def blocks_on_the_way(self, path: str, *, is_lock: bool) -> list[tuple[str, str]]:
        """Parts of a path into JSON, each with an expression that is true where it is a list; of a lock's path, where
        it is a plain value, too."""
        column, inner = split_path(path)
        test = "NOT IN ('object', 'null')" if is_lock else "= 'array'"
        parts = [inner[:length] for length in range(len(inner))]
        return [(".".join([column, *part]), self.json_type_is(column, part, test)) for part in parts]

    @abstractmethod
    def json_type_is(self, column: str, inner: Sequence[str], test: str) -> str:
        """An expression that tests the type of what a path into a column of JSON leads to."""

    @abstractmethod
    def sorts_by_index(self, session: Session, sql: str, params: Sequence[Any]) -> bool:
        """Whether the server finds and sorts the rows of a query by an index."""

    @abstractmethod
    def create_index(self, name: str, columns: Sequence[str]) -> str:
        """The command that makes an index."""
