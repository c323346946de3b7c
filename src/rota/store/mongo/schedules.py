"""The schedule collection: edits and firings, each one write that its schedule's version guards; and what is due."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec
from pymongo import DeleteOne, InsertOne, UpdateOne
from pymongo.errors import BulkWriteError

from rota.failpoints import reach
from rota.model.firing import fired, place
from rota.model.job import accept
from rota.model.occurrence import of_skip
from rota.model.schedule import LastRun
from rota.model.state import State
from rota.store.contract import Due, Fired, Page
from rota.store.mongo.documents import changed, document_of_last, document_of_schedule, last_of, schedule_of
from rota.store.mongo.jobs import is_duplicate
from rota.store.mongo.outbox import COUNTED, Outbox, outbox_of, packed
from rota.store.mongo.waves import waves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.model.edit import Edit
    from rota.model.firing import Firing
    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.contract import ScheduleFilter
    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.outbox import Postman
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step, Steps

IN_ORDER = [("due_at", 1), ("_id", 1)]  # of what is due
AT_ONCE = 0  # when a schedule with an outbox is due
_UNTOUCHED = (  # by a firing
    *("spec", "origin", "tenant", "origin_name"),
    *("generation", "created_at", "updated_at", "is_enabled", "problem"),
)
MOST_ROUNDS = 3  # of delivering what others left, before what is there is taken as it is


class Schedules:
    """One namespace's schedules."""

    def __init__(self, jobs: Jobs, postman: Postman, steps: Steps, mark: Callable[[], int]) -> None:
        self._jobs = jobs
        self._mark = mark  # a place in line behind all that can be seen
        self._postman = postman
        self._steps = steps

    # Reading. What is half done is finished first.

    def get(self, space: Space, ids: Sequence[str]) -> list[Schedule]:
        documents = self._find(space, {"_id": {"$in": list(ids)}}, len(ids))
        found = {document["_id"]: schedule_of(document) for document in documents}
        return [found[name] for name in ids if name in found]

    def page(self, space: Space, where: ScheduleFilter, cursor: str | None, limit: int) -> Page[Schedule]:
        query, hint = _conditions(where)
        documents = self._find(space, {**query, "_id": {"$gt": cursor or ""}}, limit + 1, hint)
        shown = [schedule_of(document) for document in documents[:limit]]
        return Page(shown, shown[-1].id if len(documents) > limit else None)

    def _find(self, space: Space, query: Document, limit: int, hint: str = "_id_") -> list[Document]:
        for _ in range(MOST_ROUNDS):
            found = list(space.schedules.find(query, hint=hint).sort("_id", 1).limit(limit)) if limit else []
            if not self._deliver(found):
                break
        return [document for document in found if not document.get("is_removed")]

    def due(self, space: Space, limit: int, now: int, without: Sequence[str] = ()) -> Due:
        """What is due, in order, by the index alone; documents that cannot be read are set aside with the reason."""
        others: Document = {"_id": {"$nin": list(without)}} if without else {}
        for _ in range(MOST_ROUNDS):
            due = {"due_at": {"$lte": now}, **others}
            found = list(space.schedules.find(due, hint="due").sort(IN_ORDER).limit(limit))
            if not self._deliver(found):
                break
        settled = [document for document in found if outbox_of(document) is None]
        good = [schedule for document in settled if (schedule := self._if_sound(space, document)) is not None]
        is_all = len(settled) == len(found)  # others keep firing the rest: they are to be asked for again at once
        following = self._due_after(space, len(found), others) if is_all else now
        return Due(now=now, schedules=good, next_due_at=following)

    def _due_after(self, space: Space, count: int, others: Document) -> int | None:
        """When the next is due, beyond the first so many."""
        waiting = space.schedules.find({"due_at": {"$exists": True}, **others}, {"due_at": 1}, hint="due")
        found = next(iter(waiting.sort(IN_ORDER).skip(count).limit(1)), None)
        return int(found["due_at"]) if found else None

    def _if_sound(self, space: Space, document: Document) -> Schedule | None:
        """The schedule; None where its document cannot be read, and is set aside with the reason. What it still has to
        deliver is spoiled: the rest was delivered."""
        schedule = schedule_of(document)
        problem = schedule.problem or ("what it had to deliver cannot be read" if "outbox" in document else None)
        if problem is None:
            return schedule
        aside: Document = {"$unset": {"due_at": ""}, "$set": {"problem": problem}}
        if "outbox" in document:
            aside["$rename"] = {"outbox": "spoiled_outbox"}
        space.schedules.update_one({"_id": document["_id"], "turn": document.get("turn")}, aside)
        return None

    def deliver_some(self, space: Space, limit: int) -> None:
        """Finish what others left half done."""
        self._deliver(list(space.schedules.find({"outbox": {"$exists": True}}, hint="outbox").limit(limit)))

    def _deliver(self, documents: Iterable[Document]) -> bool:
        """Deliver the outboxes of these; whether there were any."""
        waiting = [outbox for document in documents if (outbox := outbox_of(document)) is not None]
        if waiting:
            self._steps.run("deliver", lambda step: self._postman.deliver(step, waiting, is_again=True))
        return bool(waiting)

    # Editing.

    def edit(self, step: Step, edits: Sequence[Edit], now: int) -> list[str]:
        """Apply edits; the ids of those that were refused because the version had moved on."""
        refused: list[str] = []
        for wave in waves(edits, lambda edit: (edit.id,)):
            refused += self._edit(step, wave, now)
        return refused

    def _edit(self, step: Step, edits: Sequence[Edit], now: int) -> list[str]:
        current = self.current(step, [edit.id for edit in edits])
        taken = [edit for edit in edits if edit.holds_for(*_guard(current.get(edit.id)))]
        last_seq = self._mark() if any(edit.revoke is not None for edit in taken) else 0
        outboxes = [self._outbox_of_edit(edit, current.get(edit.id), now, last_seq) for edit in taken]
        operations = [
            _operation(edit, outbox, is_atomic=step.is_atomic) for edit, outbox in zip(taken, outboxes, strict=True)
        ]
        won = self._commit(step, operations, outboxes)
        reach("edit.before_commit")
        self._postman.deliver(step, [outbox for outbox in won if not outbox.is_empty], is_edit=True)
        names = {outbox.schedule_id for outbox in won}
        return [edit.id for edit in edits if edit.id not in names]

    def _outbox_of_edit(self, edit: Edit, document: Document | None, now: int, last_seq: int) -> Outbox:
        return Outbox(
            schedule_id=edit.id,
            created_at=edit.after.created_at,
            turn=secrets.token_hex(8),
            now=now,
            jobs=[accept(job, now) for job in edit.jobs],
            reopens=edit.reopens,
            lines=[of_skip(edit.id, skip) for skip in edit.skips],
            notes=[edit.audit] if edit.audit else [],
            revoke=edit.revoke,
            unmake_after=edit.unmake_after,
            last_seq=last_seq,
            is_removal=edit.is_removal,
            due_at=edit.after.due_at,
            before=_counted(document) if edit.jobs else None,
        )

    # Firing.

    def fire(self, step: Step, firings: Sequence[Firing], now: int) -> list[Fired]:
        """Make the jobs and advance the schedules, each unless somebody else changed it first."""
        results: dict[int, Fired] = {}
        for wave in waves(list(enumerate(firings)), lambda pair: _names(pair[1])):
            answers = self._fire(step, [firing for _, firing in wave], now)
            results.update(zip((number for number, _ in wave), answers, strict=True))
        return [results[number] for number in range(len(firings))]

    def _fire(self, step: Step, firings: Sequence[Firing], now: int) -> list[Fired]:
        current = self.current(step, [firing.schedule.id for firing in firings])
        taken = [firing for firing in firings if firing.holds_for(*_guard(current.get(firing.schedule.id)))]
        street = self._look_around(step, taken, now)
        outboxes: list[Outbox] = []
        operations: list[UpdateOne] = []
        answers: dict[str, Fired] = {}
        for firing in taken:
            if street.holds_up(firing):
                continue
            outbox, answer = street.place(firing, now)
            document = current[firing.schedule.id]
            known = msgspec.structs.replace(firing.schedule, last=last_of(document))
            after = fired(
                msgspec.structs.replace(firing, schedule=known),
                len(answer.jobs),
                now,
                answer.jobs[-1] if answer.jobs else None,
            )
            outbox.due_at = after.due_at
            outbox.before = _counted(document) if any(job.key for job in outbox.jobs) else None
            answers[after.id] = answer
            outboxes.append(outbox)
            operations.append(_advance(firing, after, outbox, is_atomic=step.is_atomic))
        won = self._commit(step, operations, outboxes)
        reach("fire.before_commit")
        refused = self._postman.deliver(step, [outbox for outbox in won if not outbox.is_empty])
        names = {outbox.schedule_id for outbox in won}
        return [
            _without(answers[name], refused) if name in names else Fired(schedule_id=name, is_accepted=False)
            for name in (firing.schedule.id for firing in firings)
        ]

    def _look_around(self, step: Step, firings: Sequence[Firing], now: int) -> Street:
        """What firings may meet: jobs in slots, held ones, holders of keys, and occurrences that were made before."""
        shy = [firing.schedule.id for firing in firings if any(shot.when_busy != "allow" for shot in firing.shots)]
        live = self._jobs.live(step, shy)
        keys = self._jobs.holders(step, {key for firing in firings for key in firing.keys}, now)
        held = self._jobs.last_held(step, list(live))
        idle = self._idle(step, firings, live)
        slots = {shot.job.fire_at or 0 for firing in firings for shot in firing.shots}
        names = [firing.schedule.id for firing in firings if firing.shots]
        made = self._jobs.made(step, names, slots) if names else set()
        return Street(live, held, made, idle, keys)

    def _idle(self, step: Step, firings: Sequence[Firing], live: dict[str, str]) -> set[str]:
        """Those of the live jobs that nobody has started, as far as a later shot of the same firing meets that."""
        many = {firing.schedule.id for firing in firings if len(firing.shots) > 1}
        ids = [job_id for name, job_id in live.items() if name in many]
        waiting = (job for job in self._jobs.get(step.space, ids, step.session) if job.state.is_waiting)
        return {job.id for job in waiting}

    # What both are made of.

    def current(self, step: Step, ids: Sequence[str]) -> dict[str, Document]:
        """The documents as they are, with nothing left to deliver."""
        for _ in range(MOST_ROUNDS):
            found = list(step.space.schedules.find({"_id": {"$in": list(ids)}}, session=step.session))
            waiting = [outbox for document in found if (outbox := outbox_of(document)) is not None]
            if not waiting:
                break
            self._postman.deliver(step, waiting, is_again=True)
        return {document["_id"]: document for document in found}

    def _commit(
        self, step: Step, operations: Sequence[UpdateOne | InsertOne[Document] | DeleteOne], outboxes: Sequence[Outbox]
    ) -> list[Outbox]:
        """The writes that decide; gives the outboxes of those that were taken."""
        if not operations:
            return []
        try:
            result = step.space.schedules.bulk_write(list(operations), ordered=False, session=step.session)
            taken = result.matched_count + result.inserted_count + result.deleted_count
        except BulkWriteError as err:
            if step.is_atomic or not is_duplicate(err):
                raise
            taken = -1
        if taken == len(operations):
            return list(outboxes)
        turns = [outbox.turn for outbox in outboxes]
        found = step.space.schedules.find(
            {"_id": {"$in": [outbox.schedule_id for outbox in outboxes]}, "turn": {"$in": turns}},
            {"turn": 1},
            session=step.session,
        )
        mine = {document["turn"] for document in found}
        return [outbox for outbox in outboxes if outbox.turn in mine]


