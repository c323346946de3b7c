"""Finds rota.yaml: in the folder, else in its parents up to the project's root; or at the path in ROTA_CONFIG."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from rota.config.environment import CONFIG
from rota.errors import BadSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "rota.yaml"


def find_file(folder: Path, environment: Mapping[str, str]) -> Path | None:
    """The file that applies to a process in this folder; None if there is none."""
    named = environment.get(CONFIG, "").strip()
    if named:
        return _named(folder / Path(named).expanduser())
    return next((place / NAME for place in _places(folder) if os.path.lexists(place / NAME)), None)


def _named(path: Path) -> Path:
    if not os.path.lexists(path):
        raise BadSettings(f"{CONFIG} names {path}, and there is no such file")
    return path


def _places(folder: Path) -> Iterator[Path]:
    """The folder, then its parents to the one that holds .git; never the home or the filesystem's root as parents."""
    yield folder
    home = _home()
    while not os.path.lexists(folder / ".git") and folder != home:
        folder = folder.parent
        if folder in {home, folder.parent} or _is_anybodys(folder):
            return
        yield folder


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None  # a user without one


def _is_anybodys(folder: Path) -> bool:
    """Whether anyone may write there, as in /tmp: a file of settings names code, and other users must not be able to
    add one."""
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return True
