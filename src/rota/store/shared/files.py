"""Checks whether a file can be made at a path, and which kind of file system a folder is on."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rota.errors import StoreUnavailable


def check_can_be_made(path: Path) -> None:
    """Refuse a path at which no file can be made. Nothing is left behind: the trial is a file without a name."""
    folder = next(parent for parent in path.parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as err:
        raise StoreUnavailable(
            f"cannot make {path}: {folder}: {err.strerror or err}. Name another path, or check the permissions"
        ) from err


def file_system_of(folder: Path) -> str:
    """The kind of file system a folder is on, if the system says so."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    mounts = [(parts[1], parts[2]) for line in lines if len(parts := line.split()) > 2]
    path = str(folder.resolve())
    holding = [(point, kind) for point, kind in mounts if path == point or path.startswith(point.rstrip("/") + "/")]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]
