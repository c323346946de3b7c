"""Runs a copy of a job, with the same or other arguments; both jobs name each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadPayload, Refused, UnknownTask
from rota.model.collection import collection_of
from rota.model.jobs.job import NewJob
from rota.model.jobs.payload import Call, Passed, pack_call, unpack_call
from rota.model.reasons import reason_text
from rota.model.secrets.redaction import restored_call
from rota.operations.audit import AuditedChange, add_audit_records
from rota.operations.through_middleware import add_through
from rota.sentences import sentence

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store
    from rota.tasks.task import Registry

COPY_OF = "copy_of"  # in a job's meta: the job that it is a copy of


def run_copy(
    store: Store,
    registry: Registry,
    redaction: Redaction,
    original: Job,
    new_id: str,
    *,
    args: list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    by: str = "",
) -> str:
    """Enqueue a copy and return its id. Arguments that are not given are the original's.

    A placeholder in the given arguments stands for the stored value. A copy has no key and belongs to no schedule: it
    runs now, whatever else runs.
    """
    if collection_of(original) is not None:
        raise Refused(
            sentence(
                "refused.sync_copy",
                "job {job} keeps a collection in sync; start a new one with `rota sources run` instead",
                job=original.id,
            )
        )
    payload, is_kept = _payload(registry, redaction, original, args, kwargs)
    new = NewJob(
        id=new_id,
        task=original.task,
        payload=payload,
        queue=original.queue,
        priority=original.priority,
        reason=reason_text("copy", job=original.id),
    )
    task = None if is_kept else registry.find(original.task)
    add_through(() if task is None else task.middleware, new, lambda passed: store.add_jobs([passed]))
    changes = [
        AuditedChange(original.id, "copied", {}, {"copy": new_id}),
        AuditedChange(new_id, "enqueued", {}, {"task": original.task, COPY_OF: original.id}),
    ]
    add_audit_records(store, "job", changes, by)
    return new_id


def _payload(
    registry: Registry,
    redaction: Redaction,
    original: Job,
    args: list[Any] | None,
    kwargs: dict[str, Any] | None,
) -> tuple[bytes, bool]:
    """The call of the copy, and whether it is the stored one as middleware made it: only a worker can read that."""
    stored = unpack_call(original.payload)
    given = restored_call(
        list(stored.args) if args is None else args,
        dict(stored.kwargs) if kwargs is None else kwargs,
        stored,
        redaction.shown(stored),
    )
    meta = {**stored.meta, COPY_OF: original.id}
    if stored.passed is not Passed.NO and given == (stored.args, stored.kwargs):
        return pack_call(msgspec.structs.replace(stored, meta=meta), what=original.task), True
    args, kwargs = given
    call = Call(
        args=args,
        kwargs=kwargs,
        meta=meta,
        retries=stored.retries,
        timeout=stored.timeout,
        secrets=stored.secrets,
    )
    return _checked_payload(registry, original, call), False


def _checked_payload(registry: Registry, original: Job, call: Call) -> bytes:
    """The call, checked against the task's parameters if this process knows the task."""
    try:
        task = registry.get(original.task)
    except UnknownTask:
        return pack_call(call, what=original.task)
    task.signature.check(tuple(call.args), call.kwargs)
    secrets = task.signature.secrets(tuple(call.args), call.kwargs, task.sender.redaction.extra)
    known = msgspec.structs.replace(call, secrets=secrets or call.secrets)
    return pack_call(known, what=original.task, encode=task.signature.encode)


def original_of(job: Job) -> str | None:
    """The job that a job is a copy of."""
    try:
        found = unpack_call(job.payload).meta.get(COPY_OF)
    except BadPayload:
        return None
    return found if isinstance(found, str) else None
