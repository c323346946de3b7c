"""Decodes nodes and audit records that are stored as JSON; stands in for what cannot be read, with the reason.

A list must show every record: one that somebody wrote by hand, or another version of Rota, must not hide the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.jobs.job import accept
from rota.model.jobs.outcome import Undecodable
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import apply, claim, settle
from rota.model.schedules.schedule import Schedule, ScheduleSpec
from rota.store.contract import Node

if TYPE_CHECKING:
    from rota.model.jobs.job import Job, NewJob

_decode_node = msgspec.json.Decoder(Node).decode
_decode_audit = msgspec.json.Decoder(AuditRecord).decode


def node_from(node_id: str, packed: str | bytes, beat_at: int | None = None) -> Node:
    """A node; its last heartbeat may be kept beside its record."""
    try:
        node = _decode_node(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as err:
        node = Node(id=node_id, host="", pid=0, roles=(), problem=f"cannot be read: {err}")
    return node if beat_at is None else msgspec.structs.replace(node, beat_at=beat_at)


def audit_record_from(packed: str | bytes, *, record_id: str, at: int, subject: str) -> AuditRecord:
    """An audit record; the rest is what its index says of it."""
    try:
        return _decode_audit(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as err:
        return AuditRecord(id=record_id, at=at, by="", verb=f"cannot be read: {err}", subject=subject)


def unreadable_job(new: NewJob, reason: str, *, seq: int, at: int, holder: str = "nobody", lease_no: int = 1) -> Job:
    """The failed job that stands for one that cannot be read: claimed, and failed at once."""
    claimed = msgspec.structs.replace(claim(accept(new, at, seq), holder, at, at), lease_no=lease_no)
    return apply(settle(claimed, Undecodable(reason), RetryPolicy(), at, 0.0))


def unreadable_schedule(
    schedule_id: str, err: object, *, version: int, created_at: int, updated_at: int, fired_through: int
) -> Schedule:
    """What is shown in place of a schedule that cannot be read. It is never due."""
    return Schedule(
        id=schedule_id,
        spec=ScheduleSpec(trigger="", task="unreadable"),
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        fired_through=fired_through,
        problem=f"the stored schedule cannot be read: {err}",
    )
