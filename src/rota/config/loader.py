"""Finds the value that applies: defaults < rota.yaml < ROTA_* variables < arguments, each with its origin.

The values that code passes to App(…) are arguments: a deployment sets only the values that the code leaves open.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.config.declared import NOTHING, Declarations
from rota.config.environment import read_environment
from rota.config.finding import find_file
from rota.config.layers import CODE, DEFAULT, Layer, Origin, Reading, Value
from rota.config.settings import KEYS, RetentionPart, Settings, settings_from
from rota.errors import BadSettings
from rota.store.contract import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.store.contract import Retention


class Overruled(Struct, frozen=True):
    """A value of a file or the environment that an argument overrides."""

    path: str
    origin: Origin


class Resolved(Struct, frozen=True, kw_only=True):
    """The settings that apply, the origin of each, and the file that was read."""

    settings: Settings
    origins: dict[str, Origin]  # by the key's path
    file: Path | None = None
    overruled: tuple[Overruled, ...] = ()
    declared: Declarations = NOTHING  # schedules, tenants and sources of the file

    @property
    def folder(self) -> Path | None:
        """The folder of the file; None if there is no file."""
        return self.file.absolute().parent if self.file else None


def resolve(folder: Path, given: Layer | None = None, environment: Mapping[str, str] | None = None) -> Resolved:
    """The settings for a process that runs in this folder. All mistakes are raised as one BadSettings."""
    found, complaints = survey(folder, given, environment)
    if complaints:
        raise BadSettings(*complaints)
    return found


def survey(
    folder: Path, given: Layer | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Resolved, list[str]]:
    """The settings as far as they can be read, and all complaints about them."""
    variables = os.environ if environment is None else environment
    file = find_file(folder, variables)
    said = [_read(file), read_environment(variables, folder)]
    complaints = [complaint for reading in said for complaint in reading.complaints]
    arguments = given or {}
    merged = {
        path: value for layer in (*(reading.layer for reading in said), arguments) for path, value in layer.items()
    }
    found = Resolved(
        settings=settings_from({path: value.value for path, value in merged.items()}),
        origins={path: merged[path].origin if path in merged else DEFAULT for path in KEYS},
        file=file,
        overruled=tuple(
            Overruled(path, reading.layer[path].origin)
            for reading in said
            for path, argument in arguments.items()
            if path in reading.layer and reading.layer[path].value != argument.value
        ),
        declared=said[0].declared,
    )
    return found, complaints


def from_code(
    *,
    store: object,
    namespace: str | None,
    tz: object,
    lease: object,
    retention: Retention | None,
    redact: object = None,
) -> Layer:
    """The arguments of an App, as a layer; None sets nothing. The store checks a namespace."""
    said: dict[str, Any] = {}
    if store is not None:
        said["store"] = store if isinstance(store, str) else _named(store)
    if namespace is not None:
        said["namespace"] = namespace
    read = (("tz", tz), ("lease", lease), ("redact", redact))
    said |= {path: KEYS[path].kind.read(value) for path, value in read if value is not None}
    if retention is not None:
        part = RetentionPart.from_retention(retention)
        said |= {f"retention.{name}": getattr(part, name) for name in part.__struct_fields__}
    return {path: Value(value, CODE) for path, value in said.items()}


def _named(store: object) -> str:
    """The description of a store that the code made. A client's own description might contain a password."""
    return store.describe() if isinstance(store, Store) else f"a {type(store).__qualname__}"


def _read(file: Path | None) -> Reading:
    if file is None:
        return Reading({}, [])
    from rota.config.yaml_file import read_file  # noqa: PLC0415 - not needed without a file

    return read_file(file)
