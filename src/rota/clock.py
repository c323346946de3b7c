"""The one place that reads this machine's wall clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """This machine's idea of now. Stores have their own clock; rules get an instant handed in."""
    return datetime.now(UTC)


def utc_micros() -> int:
    """The same, as microseconds since the epoch."""
    return time.time_ns() // 1000
