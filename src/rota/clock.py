"""The one place that reads this machine's wall clock."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """This machine's idea of now. Stores have their own clock; rules get an instant handed in."""
    return datetime.now(UTC)
