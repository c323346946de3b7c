"""Defines the exceptions by which a task ends its attempt: Retry, Snooze, Cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import fine_span_of
from rota.model.reasons import reason_text

if TYPE_CHECKING:
    from datetime import timedelta


class JobSignal(BaseException):
    """A message from the task to its worker, and not an error. (`except Exception` does not catch it.)"""


class Retry(JobSignal):
    """Try again after a delay; it spends a retry: `raise Retry(after="30s")`."""

    def __init__(self, reason: str = "asked for a retry", *, after: str | timedelta | None = None) -> None:
        self.after = None if after is None else fine_span_of(after)
        super().__init__(reason)


class Snooze(JobSignal):
    """Come back later; it spends nothing: `raise Snooze(after="1h")`."""

    def __init__(self, reason: str = reason_text("snoozed"), *, after: str | timedelta) -> None:
        self.after = fine_span_of(after)
        super().__init__(reason)


class Cancel(JobSignal):
    """End the job as cancelled: `raise Cancel("the order is gone")`."""

    def __init__(self, reason: str = reason_text("cancelled_task")) -> None:
        super().__init__(reason)
