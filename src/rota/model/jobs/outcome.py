"""Represents the end of one execution of a job as a value. `settle` decides the consequences."""

from __future__ import annotations

from typing import NamedTuple

from rota.model.reasons import reason_text


class Succeeded(NamedTuple):
    """The task returned."""

    result: bytes | None = None


class Failed(NamedTuple):
    """The task raised, or ran out of time."""

    error: str  # its first line says what, the rest is the traceback
    may_retry: bool = True  # False for exceptions that the task's policy gives up on
    met_seal: bool = False  # it needed a store that is being copied: if that is its own, it continues in the other


class RetryAsked(NamedTuple):
    """The task asked for another attempt; it spends a retry."""

    after: int | None  # microseconds; None: by the policy's back-off
    error: str


class Snoozed(NamedTuple):
    """The task asked to be woken later; it spends nothing."""

    after: int
    reason: str = reason_text("snoozed")


class Stopped(NamedTuple):
    """The task ended because of a cancellation, its own or another's."""

    reason: str


class TaskUnknown(NamedTuple):
    """This worker has no such task; another may."""


class Undecodable(NamedTuple):
    """The payload cannot be read."""

    error: str


class Returned(NamedTuple):
    """The worker is going away before the task has ended."""

    reason: str = reason_text("shutdown")


class Died(NamedTuple):
    """The process that ran the task ended by itself: a death, not an attempt."""

    reason: str


Outcome = Succeeded | Failed | RetryAsked | Snoozed | Stopped | TaskUnknown | Undecodable | Returned | Died
