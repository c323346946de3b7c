"""Writes errors about settings: the value given, the form wanted, and the probable intention."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rota.errors import RotaError


def misfit(got: str, wanted: str, err: RotaError | None = None) -> str:
    """got '30', wanted a duration such as 90s"""
    fix = getattr(err, "fix", "")
    hint = f"; {fix}" if fix.startswith("did you mean") else ""
    return f"got {got}, wanted {wanted}{hint}"


def unknown_key(path: str, name: str, known: Iterable[str], noun: str = "key") -> str:
    """there is no such key; did you mean schedules.nightly.cron?"""
    names = sorted(known)
    close = meant(name, names)
    if close:
        return f"there is no such {noun}; did you mean {path}.{close}?"
    return f"there is no such {noun}; there are {', '.join(names)}"


def meant(word: str, known: Iterable[str]) -> str | None:
    """The known word that a mistyped one probably is."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return close[0] if close else None


def shown_path(path: Path) -> str:
    """The path relative to the working directory if it is below it, otherwise the full path."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return str(path) if near.startswith("..") else near
