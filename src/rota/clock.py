"""Reads this machine's wall clock. The linter refuses it elsewhere; only the supervisor has its own."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time of this machine. Stores have their own clock; rules get an instant as an argument."""
    return datetime.now(UTC)


def utc_micros() -> int:
    """The same, as microseconds since the epoch."""
    return time.time_ns() // 1000
