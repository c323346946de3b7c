"""Reloading: notices that the code has changed, and starts this process anew with it."""

from __future__ import annotations

import os
import sys
import threading
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOK = 1.0  # seconds between two looks

_AGAIN = "_ROTA_RELOADED"  # tells the process that it is not the first


class Code:
    """The Python files of a folder, as they were when it was made: before they are imported, so that none is missed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen = _times(folder)

    def changed(self) -> list[str]:
        """Which files were changed, added or removed since the last look."""
        now = _times(self.folder)
        before, self._seen = self._seen, now
        paths = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        return [os.path.relpath(path, self.folder) for path in paths]

    def watch(self, tell: Callable[[list[str]], None]) -> None:
        """Look once a second, in a thread, until something has changed; then tell."""
        threading.Thread(target=lambda: tell(self.wait()), name="rota-reload", daemon=True).start()

    def wait(self) -> list[str]:
        """Block until something has changed."""
        pause = threading.Event()
        while not (changed := self.changed()):
            pause.wait(LOOK)
        return changed


def folder_of(target: str) -> Path:
    """Where a target's code is: beside the file, or in the package; here, where that cannot be told."""
    place = target.partition(":")[0]
    if place.endswith(".py") or "/" in place:
        return Path(place).resolve().parent
    spec = PathFinder.find_spec(place.partition(".")[0], [str(Path.cwd()), *sys.path])
    return Path(spec.origin).resolve().parent if spec is not None and spec.origin else Path.cwd()


def was_reloaded() -> bool:
    """Whether this process was started anew; asked once, so that its children do not inherit the word."""
    return os.environ.pop(_AGAIN, "") == "1"


def start_anew(folder: Path) -> NoReturn:
    """Replace this process by a fresh one of the same command, in the folder where it was typed."""
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _AGAIN: "1"})  # noqa: S606


def _times(folder: Path) -> dict[str, int]:
    return dict(_python_files(str(folder)))


def _python_files(folder: str) -> Iterator[tuple[str, int]]:
    """Files with their times; not those of virtual environments, nor of hidden folders."""
    for place, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__", "node_modules"))]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(place, name)  # noqa: PTH118 - once a second for each file
                try:
                    yield path, os.stat(path).st_mtime_ns  # noqa: PTH116
                except OSError:
                    continue  # an editor is just replacing it
