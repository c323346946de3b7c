"""Finds waiting jobs and schedules whose arguments the present code of their task does not accept.

A deploy that changes a signature breaks them one by one, when they run. Only so many are looked at, newest first, and
the words say so.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from rota.app import internals
from rota.cli.words import count, first_line
from rota.errors import BadPayload
from rota.inspector.reading import all_schedules
from rota.inspector.search import matching_jobs
from rota.model.jobs.job import State
from rota.model.jobs.payload import unpack_call
from rota.model.secrets.redaction import hidden
from rota.store.contract import JobFilter

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from rota.app import App
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store
    from rota.tasks.task import Task

MOST_JOBS = 1_000  # waiting jobs of each task that are looked at
MOST_SCHEDULES = 10_000
MOST_NAMED = 10  # ids that a command to copy names
WAITING = (State.QUEUED, State.SCHEDULED, State.HELD)


class Misfit(Struct, frozen=True, kw_only=True):
    """The jobs or schedules of one task that its code does not take."""

    what: Literal["job", "schedule"]
    task: str
    number: int
    ids: tuple[str, ...]  # of the first MOST_NAMED of them
    reason: str  # why the first does not fit
    looked_at: int | None = None  # how many were looked at, if there may be more

    @property
    def example(self) -> str:
        return self.ids[0]

    @property
    def cancelling(self) -> str:
        """How to cancel these jobs and none that fits."""
        words = f"cancel with `rota jobs cancel {' '.join(self.ids)}`"
        left = self.number - len(self.ids)
        return f"{words}, then run doctor again for the other {left:,}" if left else words

    @property
    def sentence(self) -> str:
        """3 waiting jobs do not fit mail.send, such as 1a1d: …"""
        noun = count(self.number, "waiting job" if self.what == "job" else "schedule")
        whole = f" (of the newest {self.looked_at:,})" if self.looked_at else ""
        verb = "does" if self.number == 1 else "do"
        such = "" if self.number == 1 else "such as "
        return f"{noun}{whole} {verb} not fit {self.task}, {such}{self.example}: {self.reason}"


def misfits(app: App, store: Store, *, but: Container[str] = ()) -> Iterator[Misfit]:
    """All that does not fit, by task; schedules that are named in `but` are about to be changed."""
    for name in internals(app).registry.names():
        task = internals(app).registry.get(name)
        found = list(matching_jobs(store, JobFilter(states=WAITING, task=name), most=MOST_JOBS))
        looked_at = len(found) if len(found) == MOST_JOBS else None
        calls = ((job.id, job.payload) for job in found)
        yield from _judged("job", task, calls, internals(app).redaction, looked_at)
    yield from _schedules(app, store, but)


def _schedules(app: App, store: Store, but: Container[str]) -> Iterator[Misfit]:
    calls: dict[str, list[tuple[str, bytes]]] = {}
    for schedule in islice(all_schedules(store), MOST_SCHEDULES):
        if (
            not schedule.origin.is_retired
            and schedule.id not in but
            and internals(app).registry.find(schedule.spec.task)
        ):
            calls.setdefault(schedule.spec.task, []).append((schedule.id, schedule.spec.payload.encode()))
    for name, found in sorted(calls.items()):
        yield from _judged("schedule", internals(app).registry.get(name), found, internals(app).redaction)


def _judged(
    what: Literal["job", "schedule"],
    task: Task[Any, Any],
    calls: Iterable[tuple[str, bytes]],
    redaction: Redaction,
    looked_at: int | None = None,
) -> Iterator[Misfit]:
    wrong = [(name, reason) for name, payload in calls if (reason := _reason(task, payload, redaction))]
    if wrong:
        ids = tuple(name for name, _ in wrong[:MOST_NAMED])
        reason = wrong[0][1]
        yield Misfit(what=what, task=task.name, number=len(wrong), ids=ids, reason=reason, looked_at=looked_at)


def _reason(task: Task[Any, Any], payload: bytes, redaction: Redaction) -> str:
    """Why a call does not fit; "" if it does."""
    try:
        reason = task.signature.misfit(unpack_call(payload))
    except BadPayload as err:
        reason = str(err)
    return first_line(hidden(reason, redaction.texts(payload)))
