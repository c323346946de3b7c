"""Edits schedules, each in one write that its version guards; finds those that are due; gets and lists them."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from pymongo import DeleteOne, InsertOne, UpdateOne

from rota.failpoints import reach
from rota.model.jobs.job import accept
from rota.model.micros import SECOND
from rota.model.schedules.occurrence import of_skip
from rota.model.schedules.schedule import LastRun
from rota.store.contract import Due, ScheduleFilter
from rota.store.mongo import notify
from rota.store.mongo.codec import changed, document_of_schedule, given, last_of, new_schedule_document, schedule_of
from rota.store.mongo.outbox import COUNTED, MOST_DELIVERIES, Outbox, current_schedules, deliver, outbox_of
from rota.store.shared.batching import batches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Page
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Step, Steps

IN_ORDER = [("due_at", 1), ("_id", 1)]  # of due schedules
PAUSE = 1.0  # seconds until a locked schedule is tried again
AT_ONCE = 0  # when a schedule with an outbox is due


class Schedules:
    """One namespace's schedules. Half-done steps of other processes are finished before anything is read."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._locked: dict[str, float] = {}  # schedules that others have locked, and until when they are left alone

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        with self._steps.connection.call() as db:
            documents = self._find(db, {"_id": {"$in": list(ids)}}, len(ids))
        found = {document["_id"]: schedule_of(document) for document in documents}
        return [found[name] for name in ids if name in found]

    def list_schedules(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> Page[Schedule]:
        query, hint = _conditions(where or ScheduleFilter())
        with self._steps.connection.call() as db:
            documents = self._find(db, {**query, "_id": {"$gt": cursor or ""}}, limit + 1, hint)
        return page_of([schedule_of(document) for document in documents], limit, lambda schedule: schedule.id)

    def _find(self, db: Database, query: Document, limit: int, hint: str = "_id_") -> list[Document]:
        for _ in range(MOST_DELIVERIES):
            found = list(db.schedules.in_order(query, limit, hint)) if limit else []
            if not self._deliver(found):
                break
        return [document for document in found if not document.get("is_removed")]

    def due_schedules(self, limit: int, now: int | None) -> Due:
        with self._steps.connection.call() as db:
            at = self._steps.control.now(now)
            self._locked = {name: until for name, until in self._locked.items() if until > time.monotonic()}
            due = self._due(db, limit, at, list(self._locked))
            if not self._locked:
                return due
            self._steps.control.end_dead()
            again_at = at + int(PAUSE * SECOND)
            return msgspec.structs.replace(due, next_due_at=min(due.next_due_at or again_at, again_at))

    def leave_alone(self, name: str) -> None:
        """Do not show a schedule as due for a while: another process has locked it."""
        self._locked = {**self._locked, name: time.monotonic() + PAUSE}

    def _due(self, db: Database, limit: int, now: int, without: Sequence[str]) -> Due:
        """The due schedules, in order, by the index. An unreadable one gets its problem recorded, and is not due."""
        others: Document = {"_id": {"$nin": list(without)}} if without else {}
        for _ in range(MOST_DELIVERIES):
            found = list(db.schedules.find({"due_at": {"$lte": now}, **others}, hint="due").sort(IN_ORDER).limit(limit))
            if not self._deliver(found):
                break
        delivered = [document for document in found if outbox_of(document) is None]
        good = [schedule for document in delivered if (schedule := _if_readable(db, document)) is not None]
        is_all = len(delivered) == len(found)  # if not, others keep firing the rest: look again at once
        following = _due_after(db, len(found), others) if is_all else now
        return Due(now=now, schedules=good, next_due_at=following)

    def deliver_some(self, db: Database, limit: int) -> None:
        """Deliver outboxes that other processes left."""
        self._deliver(list(db.schedules.find({"outbox": {"$exists": True}}, hint="outbox").limit(limit)))

    def _deliver(self, documents: Iterable[Document]) -> bool:
        """Deliver the outboxes of these; whether there were any."""
        waiting = [outbox for document in documents if (outbox := outbox_of(document)) is not None]
        if waiting:
            self._steps.run("deliver", lambda step: deliver(step, waiting, is_again=True))
        return bool(waiting)

    # Editing.

    def edit_schedules(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        """Apply edits; the ids of those that were refused because the version is another."""
        with self._steps.work(now) as turn:
            refused = self._steps.run("edit", partial(self._edit, edits=edits, now=turn.now))
        notify.send(self._steps.connection, "schedules", "jobs")
        return refused

    def _edit(self, step: Step, *, edits: Sequence[Edit], now: int) -> list[str]:
        return [
            name for batch in batches(edits, lambda edit: (edit.id,)) for name in self._edit_batch(step, batch, now)
        ]

    def _edit_batch(self, step: Step, edits: Sequence[Edit], now: int) -> list[str]:
        current = current_schedules(step, [edit.id for edit in edits])
        taken = [edit for edit in edits if edit.holds_for(*guard_of(current.get(edit.id)))]
        last_seq = self._steps.control.next_position() if any(edit.revoke is not None for edit in taken) else 0
        token = secrets.token_hex(8)
        outboxes = {edit.id: _outbox_of(edit, current.get(edit.id), token, now, last_seq) for edit in taken}
        writes = {edit.id: _write(edit, outboxes[edit.id], is_atomic=step.is_atomic) for edit in taken}
        won = step.schedules.write_guarded(writes, token) if writes else set()
        reach("edit.before_commit")
        deliver(step, [outboxes[edit.id] for edit in taken if edit.id in won], is_edit=True)
        return [edit.id for edit in edits if edit.id not in won]


def runs_so_far(document: Document | None) -> LastRun:
    """What a schedule knows of the jobs that were made for it."""
    last = LastRun() if document is None else last_of(document)
    return LastRun(**{name: getattr(last, name) for name in COUNTED})


def with_outbox(fields: Document, outbox: Outbox, *, is_atomic: bool) -> Document:
    """The fields with the token; and with the outbox, unless the delivery is part of the same transaction."""
    fields["token"] = outbox.token
    if not is_atomic and not outbox.is_empty:
        fields["outbox"] = msgspec.msgpack.encode(outbox)
        fields["due_at"] = AT_ONCE
    return fields


def _due_after(db: Database, count: int, others: Document) -> int | None:
    """When the next schedule is due, after the first so many."""
    waiting = {"due_at": {"$exists": True}, **others}
    found = db.schedules.find_one(waiting, {"due_at": 1}, sort=IN_ORDER, skip=count, hint="due")
    return int(found["due_at"]) if found else None


def _if_readable(db: Database, document: Document) -> Schedule | None:
    """The schedule; None if its document or its outbox cannot be read: it then keeps the reason and is never due."""
    schedule = schedule_of(document)
    problem = schedule.problem or ("what it had to deliver cannot be read" if "outbox" in document else None)
    if problem is None:
        return schedule
    update: Document = {"$unset": {"due_at": ""}, "$set": {"problem": problem}}
    if "outbox" in document:
        update["$rename"] = {"outbox": "unreadable_outbox"}
    db.schedules.update_one({"_id": document["_id"], "token": document.get("token")}, update)
    return None


def _conditions(where: ScheduleFilter) -> tuple[Document, str]:
    """A filter as a query, and the index for it. Most schedules have no tenant: those are not in its index."""
    hint = "tenant" if where.tenant else "_id_" if where.origin is None else "origin"
    tenant = {} if where.tenant is None else {"tenant": where.tenant or None}
    return {**given(origin_name=where.origin), **tenant}, hint


def guard_of(document: Document | None) -> tuple[int | None, int | None]:
    return (document["version"], document["created_at"]) if document is not None else (None, None)


def _outbox_of(edit: Edit, document: Document | None, token: str, now: int, last_seq: int) -> Outbox:
    return Outbox(
        schedule_id=edit.id,
        created_at=edit.after.created_at,
        token=token,
        now=now,
        jobs=[accept(job, now) for job in edit.jobs],
        reopens=edit.reopens,
        entries=[of_skip(edit.id, skip) for skip in edit.skips],
        audits=[edit.audit] if edit.audit else [],
        revoke=edit.revoke,
        delete_after=edit.delete_after,
        last_seq=last_seq,
        is_removal=edit.is_removal,
        due_at=edit.after.due_at,
        before=runs_so_far(document) if edit.jobs else None,
    )


def _write(edit: Edit, outbox: Outbox, *, is_atomic: bool) -> Any:
    """The guarded write of an edit."""
    mine = {"_id": edit.id, "version": edit.expect_version, "created_at": edit.made_at, "outbox": None}
    if edit.is_removal and is_atomic:
        return DeleteOne(mine)
    fields = with_outbox(document_of_schedule(edit.after), outbox, is_atomic=is_atomic)
    if edit.is_removal:
        return UpdateOne(mine, changed({**fields, "is_removed": True}))
    if edit.expect_version == 0:
        return InsertOne({**new_schedule_document(edit.after), **given(**fields)})
    if edit.jobs:
        fields |= {f"last.{name}": getattr(edit.after.last, name) for name in COUNTED}
    return UpdateOne(mine, changed(fields))
