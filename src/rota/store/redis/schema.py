"""The schema version, and what a server must be: checked when a store is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.errors import StoreError, StoreUnavailable
from rota.store.shared.schema_version import check_known, foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VERSION = "1"  # raised where older code would misread what newer code stores
OLDEST = (6, 2)  # ZMSCORE and the options of ZADD came with it


def check_server(info: Mapping[str, Any], address: str) -> None:
    """Refuse a server that is too old, or that takes no writes."""
    version = str(info.get("redis_version", ""))  # Valkey gives the version of Redis that it is compatible with
    if not is_new_enough(version):
        raise StoreError(f"{address} is Redis {version or 'of unknown version'}; 6.2 or newer is needed, or Valkey")
    if info.get("role") == "slave" and str(info.get("slave_read_only", "1")) != "0":
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        raise StoreUnavailable(f"{address} is a read-only replica; name its primary instead ({primary})")


def is_new_enough(version: str) -> bool:
    parts = version.split(".")[:2]
    return len(parts) == 2 and all(part.isdigit() for part in parts) and tuple(map(int, parts)) >= OLDEST


def check_version(found: bytes | str | None, address: str) -> bool:
    """Whether there is a store of this schema version; raises if it is newer, or none of Rota's."""
    if found is None:
        return False
    text = found.decode(errors="replace") if isinstance(found, bytes) else found
    if not text.isdecimal():
        raise foreign(address, "keys of this namespace")
    return check_known(int(text), int(VERSION), address) == int(VERSION)


def settings_warnings(command: Callable[..., Any], address: str) -> list[str]:
    """Which of the server's settings may lose jobs, and what to set instead."""
    try:
        found = {name: _setting(command, name) for name in ("maxmemory-policy", "appendonly", "appendfsync")}
    except StoreUnavailable:
        raise
    except StoreError:
        unknown = "it could not be checked that maxmemory-policy is noeviction and that the append-only file is on"
        return [f"{address}: its settings cannot be read (CONFIG is forbidden), so {unknown}"]
    return warnings_of(found, address)


def warnings_of(settings: Mapping[str, str], address: str) -> list[str]:
    """The same from the settings themselves."""
    warnings = []
    policy = settings.get("maxmemory-policy", "")
    if policy != "noeviction":
        warnings.append(f"{address}: maxmemory-policy is {policy}, so a full server drops jobs; set it to noeviction")
    if settings.get("appendonly") != "yes":
        warnings.append(f"{address}: appendonly is off, so a restart loses jobs; set appendonly yes")
    elif settings.get("appendfsync") not in {"everysec", "always"}:
        warnings.append(f"{address}: appendfsync is {settings.get('appendfsync')}; set it to everysec or always")
    return warnings


def _setting(command: Callable[..., Any], name: str) -> str:
    found = command("CONFIG GET", name) or {}
    values = found.values() if isinstance(found, dict) else found[1:2]
    return next(map(_text, values), "")


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