class Street:
    """What a batch of firings meets, and what it adds to that itself."""

    def __init__(
        self,
        live: dict[str, str],
        held: dict[str, str],
        made: set[tuple[str, int]],
        idle: set[str],
        keys: dict[str, str],
    ) -> None:
        self._live = live
        self._keys = keys
        self._held = held
        self._made = made
        self._idle = idle  # live jobs that are cancelled, and not asked to stop, when they are replaced

    def holds_up(self, firing: Firing) -> bool:
        holder = next((self._keys[key] for key in firing.keys if key in self._keys), None)
        return firing.must_wait(self._live.get(firing.schedule.id), holder)

    def place(self, firing: Firing, now: int) -> tuple[Outbox, Fired]:
        """What becomes of each shot, one after another: an earlier one may be in the way of a later one."""
        name = firing.schedule.id
        skips = list(firing.skips)
        outbox = Outbox(
            schedule_id=name,
            created_at=firing.schedule.created_at,
            turn=secrets.token_hex(8),
            now=now,
            jobs=[],
            stops=[],
        )
        for shot in firing.shots:
            if (name, shot.job.fire_at) in self._made:
                continue  # by a schedule of that name, before the clock stepped back
            holder = self._keys.get(shot.job.key or "")
            placement = place(shot, self._live.get(name), self._held.get(name), holder)
            if placement.skip is not None:
                skips.append(placement.skip)
            if placement.job is not None:
                job = accept(placement.job, now)
                outbox.jobs.append(job)
                self._note(name, job)
            if placement.cancels is not None:
                outbox.stops.append(placement.cancels)
                self._follow(name, placement.cancels)
        outbox.lines = [of_skip(name, skip) for skip in skips]
        return outbox, Fired.of(name, [job.id for job in outbox.jobs], skips)

    def _note(self, name: str, job: Job) -> None:
        if job.key:
            self._keys[job.key] = job.id
        if job.state is State.HELD:
            self._held[name] = job.id
        elif job.slot:
            self._live[name] = job.id
            self._idle.add(job.id)

    def _follow(self, name: str, replaced: str) -> None:
        """Where the replaced job is cancelled at once, the one that is held behind it goes on in its place."""
        if replaced in self._idle:
            self._live[name] = self._held.pop(name)
            self._idle.add(self._live[name])


