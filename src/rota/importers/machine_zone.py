"""Finds the timezone of this machine, in which its cron runs."""

from __future__ import annotations

import os
from pathlib import Path

from rota.errors import UnknownZone
from rota.triggers.zone import find_zone

_ETC = Path("/etc")


def machine_zone(etc: Path = _ETC) -> str:
    """TZ, else what /etc says, else UTC."""
    return next((name for name in _candidates(etc) if name and _is_known(name)), "UTC")


def _candidates(etc: Path) -> list[str]:
    said = [os.environ.get("TZ", "").removeprefix(":")]
    try:
        said.append((etc / "timezone").read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        said.append("")
    try:
        said.append(str((etc / "localtime").readlink()).partition("zoneinfo/")[2])
    except OSError:
        said.append("")
    return said


def _is_known(name: str) -> bool:
    try:
        find_zone(name)
    except UnknownZone:
        return False
    return True
