"""The layout's version and what a server must be: checked when a store is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.store.redis.link import Link

VERSION = "3"  # 2: jobs that were added together are one entry of their task's index; 3: slots are apart from keys
OLDEST = (6, 2)  # ZMSCORE and the options of ZADD came with it


def check_server(info: Mapping[str, Any], place: str) -> None:
    """Refuse a server that is too old, or that takes no writes."""
    version = str(info.get("redis_version", ""))  # Valkey gives the version of Redis that it is compatible with
    if not is_new_enough(version):
        raise StoreError(f"{place} is Redis {version or 'of unknown version'}; 6.2 or newer is needed, or Valkey")
    if info.get("role") == "slave" and str(info.get("slave_read_only", "1")) != "0":
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        raise StoreUnavailable(f"{place} is a read-only replica; name its primary instead ({primary})")


def is_new_enough(version: str) -> bool:
    parts = version.split(".")[:2]
    return len(parts) == 2 and all(part.isdigit() for part in parts) and tuple(map(int, parts)) >= OLDEST


def check_version(found: bytes | str | None, place: str) -> bool:
    """Whether there is a store of this layout, and not none or an older one; raises where there is one of another."""
    if found is None:
        return False
    text = found.decode(errors="replace") if isinstance(found, bytes) else found
    if not text.isdecimal():
        raise SchemaMismatch(f"{place} has keys of this namespace that Rota did not make; choose another namespace")
    if int(text) > int(VERSION):
        raise SchemaMismatch(
            f"{place} has layout version {text}, this Rota knows up to {VERSION}; "
            "install the newer Rota that made it, or use another namespace"
        )
    return int(text) == int(VERSION)


def check_older(link: Link, found: bytes | str | None) -> None:
    """Refuse what an older layout has that would be misread: live jobs of schedules, whose slots were keys."""
    if found is None:
        return
    keys = link.command("HKEYS", f"{link.prefix}key")
    if link.command("EXISTS", f"{link.prefix}ahead") or any(_text(key).startswith("schedule:") for key in keys):
        raise SchemaMismatch(
            f"{link.place} has layout version {_text(found)} and unfinished jobs of schedules, which this Rota would "
            "misread; pause the schedules and let the Rota that made the jobs finish them, or use another namespace"
        )


def settings_warnings(link: Link) -> list[str]:
    """What in the server's settings may lose jobs."""
    try:
        found = {name: _setting(link, name) for name in ("maxmemory-policy", "appendonly", "appendfsync")}
    except StoreUnavailable:
        raise
    except StoreError:
        unknown = "it could not be checked that maxmemory-policy is noeviction and that the append-only file is on"
        return [f"{link.place}: its settings cannot be read (CONFIG is forbidden), so {unknown}"]
    return warnings_of(found, link.place)


def warnings_of(settings: Mapping[str, str], place: str) -> list[str]:
    """The same from the settings themselves."""
    warnings = []
    policy = settings.get("maxmemory-policy", "")
    if policy != "noeviction":
        warnings.append(f"{place}: maxmemory-policy is {policy}, so a full server drops jobs; set it to noeviction")
    if settings.get("appendonly") != "yes":
        warnings.append(f"{place}: appendonly is off, so a restart loses jobs; set appendonly yes")
    elif settings.get("appendfsync") not in {"everysec", "always"}:
        warnings.append(f"{place}: appendfsync is {settings.get('appendfsync')}; set it to everysec or always")
    return warnings


def _setting(link: Link, name: str) -> str:
    found = link.command("CONFIG GET", name)
    if isinstance(found, dict):
        values = [value for key, value in found.items() if _text(key) == name]
    else:
        values = list(found or ())[1:2]
    return _text(values[0]) if values else ""


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
