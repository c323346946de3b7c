"""Settling: decided changes, written where the jobs still are what was decided on; and what the end of a job sets free.

Changes that look alike are one guarded write for many jobs. Each carries a token, so that where fewer jobs took it than
were meant, a second look tells whose change was taken and whose was refused.

Where the server has transactions, the end of a job that others wait for, or that is not to be kept, is one; and most
jobs need none. Elsewhere the end of a job and what follows from it are several writes. The job's own end comes first:
it alone decides. Then those that waited for it are released (if the process dies before that, upkeep releases them, see
`Waiters.heal`), its schedule hears of it (or hears of the next run), and where it is not to be kept it is removed (or
kept until it is pruned).
"""

from __future__ import annotations

import secrets
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo import UpdateMany, UpdateOne
from pymongo.errors import PyMongoError

from rota.model.occurrence import is_noted, noted
from rota.model.settle import apply
from rota.store.contract import Refusal
from rota.store.mongo.documents import changed, document_of_last, last_of
from rota.store.mongo.waiters import Waiters
from rota.store.mongo.wire import part_of_many

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rota.model.settle import Change
    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.removing import Remover
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step

NOTE_WITHIN = (
    1.0  # seconds: a schedule locked by a client that died must not hold up the workers; the next run tells it
)

_FIELDS = (
    *("run_at", "queued_at", "started_at", "finished_at", "attempts", "failures", "deaths"),
    *("error", "result", "past", "key", "slot"),
)
_fields_of = attrgetter(*_FIELDS)
_EMPTY: dict[str, object] = {"past": b"", "attempts": 0, "failures": 0, "deaths": 0}


class Settler:
    """Writes changes of one namespace's jobs."""

    def __init__(self, jobs: Jobs, remover: Remover) -> None:
        self._remover = remover
        self.waiters = Waiters(jobs, self)

    def settle(
        self,
        step: Step,
        changes: Sequence[Change],
        now: int,
        guard: Callable[[Change], Document],
        *,
        tells_schedules: bool = True,
    ) -> list[Refusal]:
        """Apply the changes whose jobs still are what was decided on; name the others. Of several changes to one job
        the first that holds counts. `tells_schedules`: whether schedules hear of their jobs."""
        accepted: dict[str, Change] = {}
        refusals: dict[int, Refusal] = {}
        left = dict(enumerate(changes))
        while left:
            first = _firsts(left)
            taken = set(map(id, self._write(step, list(first.values()), guard)))
            accepted |= {change.id: change for change in first.values() if id(change) in taken}
            refused = {place: change for place, change in first.items() if id(change) not in taken}
            refusals |= zip(refused, self.refusals(step, list(refused.values()), guard), strict=True)
            rest = {place: change for place, change in left.items() if place not in first}
            refusals |= {place: Refusal(change.id, "lease") for place, change in rest.items() if change.id in accepted}
            left = {place: change for place, change in rest.items() if change.id not in accepted}
        self.follow(step, list(accepted.values()), now, tells_schedules=tells_schedules)
        return [refusals[place] for place in sorted(refusals)]

    def tied(self, space: Space, changes: Sequence[Change]) -> list[Change]:
        """Those of the changes that need a transaction: they end a job which others wait for, or which is not to be
        kept. With them goes whatever must be written in their order: other changes to the same job or schedule."""
        ended = [change for change in changes if change.state.is_final]
        awaited = self.waiters.awaited(space, [change.id for change in ended]) if ended else set()
        first = [change for change in ended if change.is_removal or change.id in awaited]
        names = {name for change in first for name in _names(change)}
        return [change for change in changes if names.intersection(_names(change))]

    def _write(self, step: Step, changes: list[Change], guard: Callable[[Change], Document]) -> list[Change]:
        """Write the changes that hold; gives those."""
        token = secrets.token_hex(8)
        operations = [UpdateMany(part["q"], part["u"], hint=part["hint"]) for part in parts_of(changes, guard, token)]
        matched = step.space.jobs.bulk_write(operations, ordered=False, session=step.session).matched_count
        return self.taken(step, changes, token, matched)

    def taken(self, step: Step, changes: list[Change], token: str, matched: int) -> list[Change]:
        """Those of the changes that were written, where so many were."""
        if matched == len(changes):
            return changes
        found = step.space.jobs.find(
            {"_id": {"$in": [change.id for change in changes]}, "touch": token}, {"lease_no": 1}, session=step.session
        )
        taken = {(document["_id"], document.get("lease_no", 0)) for document in found}
        return [change for change in changes if (change.id, change.job.lease_no) in taken]

    def follow(
        self,
        step: Step,
        changes: Sequence[Change],
        now: int,
        *,
        tells_schedules: bool = True,
        waiting: Sequence[Document] | None = None,
    ) -> None:
        """What changes that were written set in motion; `waiting` are those who waited for them, if that is known."""
        step.counts.move_all((change.job.queue, change.job.state, change.state) for change in changes)
        ended = [change for change in changes if change.state.is_final]
        if ended:
            self.waiters.let_go(step, [change.id for change in ended], now, waiting)
        if tells_schedules:
            self._note_last_runs(step, changes)
        gone = [apply(change) for change in ended if change.is_removal]
        if gone:
            self._remover.remove(step, gone)

    def refusals(self, step: Step, refused: Sequence[Change], guard: Callable[[Change], Document]) -> list[Refusal]:
        """Why each was not taken: the lease was lost, or the job was asked to stop and would have gone on."""
        asked: dict[int, str] = {}
        for change in (change for change in refused if not change.state.is_final):
            condition = {**guard(change), "cancel_reason": {"$exists": True}}
            found = step.space.jobs.find_one({"_id": change.id, **condition}, session=step.session)
            if found is not None and found["state"] == "running":
                asked[id(change)] = found["cancel_reason"]
        return [
            Refusal(change.id, "cancel", asked[id(change)]) if id(change) in asked else Refusal(change.id, "lease")
            for change in refused
        ]

    def _note_last_runs(self, step: Step, changes: Sequence[Change]) -> None:
        """Record with the schedules how their jobs ended, or that an attempt failed."""
        mine = [change for change in changes if is_noted(change)]
        if not mine:
            return
        ids = list({change.job.schedule_id for change in mine})
        found = step.space.schedules.find({"_id": {"$in": ids}}, {"last": 1}, session=step.session)
        lasts = {document["_id"]: last_of(document) for document in found}
        before = dict(lasts)
        for change in mine:
            if change.job.schedule_id in lasts:
                lasts[change.job.schedule_id] = noted(lasts[change.job.schedule_id], change)
        updates = [
            UpdateOne({"_id": name}, _noted(document_of_last(before[name]), document_of_last(last)))
            for name, last in lasts.items()
        ]
        if not updates:
            return
        try:
            with pymongo.timeout(NOTE_WITHIN):
                step.space.schedules.bulk_write(updates, ordered=False, session=step.session)
        except PyMongoError as err:
            if step.is_atomic or not err.timeout:
                raise


