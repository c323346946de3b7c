"""What tests of Rota, and of code that uses it, are made with: `from rota.testing import Kit, ManualClock`."""

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
    """Loaded when asked for: the pytest plugin stands in this package, and costs nothing where it is not used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rota.testing.{_HOMES[name]}"), name)
