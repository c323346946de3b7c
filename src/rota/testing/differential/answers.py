"""Reduces an answer of a store to what all stores must agree on, and finds where two answers differ.

Positions, log numbers and cursors are each store's own. Everything else must be the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.model.jobs.job import Job
from rota.store.contract import Exchanged, LogLine, Page, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence


class Raised(Struct, frozen=True):
    """An error as an answer: its class must be the same, its text may differ."""

    error: str


def comparable(reply: Any) -> Any:
    """A reply without what may differ between stores."""
    match reply:
        case Job():
            return msgspec.structs.replace(reply, seq=0)
        case Exchanged():
            refused = comparable(reply.refused)
            return msgspec.structs.replace(reply, claimed=comparable(reply.claimed), refused=refused)
        case [Refusal(), *_]:
            return sorted(reply, key=lambda refusal: (refusal.id, refusal.why))  # who was refused counts, in any order
        case Page():
            return {"items": comparable(reply.items), "has_more": reply.cursor is not None}
        case list():
            return [comparable(item) for item in reply]
        case _:
            return reply


def comparable_expired(jobs: Sequence[Job], limit: int) -> Any:
    """The longest expired first. The order of those that expired together is open, and so is which are cut off."""
    if len(jobs) == limit:
        return [job.lease_until for job in jobs]
    return comparable(sorted(jobs, key=lambda job: (job.lease_until, job.id)))


def comparable_lines(lines: Sequence[LogLine]) -> Any:
    """Lines with their numbers left out, which need only rise."""
    rises = all(before.number < after.number for before, after in pairwise(lines))
    return {"rises": rises, "lines": [msgspec.structs.replace(line, number=0) for line in lines]}


def comparable_lines_of_many(lines: Sequence[LogLine]) -> Any:
    """Lines by job, each job's in their order."""
    by_job: dict[str, list[LogLine]] = {}
    for line in lines:
        by_job.setdefault(line.job_id, []).append(line)
    return {job_id: comparable_lines(by_job[job_id]) for job_id in sorted(by_job)}


def first_difference(expected: Any, got: Any) -> str | None:
    """Where two answers differ, as a path and both values; None if they are the same."""
    return _difference(msgspec.to_builtins(expected), msgspec.to_builtins(got), "answer")


def _difference(expected: Any, got: Any, path: str) -> str | None:
    if expected == got:
        return None
    if isinstance(expected, dict) and isinstance(got, dict):
        return _first((expected.get(name), got.get(name), f"{path}.{name}") for name in {**expected, **got})
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        return _first((one, other, f"{path}[{n}]") for n, (one, other) in enumerate(zip(expected, got, strict=True)))
    return f"{path}: memory says {_brief(expected)}, it says {_brief(got)}"


def _first(pairs: Any) -> str | None:
    found = (_difference(expected, got, path) for expected, got, path in pairs)
    return next((text for text in found if text), None)


def _brief(value: Any) -> str:
    """A value in a line; of a list its length and what names its items."""
    if isinstance(value, list):
        names = [_name(item) for item in value]
        return f"{len(value)} [{', '.join(names)}]"[:300]
    return repr(value)[:300]


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return repr(item)
    return str(item.get("id") or item.get("through_at") or item.get("name") or item)[-40:]
