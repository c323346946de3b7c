"""Restarts this process when its code or settings have changed."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rota.cli import early
from rota.config.finding import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK = 1.0  # seconds between two looks

_AGAIN = "_ROTA_RELOADED"  # set in a process that is not the first


class Code:
    """The Python files of a folder, and the settings: as they were when it was made, before they are read, so that no
    change is missed."""

    def __init__(self, folder: Path, settings: Path | None = None) -> None:
        self.folder = folder
        self._settings = settings  # may be elsewhere; a rota.yaml in the folder is seen in any case
        self._seen = self._times()

    def changed(self) -> list[str]:
        """Which files were changed, added or removed since the last look; what was compiled of them is put away."""
        now = self._times()
        before, self._seen = self._seen, now
        paths = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        for path in paths:
            _forget_compiled(path)
        return [os.path.relpath(path, self.folder) for path in paths]

    def wait(self) -> list[str]:
        """Block until something has changed."""
        pause = threading.Event()
        while not (changed := self.changed()):
            pause.wait(LOOK)
        return changed

    def _times(self) -> dict[str, int]:
        times = dict(_watched(str(self.folder)))
        if self._settings is not None:
            times |= _time_of(str(self._settings.absolute()))
        return times


def _forget_compiled(path: str) -> None:
    """Python goes by second and length: it would take what another command compiled for a change of the same length."""
    if path.endswith(".py"):
        with suppress(OSError, NotImplementedError):  # it is not there, or this Python keeps none
            Path(cache_from_source(path)).unlink()


def folder_of(target: str) -> Path:
    """Where a target's code is: beside the file, or in the package; the current folder if that is unknown."""
    place = target.partition(":")[0]
    if place.endswith(".py") or "/" in place:
        return Path(place).resolve().parent
    if place.partition(".")[0] == "rota":  # the app of a framework's project, which is here
        return Path.cwd()
    spec = PathFinder.find_spec(place.partition(".")[0], [str(Path.cwd()), *sys.path])
    return Path(spec.origin).resolve().parent if spec is not None and spec.origin else Path.cwd()


def was_reloaded() -> bool:
    """Whether this process is a restart; asked once, so that its children do not inherit the mark."""
    return os.environ.pop(_AGAIN, "") == "1"


def start_again(folder: Path) -> NoReturn:
    """Replace this process by a fresh one of the same command, in the folder where it was typed."""
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    early.hold()  # a signal that comes now waits for the fresh process
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _AGAIN: "1"})  # noqa: S606


def _watched(folder: str) -> Iterator[tuple[str, int]]:
    """Files with their times; not those of virtual environments, nor of hidden folders."""
    for place, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__", "node_modules"))]
        for name in files:
            if name.endswith(".py") or name == NAME:
                yield from _time_of(os.path.join(place, name)).items()  # noqa: PTH118 - once a second for each file


def _time_of(path: str) -> dict[str, int]:
    try:
        return {path: os.stat(path).st_mtime_ns}  # noqa: PTH116
    except OSError:
        return {}  # an editor is just replacing it
