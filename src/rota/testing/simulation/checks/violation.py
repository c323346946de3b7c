"""Defines what a checker reports."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A guarantee that did not hold: which, at which step of the simulation, and what was seen."""

    promise: str
    step: int
    text: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.promise}: {self.text}"
