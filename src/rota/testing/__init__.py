"""Provides what tests of Rota, and of code that uses it, need: `from rota.testing import Kit, ManualClock`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.testing.clock import ManualClock
    from rota.testing.failures import Failure, RunawayJobs
    from rota.testing.kit import Kit

__all__ = ["Failure", "Kit", "ManualClock", "RunawayJobs"]

_HOMES = {"Failure": "failures", "Kit": "kit", "ManualClock": "clock", "RunawayJobs": "failures"}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: the pytest plugin is in this package, and must cost nothing if unused."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rota.testing.{_HOMES[name]}"), name)
