"""Builds audit records: who made each change, when, and the values before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.model.secrets.redaction import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Container

    from rota.model.schedules.schedule import Schedule

Facts = dict[str, Any]

_SHOWN = ("is_enabled", "pause", "tenant_pause", "origin", "problem")


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of one thing. Its id makes it one audit record, however often it is written."""

    id: str
    at: int
    by: str
    verb: str  # created, changed, paused, …
    subject: str  # the kind of thing, and its name: schedule:daily
    before: str = ""  # the fields that differ, as a JSON object
    after: str = ""


class Author(Struct, frozen=True, kw_only=True):
    """The author of a change and its verb: everything that an audit record needs beside the change."""

    record_id: str
    by: str
    verb: str


def subject_of(kind: str, name: str) -> str:
    return f"{kind}:{name}"


def audit_record_of(author: Author, subject: str, before: Facts, after: Facts, at: int) -> AuditRecord:
    """The audit record of the difference between two forms of a thing."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return AuditRecord(
        id=author.record_id,
        at=at,
        by=author.by,
        verb=author.verb,
        subject=subject,
        before=_packed({name: before[name] for name in names if name in before}),
        after=_packed({name: after[name] for name in names if name in after}),
    )


def without_runs(record: AuditRecord, missed: Container[str]) -> AuditRecord | None:
    """The record without the runs that were refused; None if nothing else changed."""
    after: dict[str, Any] = msgspec.json.decode(record.after) if record.after else {}
    made = [job_id for job_id in after.get("runs", []) if job_id not in missed]
    if made == after.get("runs", []):
        return record
    rest = {name: value for name, value in after.items() if name != "runs"} | ({"runs": made} if made else {})
    return msgspec.structs.replace(record, after=_packed(rest)) if rest or record.before else None


def facts_of(schedule: Schedule | None) -> dict[str, Any]:
    """The facts of a schedule that an audit record keeps: its author's and its operators' settings, not its runs."""
    if schedule is None:
        return {}
    said = msgspec.to_builtins(schedule.spec)
    kept = {name: msgspec.to_builtins(getattr(schedule, name)) for name in _SHOWN}
    return {**said, **{name: value for name, value in kept.items() if value is not None}}


def _packed(facts: dict[str, Any]) -> str:
    """The facts as JSON. An audit record outlives its subject, so it must not contain a secret."""
    if isinstance(facts.get("payload"), str):
        facts = {**facts, "payload": DEFAULT.payload(facts["payload"])}
    return msgspec.json.encode(facts).decode() if facts else ""
