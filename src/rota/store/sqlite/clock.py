"""The two clocks of the SQLite store: wall time for what is due, and a clock that cannot be set for leases.

All users of one file are on one host, so they share its boot clock: a wall clock that steps back or forth neither
revives nor kills a lease. After a reboot that clock starts anew, so a lease of an earlier boot is void.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path

INJECTED = ""  # the "boot" of leases under a clock that a test injects

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_now() -> int:
    return time.time_ns() // 1000


def lease_now(injected: int | None) -> tuple[int, str]:
    """The lease clock and the boot that it counts from."""
    if injected is not None:
        return injected, INJECTED
    return time.clock_gettime_ns(_CLOCK) // 1000, boot_id()


@lru_cache(maxsize=1)
def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "boot"