def update_of(change: Change, token: str) -> Document:
    """What a change writes: what differs from the job that it was decided on, and the end of its lease."""
    fields: Document = {
        "state": change.state.value,
        "touch": token,
        "lease_until": None,
        "holder": change.job.holder if change.state.is_final else None,
    }
    if change.cancel_reason or not change.keeps_cancel:
        fields["cancel_reason"] = change.cancel_reason
    for name, value in _differences(change):
        fields[name] = None if value == _EMPTY.get(name) else value
    return changed(fields)


def parts_of(changes: Sequence[Change], guard: Callable[[Change], Document], token: str) -> list[Document]:
    """The parts of an update command that write changes where they hold."""
    return [
        part_of_many({"_id": {"$in": [change.id for change in group]}, **condition}, update)
        for condition, update, group in _groups(changes, guard, token)
    ]


def _names(change: Change) -> set[tuple[str, str]]:
    """The job, and the schedule that hears of its end."""
    of_job = ("job", change.id)
    return {of_job} if change.job.schedule_id is None else {of_job, ("schedule", change.job.schedule_id)}


def _firsts(changes: Mapping[int, Change]) -> dict[int, Change]:
    """The first change of each lease, by its place."""
    first: dict[tuple[str, int], int] = {}
    for place, change in changes.items():
        first.setdefault((change.id, change.job.lease_no), place)
    return {place: changes[place] for place in first.values()}


def _differences(change: Change) -> list[tuple[str, object]]:
    fields = zip(_FIELDS, _fields_of(change), _fields_of(change.job), strict=True)
    return [(name, after) for name, after, before in fields if after != before]


def _groups(
    changes: Sequence[Change], guard: Callable[[Change], Document], token: str
) -> list[tuple[Document, Document, list[Change]]]:
    """The changes that share their condition and what they write: told by all that the two are made of."""
    groups: dict[object, list[Change]] = {}
    for change in changes:
        job = change.job
        was = (job.lease_no, job.state, job.key, job.past, job.holder)
        groups.setdefault((was, change.state, change.cancel_reason, *_differences(change)), []).append(change)
    return [(_condition(group[0], guard), update_of(group[0], token), group) for group in groups.values()]


def _condition(change: Change, guard: Callable[[Change], Document]) -> Document:
    """A job that was asked to stop does not go on."""
    is_going_on = change.job.state == "running" and not change.state.is_final
    return {**guard(change), "cancel_reason": None} if is_going_on else guard(change)


def _noted(before: Document, after: Document) -> Document:
    """Only what differs: a firing may write its own part of it at the same time."""
    names = before.keys() | after.keys()
    fields: dict[str, Any] = {f"last.{name}": after.get(name) for name in names if before.get(name) != after.get(name)}
    return changed(fields) if fields else {"$set": {"last.job_id": after.get("job_id")}}
