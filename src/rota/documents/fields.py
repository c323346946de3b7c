"""Names the fields that make a document a job, and reads and writes dotted paths in plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rota.errors import BadOption, PathThroughList
from rota.model.field_path import check_path

if TYPE_CHECKING:
    from collections.abc import MutableMapping


class _Missing:
    """Stands for a field that the document does not have. A field that holds null is there."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of a document for its schedule and its lock. Dots lead into nested documents: "job.sleepUntil".

    The lock has two fields of its own, so that the schedule stays readable while a document runs. An owner who can
    allow no more than the four fields of the schedule writes `Fields.four()`: the lock is then a time in `sleep_until`.
    """

    sleep_until: str = "sleepUntil"
    interval: str = "interval"
    repeat_until: str = "repeatUntil"
    auto_remove: str = "autoRemove"
    locked_until: str | None = "lockedUntil"
    locked_by: str | None = "lockedBy"

    @classmethod
    def four(
        cls,
        *,
        sleep_until: str = "sleepUntil",
        interval: str = "interval",
        repeat_until: str = "repeatUntil",
        auto_remove: str = "autoRemove",
    ) -> Fields:
        """The four fields of a schedule and no more."""
        return cls(
            sleep_until=sleep_until,
            interval=interval,
            repeat_until=repeat_until,
            auto_remove=auto_remove,
            locked_until=None,
            locked_by=None,
        )

    def __post_init__(self) -> None:
        paths = [path for path in self._paths() if path is not None]
        for path in paths:
            check_path(path)
        if (self.locked_until is None) != (self.locked_by is None):
            raise BadOption(
                f"locked_until={self.locked_until!r} and locked_by={self.locked_by!r} belong together; "
                "name both, or write Fields.four() for neither"
            )
        for path in paths:
            if any(other == path or other.startswith(f"{path}.") for other in paths if other is not path):
                raise BadOption(f"two fields share the path {path!r}; each needs its own")

    @property
    def has_lock(self) -> bool:
        """Whether the lock has fields of its own."""
        return self.locked_until is not None

    @property
    def parents(self) -> list[str]:
        """The paths above the fields: "job.at" -> job. With a list there, a field would name many values."""
        return _parents(self._paths())

    @property
    def lock_parents(self) -> list[str]:
        """The paths above the lock. A lock that is written under a plain value would replace it."""
        return _parents([self.locked_until, self.locked_by])

    def are_blocked_in(self, document: Mapping[str, Any]) -> bool:
        """Whether `document` does not run: a list leads to a field, or a plain value to the lock."""
        found = [_found(document, parent) for parent in self.parents]
        locks = [_found(document, parent) for parent in self.lock_parents]
        return any(isinstance(one, list) for one in found) or any(
            one is not None and one is not MISSING and not isinstance(one, Mapping) for one in locks
        )

    def _paths(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


def prefixes(path: str) -> list[str]:
    """The path and those above it: "a.b.c" -> a, a.b, a.b.c."""
    parts = path.split(".")
    return [".".join(parts[: number + 1]) for number in range(len(parts))]


def _parents(paths: list[str | None]) -> list[str]:
    found = [prefixes(path)[:-1] for path in paths if path is not None]
    return list(dict.fromkeys(parent for some in found for parent in some))


def _found(document: Mapping[str, Any], path: str) -> Any:
    """The value at a path; a list if one is on the way."""
    try:
        return get_path(document, path)
    except PathThroughList:
        return []


def get_path(document: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, or MISSING. PathThroughList if a list is on the way."""
    value: Any = document
    for part in path.split("."):
        if isinstance(value, list):
            raise PathThroughList(f"the path {path!r} leads through a list in this document")
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value


def set_path(document: MutableMapping[str, Any], path: str, value: Any) -> None:
    """Write a value at a dotted path; documents on the way are made, also in place of null."""
    *parents, name = path.split(".")
    for parent in parents:
        if document.get(parent) is None:
            document[parent] = {}
        document = document[parent]
    document[name] = value


def unset_path(document: MutableMapping[str, Any], path: str) -> None:
    """Remove a field, if it is there."""
    *parents, name = path.split(".")
    for parent in parents:
        document = document.get(parent, {})
    document.pop(name, None)