def _names(firing: Firing) -> list[str | tuple[str, str]]:
    """What a batch may have once: a schedule, and a key, whose holder must be there before the next asks for it."""
    return [firing.schedule.id, *(("key", key) for key in firing.keys[:1])]


def _counted(document: Document | None) -> LastRun:
    """What a schedule knows of the runs that were made."""
    last = LastRun() if document is None else last_of(document)
    return LastRun(**{name: getattr(last, name) for name in COUNTED})


def _without(answer: Fired, refused: Sequence[str]) -> Fired:
    """What a firing came to, where keys that its jobs asked for were taken at the last moment."""
    made = [job_id for job_id in answer.jobs if job_id not in refused]
    late = len(answer.jobs) - len(made)
    if not late:
        return answer
    return msgspec.structs.replace(answer, jobs=made, skipped=answer.skipped + late, unique=answer.unique + late)


def _conditions(where: ScheduleFilter) -> tuple[Document, str]:
    """A filter as a query, and the index that it goes by. Most schedules follow no tenant: those need none."""
    query: Document = {} if where.origin is None else {"origin_name": where.origin}
    if where.tenant is not None:
        query["tenant"] = where.tenant or None
    return query, "tenant" if where.tenant else "_id_" if where.origin is None else "origin"


def _guard(document: Document | None) -> tuple[int | None, int | None]:
    return (document["version"], document["created_at"]) if document is not None else (None, None)


