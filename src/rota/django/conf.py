"""Reads the setting ROTA: the keys of rota.yaml, and the name, the version and the database of the project.

What ROTA leaves out is looked up in ROTA_* variables and in rota.yaml. If neither names a store, it is the default
database. If neither names a timezone, it is TIME_ZONE.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from msgspec import Struct

from rota.config.layers import Layer, Origin, Value
from rota.config.loader import Resolved, resolve
from rota.config.settings import KEYS, PARTS
from rota.config.words import misfit
from rota.django.databases import store_url_of
from rota.errors import RotaError
from rota.model.secrets.masking import masked

OWN = ("database", "name", "version")  # keys that rota.yaml does not have
SAID = Origin("code", "settings.ROTA")


class Configuration(Struct, frozen=True, kw_only=True):
    """What an app is made of."""

    store: str | None  # None: rota.yaml or ROTA_STORE names it
    name: str
    version: str
    layer: Layer
    database: str | None  # the alias of the database that is the store; None if the store has a URL of its own


def database_of(settings: Any) -> str | None:
    """The alias of the database that is the store, whatever its name is now: a test run has another one."""
    said = getattr(settings, "ROTA", {})
    return _alias_of(said, said.get("store"), _elsewhere())


def configuration_of(settings: Any) -> Configuration:
    """What the settings of a project say; ImproperlyConfigured if they cannot be meant so."""
    said = getattr(settings, "ROTA", {})
    if not isinstance(said, Mapping):
        raise ImproperlyConfigured(f"ROTA must be a dict, got {said!r:.100}")
    layer = _layer_of(said)
    found = _elsewhere()
    store = layer.pop("store").value if "store" in layer else None
    database = _alias_of(said, store, found)
    if "tz" not in layer and found.origins["tz"].kind == "default" and settings.TIME_ZONE:
        layer["tz"] = Value(_read("tz", settings.TIME_ZONE, "TIME_ZONE"), Origin("code", "settings.TIME_ZONE"))
    return Configuration(
        store=store if database is None else store_url_of(settings.DATABASES, database),
        name=_text(said, "name", "app"),
        version=_text(said, "version", ""),
        layer=layer,
        database=database,
    )


def _alias_of(said: Mapping[str, Any], store: str | None, found: Resolved) -> str | None:
    """The alias of the database that is the store."""
    if "database" not in said:
        return None if store is not None or found.origins["store"].kind != "default" else "default"
    if store is not None:
        raise ImproperlyConfigured(
            f"ROTA has both 'store' ({masked(store)}) and 'database' ({said['database']!r}); leave one of them out"
        )
    return _text(said, "database", "default")


def _layer_of(said: Mapping[str, Any]) -> Layer:
    """The settings that rota.yaml could say as well, read and checked."""
    layer: Layer = {}
    for path, value in _flat(said):
        if path == "app":
            raise ImproperlyConfigured("ROTA['app'] has no meaning: the app of this project is rota.django.app")
        if path not in KEYS:
            raise ImproperlyConfigured(_unknown(path))
        layer[path] = Value(_read(path, value, _shown(path)), SAID)
    return layer


def _flat(said: Mapping[str, Any]) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in said.items():
        if name in PARTS:
            if not isinstance(value, Mapping):
                raise ImproperlyConfigured(f"ROTA[{name!r}] must be a dict, got {value!r:.100}")
            pairs += [(f"{name}.{key}", inner) for key, inner in value.items()]
        elif name not in OWN:
            pairs.append((str(name), value))
    return pairs


def _read(path: str, value: Any, shown: str) -> Any:
    """A value by the kind of its key. The kinds read texts, as files and variables have them, and lists of texts."""
    kind, text = KEYS[path].kind, _as_text(value)
    if text is None:
        raise ImproperlyConfigured(f"{shown}: got {value!r:.100}, wanted {kind.wanted}")
    try:
        return kind.read(text)
    except RotaError as err:
        raise ImproperlyConfigured(f"{shown}: {misfit(kind.shown(str(value)), kind.wanted, err)}") from err


def _as_text(value: Any) -> Any:
    """What a kind can read; None if no kind could."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return value
    is_list = isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
    return ",".join(value) if is_list else None


def _elsewhere() -> Resolved:
    """What ROTA_* variables and rota.yaml say."""
    try:
        return resolve(Path.cwd())
    except RotaError as err:
        raise ImproperlyConfigured(str(err)) from err


def _text(said: Mapping[str, Any], key: str, otherwise: str) -> str:
    value = said.get(key, otherwise)
    if not isinstance(value, str):
        raise ImproperlyConfigured(f"ROTA[{key!r}] must be a text, got {value!r:.100}")
    return value


def _unknown(path: str) -> str:
    known = [*KEYS, *OWN]
    close = difflib.get_close_matches(path.lower(), known, n=1)
    instead = f"did you mean {_shown(close[0])}?" if close else f"it takes {', '.join([*OWN, *KEYS])}"
    return f"{_shown(path)} is no setting; {instead}"


def _shown(path: str) -> str:
    return "ROTA" + "".join(f"[{part!r}]" for part in path.split("."))
