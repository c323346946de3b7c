"""Turns fields of a hash, which are texts, into times, terms and side records, and back."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rota.documents.contract import SideRecord, Terms
from rota.documents.sources.redis.connection import decoded
from rota.errors import BadOption
from rota.model.micros import MILLISECOND, datetime_of, micros_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSTANT = re.compile(r"-?\d{1,15}", re.ASCII)  # as in the scripts; more digits are not milliseconds
_PLAIN = re.compile(r"[\w.:-]+", re.ASCII)
_NUMBER = re.compile(r"-?[1-9]\d{0,17}|0", re.ASCII)


def instant_of(text: str) -> int | None:
    """Milliseconds as a hash holds them, in microseconds; None if it is no time."""
    return int(text) * MILLISECOND if _INSTANT.fullmatch(text) and len(text) < 16 else None


def id_of(text: str) -> int | str:
    """An id that is written like a whole number is one: for Redis, 7 and "7" are the same key."""
    return int(text) if _NUMBER.fullmatch(text) else text


def quoted(text: str) -> str:
    """An id as redis-cli reads it. An id must not become a command of its own."""
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.encode(errors="surrogateescape").decode("latin-1").encode("unicode_escape").decode()
    return '"' + escaped.replace('"', r"\"") + '"'


def document_of(key: str, document_id: Any, flat: Any) -> dict[str, Any]:
    """A hash as a dictionary of texts, with the id under its name."""
    items = list(flat.items()) if isinstance(flat, dict) else list(zip(flat[::2], flat[1::2], strict=True))
    found: dict[str, Any] = {decoded(name): decoded(value) for name, value in items}
    return found | {key: document_id} if key else found


def field_text(name: str, value: Any) -> str:
    """A value of the owner's as a hash holds it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(micros_of(value) // MILLISECOND)
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (str, int, float)):
        return str(value)
    raise BadOption(f"the field {name!r} is {value!r}; a hash holds texts, numbers, times, true and false")


def terms_of(texts: Sequence[str]) -> Terms:
    """The four fields, as the scripts give them: the last one is "1", empty, or something else."""
    sleep_until, interval, repeat_until, auto_remove = texts
    end = instant_of(repeat_until)
    is_canonical = end is not None and str(end // MILLISECOND) == repeat_until
    return Terms(
        sleep_until=instant_of(sleep_until),
        interval=interval or None,
        repeat_until=datetime_of(end) if end is not None and is_canonical else repeat_until or None,
        auto_remove=True if auto_remove == "1" else auto_remove or None,
    )


def terms_texts(terms: Terms) -> list[str]:
    """The same texts again, by which a script sees what the owner has changed."""
    end, removed = terms.repeat_until, terms.auto_remove
    return [
        "" if terms.sleep_until is None else str(terms.sleep_until // MILLISECOND),
        terms.interval or "",
        str(micros_of(end) // MILLISECOND) if isinstance(end, datetime) else end or "",
        "1" if removed is True else removed or "",
    ]


def side_of(body: str, nominal: int) -> SideRecord:
    return msgspec.json.decode(body, type=SideRecord) if body else SideRecord(nominal=nominal)


def side_text(side: SideRecord) -> str:
    values = {name: getattr(side, name) for name in ("nominal", "failures", "error", "failed_at")}
    return json.dumps(values)
