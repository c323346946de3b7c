"""Checks names, keys and priorities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rota.errors import BadName, BadOption, BadStoreUrl
from rota.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,127}", re.ASCII)
_SCHEDULE_ID = re.compile(r"[A-Za-z0-9_-]{1,127}", re.ASCII)
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}", re.ASCII)
_STORES_OWN = ("pg_", "sqlite")  # how names begin that PostgreSQL and SQLite keep for themselves
LONGEST_KEY = 255
NAMESPACE_WANTED = "a letter, then up to 30 letters, digits or _, not beginning with pg_ or sqlite"

PRIORITIES = {"low": -10, "normal": 0, "high": 10}


def check_name(kind: str, name: object) -> str:
    """A task, queue, app or tenant name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadName(
            sentence(
                "name.bad",
                "{kind} name {name!r}: use 1 to 127 of the characters A-Z a-z 0-9 . _ : -",
                kind=kind,
                name=name,
            )
        )
    return name


def check_schedule_id(name: object) -> str:
    if not isinstance(name, str) or not _SCHEDULE_ID.fullmatch(name):
        raise BadName(
            sentence("name.schedule", "schedule id {name!r}: use 1 to 127 of the characters A-Z a-z 0-9 _ -", name=name)
        )
    return name


def check_namespace(namespace: object) -> str:
    """The namespace: the prefix of tables, keys and collections. One rule for all stores, so that a system can move
    to any."""
    is_good = isinstance(namespace, str) and _NAMESPACE.fullmatch(namespace)
    if not is_good or str(namespace).lower().startswith(_STORES_OWN):
        raise BadStoreUrl(f"namespace {namespace!r}: use {NAMESPACE_WANTED}")
    return str(namespace)


def check_key(key: object) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY or "\x00" in key or not _is_text(key):
        raise BadName(
            sentence("name.key", "key {key!r}: use 1 to {longest} characters of text", key=key, longest=LONGEST_KEY)
        )
    return key


def _is_text(text: str) -> bool:
    """Whether it can be written as UTF-8 (lone surrogates cannot)."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def check_priority(priority: object) -> int:
    """A whole number from -100 to 100, or one of the three names."""
    if isinstance(priority, str) and priority in PRIORITIES:
        return PRIORITIES[priority]
    if isinstance(priority, bool) or not isinstance(priority, int) or not -100 <= priority <= 100:
        raise BadOption(
            sentence(
                "name.priority",
                "priority {priority!r} must be a whole number from -100 to 100, or low, normal or high",
                priority=priority,
            )
        )
    return priority


def check_queues(queues: Sequence[str]) -> tuple[str, ...]:
    """The queues of a worker: a list of at least one name."""
    if isinstance(queues, str) or not queues:
        raise BadOption(f"queues={queues!r} must be a list of at least one queue name")
    return tuple(check_name("queue", queue) for queue in queues)
