"""What holds for all tests: where their files lie, which signals their processes hear, and which of them go first."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings

from amounts import IS_SOAK, amount

if TYPE_CHECKING:
    import pytest

settings.register_profile("rota", deadline=None)  # how long an example takes says how busy the machine is, no more
settings.load_profile("rota")

os.environ.setdefault("ROTA_SUITE_WALKS", str(amount(2, 10)))  # of each store, by rota.testing.store_suite

MEMORY = Path("/dev/shm")  # noqa: S108 - what a busy disk takes for each commit is no part of the tests
ENOUGH = 4 * 1024**3  # two test processes with a server of each kind take some hundred megabytes each


def _has_room(folder: Path) -> bool:
    """Whether files may be made there, many of them, and programs among them be run: containers may give little."""
    if not os.access(folder, os.W_OK):
        return False
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize > ENOUGH and not facts.f_flag & os.ST_NOEXEC


def _keep_files_in_memory() -> None:
    """No test pulls a plug: kill -9 leaves what was written, on a disk as in memory. A TMPDIR that is set decides."""
    if "TMPDIR" not in os.environ and _has_room(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def _hear_signals() -> None:
    """Let the tests' processes be interrupted, whatever started pytest.

    nohup and the background of a script ignore these two, and each process inherits that; one that has a handler hands
    down the default. Pytest itself goes on through a hangup, which is what nohup is for.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)


def _share_bytecode() -> None:
    """Where none may be written beside the sources, a thousand processes would compile them anew.

    It is kept with pytest's own cache, so that the next session does not compile, either.
    """
    if not sys.dont_write_bytecode or sys.pycache_prefix is not None:
        return
    folder = Path(__file__).parent.parent / ".pytest_cache" / "bytecode"
    with suppress(OSError):  # a tree that only others may write to
        folder.mkdir(parents=True, exist_ok=True)
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


_keep_files_in_memory()
_hear_signals()
_share_bytecode()
gc.disable()  # while tests are collected: nothing of that is garbage, and looking for some takes a third of the CPU


def pytest_collection_finish() -> None:
    """The tests and what they import stay until the end: no collection has to look at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _is_left_out(item: pytest.Item) -> bool:
    """Of a suite that runs on another server of the same store, one test in so many runs, always the same ones."""
    mark = item.get_closest_marker("one_in")
    if mark is None:
        return False
    behind_file = item.nodeid.partition("::")[2]
    return zlib.crc32(behind_file.encode()) % int(mark.args[0]) != 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make soak` runs. The longest begin first: all other processes wait for one that is last."""
    left_out = set() if IS_SOAK else {item for item in items if _is_left_out(item)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("slow_first") is None)


_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """What was lent to a test goes back when all of its fixtures have ended."""
    stores = sys.modules.get("every_store")
    if stores is not None:
        stores.take_back_places(sound=nodeid not in _failed)
