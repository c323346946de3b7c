"""Translates faults of SQLite: what happened, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

LOCK_PATIENCE = 8.0  # seconds that a write waits for other transactions; a loop that waits for longer counts as stuck
_NO_SPACE = {"SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_WRITE"}  # what a full disk says where SQLite needs room to open


def translate(err: sqlite3.Error, path: Path) -> StoreError:
    """The error to raise for one of the driver's."""
    text = str(err)
    if is_busy(err):
        return locked(path)
    if "full" in text or getattr(err, "sqlite_errorname", "") in _NO_SPACE:
        return StoreUnavailable(f"no space is left for {path}; nothing was written. Free some, then go on")
    if "not a database" in text or "malformed" in text:
        return SchemaMismatch(f"{path} is not a SQLite database ({text}); name another file")
    if "readonly" in text or "unable to open" in text:
        return StoreUnavailable(f"cannot write {path}: {text}. Check the permissions of the file and its folder")
    return StoreError(f"{path}: {text}")


def locked(path: Path) -> StoreUnavailable:
    """What a write says that has waited for LOCK_PATIENCE."""
    return StoreUnavailable(
        f"{path} has been locked by another process for {LOCK_PATIENCE:.0f} s; nothing was written. "
        "End the program that keeps a transaction open, then try again"
    )


def is_busy(err: sqlite3.Error) -> bool:
    return "locked" in str(err) or "busy" in str(err)
