"""What the system tells of the place of a file."""

from __future__ import annotations

from pathlib import Path


def file_system_of(folder: Path) -> str:
    """The kind of file system a folder is on, where the system tells."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    mounts = [(parts[1], parts[2]) for line in lines if len(parts := line.split()) > 2]
    place = str(folder.resolve())
    holding = [(point, kind) for point, kind in mounts if place == point or place.startswith(point.rstrip("/") + "/")]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]
