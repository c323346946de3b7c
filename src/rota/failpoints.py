"""Names places where a test may stop, fail or kill the process. When off, each costs one comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = (
    "add.before_commit",
    "add.after_commit",
    "exchange.before",  # a worker is about to settle and claim
    "exchange.before_commit",
    "exchange.after_commit",
    "run.before",  # a task is about to be called
    "run.after",
    "extend.before",
    "extend.before_commit",
    "extend.after_commit",
    "rescue.before",
    "change.before_commit",  # rescues and decisions by hand
    "change.after_commit",
    "rescue.after",
    "fire.before",
    "fire.before_commit",
    "fire.after_commit",
    "fire.after",
    "edit.before_commit",
    "edit.after_commit",
    "prune.before_commit",
    "prune.after_commit",
    "delete.before_commit",
    "delete.after_commit",
    "alert.recorded",  # an incident is in the store, and no message was sent
)

_hook: Callable[[str], None] | None = None


def reach(name: str) -> None:
    """Pass a named place."""
    if _hook is not None:
        _hook(name)


def install(hook: Callable[[str], None] | None) -> None:
    """Set the action at every place (None: nothing)."""
    global _hook  # noqa: PLW0603 - one switch for the whole process, for tests alone
    _hook = hook
