"""The page about stores: what each can do, as its Features say. A store that is not there yet is left out."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING

from rota.store.contract import Features, Store
from tools.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

STORES = ("memory", "sqlite", "redis", "postgres", "mongo")

SENTENCES = {
    "is_durable": "Jobs outlive the process that accepted them on {able}; what {unable} holds ends with it.",
    "is_shared": (
        "Any number of processes work on {able} at once (`sqlite`: on one machine, the others: on many); {unable} "
        "belongs to one process, so commands such as `rota jobs list` cannot look into it."
    ),
    "enqueues_in_transactions": (
        "On {able} a job can be enqueued, and a running one ended, in the caller's own transaction: both happen, or "
        "neither. On {unable} that is refused with a clear error."
    ),
    "counters_are_exact": (
        "The numbers of jobs per queue are right at every moment on {able}. On {unable} a process that is killed may "
        "leave them wrong by its last batch until upkeep has counted again; jobs are never affected."
    ),
    "has_lease_clock": (
        "On {able} leases and locks use the host's boot clock, which cannot be set. On {unable} they use the "
        "store's clock; if that clock was ahead and is corrected, Rota shortens them."
    ),
    "clock_step": "The clock counts microseconds on {able} and milliseconds on {unable}.",
}
FINE = 1  # microsecond: a step of a clock that is worth no word


def feature_page() -> str:
    found = list(_features())
    fields = [field for field in Features.__struct_fields__ if field != "kind"]
    words = _words()
    rows = [[words[field], *(_word(getattr(one, field)) for one in found)] for field in fields]
    return "\n\n".join(
        [
            "# What stores differ in",
            "One suite of tests (`rota.testing.store_suite`) checks all stores. This page lists what may differ.",
            table(["", *(f"`{one.kind}`" for one in found)], rows),
            "In words:",
            "\n".join(f"- {_sentence(field, found)}" for field in fields),
        ]
    )


def _sentence(field: str, found: list[Features]) -> str:
    """What a row means to somebody who has to choose."""
    able = [f"`{one.kind}`" for one in found if getattr(one, field) == FINE]  # and True is as good as one
    unable = [f"`{one.kind}`" for one in found if getattr(one, field) != FINE]
    return SENTENCES[field].format(able=_listed(able), unable=_listed(unable))


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or "none"


def _words() -> dict[str, str]:
    """Each field in the words of the comment beside it."""
    source = inspect.getsource(Features)
    beside = dict(re.findall(r"^ +(\w+): .*?# (.+)$", source, re.MULTILINE))
    return {field: _phrase(field, beside.get(field, "")) for field in Features.__struct_fields__}


def _phrase(field: str, comment: str) -> str:
    plain = field.replace("_", " ")
    if comment.startswith("False: "):
        return f"{plain} (no: {comment.removeprefix('False: ')})"
    return comment or plain


def _features() -> Iterator[Features]:
    for name in STORES:
        found = _store_class(f"rota.store.{name}") or _store_class(f"rota.store.{name}.store")
        features = getattr(found, "features", None)
        if isinstance(features, Features):
            yield features


def _store_class(name: str) -> type[Store] | None:
    try:
        module = import_module(name)
    except ImportError:  # its driver is not installed, or it is being written
        return None
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, Store)]
    return next((kind for kind in kinds if kind is not Store), None)


def _word(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
