"""Stores settings with the origin of each. A later layer overrides an earlier one, key by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from rota.config.declared import NOTHING, Declarations

Kind = Literal["default", "file", "environment", "code", "option"]


class Origin(Struct, frozen=True):
    """The origin of a value: in words, and the folder from which its relative paths begin."""

    kind: Kind
    words: str  # default, rota.yaml:3, ROTA_LEASE, code, --store
    folder: Path | None = None


class Value(NamedTuple):
    """A value, read and checked, and its origin."""

    value: Any
    origin: Origin


Layer = dict[str, Value]  # by the key's path

DEFAULT = Origin("default", "default")
CODE = Origin("code", "code")


class Reading(NamedTuple):
    """The values of one source, and the complaints about it."""

    layer: Layer
    complaints: list[str]
    declared: Declarations = NOTHING