def _turned(fields: Document, outbox: Outbox, *, is_atomic: bool) -> Document:
    """The fields, and what has to be delivered, where that is not the same step."""
    fields["turn"] = outbox.turn
    if not is_atomic and not outbox.is_empty:
        fields["outbox"] = packed(outbox)
        fields["due_at"] = AT_ONCE
    return fields


def _advance(firing: Firing, after: Schedule, outbox: Outbox, *, is_atomic: bool) -> UpdateOne:
    fields = document_of_schedule(after)
    for name in _UNTOUCHED:
        del fields[name]
    if outbox.jobs:
        fields |= {f"last.{name}": getattr(after.last, name) for name in ("enqueued_at", "job_id", "fired_for")}
    was = firing.schedule
    mine = {"_id": was.id, "version": was.version, "created_at": was.created_at, "outbox": None}
    return UpdateOne(mine, changed(_turned(fields, outbox, is_atomic=is_atomic)))


def _operation(edit: Edit, outbox: Outbox, *, is_atomic: bool) -> UpdateOne | InsertOne[Document] | DeleteOne:
    mine = {"_id": edit.id, "version": edit.expect_version, "created_at": edit.made_at, "outbox": None}
    if edit.is_removal and is_atomic:
        return DeleteOne(mine)
    fields = _turned(document_of_schedule(edit.after), outbox, is_atomic=is_atomic)
    if edit.is_removal:
        return UpdateOne(mine, changed({**fields, "is_removed": True}))
    if edit.expect_version == 0:
        last = document_of_last(edit.after.last)
        fresh = {name: value for name, value in fields.items() if value is not None}
        return InsertOne({"_id": edit.id, **fresh, "last": last})
    if edit.jobs:
        fields |= {f"last.{name}": getattr(edit.after.last, name) for name in COUNTED}
    return UpdateOne(mine, changed(fields))
