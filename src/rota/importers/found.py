"""Defines what an importer returns: the old system's item, and the schedule that does the same, or why none does."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.errors import BadPayload, RotaError
from rota.model.jobs.payload import REDACTED, Call, pack_call
from rota.model.names import check_name
from rota.model.schedules.schedule import ScheduleSpec
from rota.operations.specs import make_spec
from rota.tasks.task import NOTHING_ELSE, Request, TaskOptions
from rota.triggers import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rota.tasks.task import Registry

SHOWN_RUNS = 3
MOST_CHARACTERS = 5_000_000  # of a call's arguments, each value counted as one more
DEEPEST = 100  # lists in lists


class UnsupportedItem(Exception):
    """Why an item cannot become a schedule. The text is for the person who imports it."""


class Found(Struct, frozen=True, kw_only=True):
    """One item as its own system has it. Each importer adds the fields of its system."""

    name: str  # what the old system calls it
    old_text: str  # its rule and its work, in the old system's own words


class Item(Struct, frozen=True, kw_only=True):
    """One item after its translation."""

    id: str
    name: str
    old_text: str
    spec: ScheduleSpec | None = None  # None: Rota has no such schedule
    reason: str = ""  # why there is no spec
    warnings: tuple[str, ...] = ()
    old_runs: tuple[datetime, ...] | None = None  # by the old system's rules; None: they are not known here
    pause: tuple[str, datetime | None] | None = None  # why it is paused there, and until when


class Wanted(Struct, frozen=True, kw_only=True):
    """A schedule of Rota before its task is looked up: the result of a translation."""

    task: str
    trigger: Trigger
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    options: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()


class Tasks:
    """Finds the task of Rota for a name of the old system."""

    def __init__(self, registry: Registry, names: Mapping[str, str] | None = None) -> None:
        self._registry = registry
        self._names = names or {}
        self._used: set[str] = set()

    @property
    def unused(self) -> list[str]:
        """The names that no item has had so far."""
        return [name for name in self._names if name not in self._used]

    def spec(self, wanted: Wanted, tz: str) -> tuple[ScheduleSpec, tuple[str, ...]]:
        """The definition, and notes about its task; UnsupportedItem names what does not fit."""
        name = self._names.get(wanted.task, wanted.task)
        self._used.add(wanted.task)
        check_size(name, [wanted.args, wanted.kwargs])
        try:
            check_name("task", name)
            request, warnings = self._request(name, wanted)
            spec = make_spec(wanted.trigger, request, default_tz=tz, **wanted.options)
        except BadPayload as err:
            more = "; write the file with `rota export --with-secrets --to FILE`" if REDACTED in str(err) else ""
            raise UnsupportedItem(f"{err}{more}") from err
        except RotaError as err:
            raise UnsupportedItem(str(err)) from err
        return spec, (*wanted.warnings, *warnings)

    def _request(self, name: str, wanted: Wanted) -> tuple[Request, tuple[str, ...]]:
        task = self._registry.find(name)
        if task is not None:
            return task.request(tuple(wanted.args), wanted.kwargs, NOTHING_ELSE), ()
        payload = pack_call(Call(wanted.args, wanted.kwargs), what=name)
        unknown = (
            f"the app has no task {name!r}; declare it with @app.task(name={name!r}), or rename it with --map FILE"
        )
        return Request(name, payload, TaskOptions()), (unknown,) if len(self._registry) else ()


def distinct(ids: Iterable[str], joint: str = "-") -> list[str]:
    """The ids in their order; a repeated one gets a number, so that every item has its own."""
    wanted = list(ids)
    taken, counts = set(wanted), Counter[str]()
    found = []
    for name in wanted:
        counts[name] += 1
        own = name
        while counts[name] > 1 and (own := f"{name}{joint}{counts[name]}") in taken:
            counts[name] += 1  # another item is called so by itself
        taken.add(own)
        found.append(own)
    return found


def check_size(name: str, values: object) -> None:
    """UnsupportedItem, if values are nested without end, or would be far too long as text.

    A few bytes of YAML or of a pickle can stand for very many values: one value may stand in several places.
    """
    left, stack = MOST_CHARACTERS, [(values, 0)]
    while stack:
        value, depth = stack.pop()
        left -= 1 + (len(value) if isinstance(value, str | bytes | bytearray) else 0)
        if left < 0 or depth > DEEPEST:
            raise UnsupportedItem(f"the arguments of {name} are too long or too deeply nested to be kept")
        if isinstance(value, dict):
            stack.extend((one, depth + 1) for pair in value.items() for one in pair)
        elif isinstance(value, list | tuple | set | frozenset):
            stack.extend((one, depth + 1) for one in value)
