"""Writes audit records of changes by hand to jobs and queues, and finds the name of the user who makes a change."""

from __future__ import annotations

from functools import lru_cache
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.audit_record import Author, audit_record_of, subject_of
from rota.model.jobs.job import new_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.contract import Store

RANDOM = SystemRandom()  # not seeded, and different in every process


@lru_cache(maxsize=1)
def whoami() -> str:
    """ann@build-7"""
    import getpass  # noqa: PLC0415 - enqueuing needs neither a terminal
    import socket  # noqa: PLC0415 - nor a network

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


class AuditedChange(NamedTuple):
    """One change by hand of one thing."""

    name: str
    verb: str
    before: dict[str, Any]
    after: dict[str, Any]


def add_audit_records(
    store: Store, kind: str, changes: Iterable[AuditedChange], by: str = "", random: Random = RANDOM
) -> None:
    """Write audit records of changes. Without a name, the author is the system user."""
    now, author = store.now(), by or whoami()
    store.add_audit_records(
        [
            audit_record_of(
                Author(record_id=new_id(random, now), by=author, verb=change.verb),
                subject_of(kind, change.name),
                change.before,
                change.after,
                now,
            )
            for change in changes
        ]
    )
