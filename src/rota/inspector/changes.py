"""Reads audit records as callers see them: the change, its author and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.micros import datetime_of, optional_instant
from rota.store.contract import AuditFilter, Page, check_limit

if TYPE_CHECKING:
    from datetime import datetime

    from rota.model.audit_record import AuditRecord
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store


class Change:
    """One change of one thing, as it was kept."""

    def __init__(self, audit: AuditRecord, redaction: Redaction) -> None:
        self.id = audit.id
        self.at = datetime_of(audit.at)
        self.by = audit.by
        self.verb = audit.verb  # created, changed, paused, …
        self.kind, _, self.name = audit.subject.partition(":")  # schedule, daily
        self.before = _facts(audit.before, redaction)  # only the fields that differ
        self.after = _facts(audit.after, redaction)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.verb} by {self.by} at {self.at:%Y-%m-%d %H:%M}>"


def _facts(packed: str, redaction: Redaction) -> dict[str, Any]:
    """The facts of an audit record, or why they cannot be read. A name that is hidden today is hidden in old
    records, too."""
    try:
        form = msgspec.json.decode(packed or "{}", type=dict[str, Any])
    except msgspec.MsgspecError as err:
        return {"problem": f"cannot be read: {err}"}
    return {**form, "payload": redaction.payload(form["payload"])} if isinstance(form.get("payload"), str) else form


def list_changes(
    store: Store,
    redaction: Redaction,
    subject: str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Change]:
    """Changes, newest first: of one thing, or of all."""
    where = AuditFilter(
        subject=subject,
        since=optional_instant("since", since),
        until=optional_instant("until", until),
    )
    page = store.list_audit_records(where, cursor=cursor, limit=check_limit(limit))
    return Page([Change(audit, redaction) for audit in page.items], page.cursor)
