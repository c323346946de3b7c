"""The two clocks of the SQLite store: wall time for what is due, and a clock that cannot be set for leases.

All users of one file are on one host, so they share its boot clock: a wall clock that steps back or forth neither
revives nor kills a lease. After a reboot that clock starts from zero, so a lease of an earlier boot is void. Containers
may show their own boot time (Linux time namespaces): their offset is subtracted, so that all of them count as the host
does.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path

from rota.clock import utc_micros

INJECTED = ""  # the "boot" of leases under a clock that a test injects

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_now() -> int:
    return utc_micros()


def at(injected: int | None) -> int:
    """The instant of a call: the wall clock, unless a test injects one."""
    return wall_now() if injected is None else injected


def lease_now(injected: int | None) -> tuple[int, str]:
    """The lease clock and the boot that it counts from."""
    if injected is not None:
        return injected, INJECTED
    return time.clock_gettime_ns(_CLOCK) // 1000 - offset_of_namespace(), boot_id()


def wall_time_of(lease_until: int | None, boot: str | None) -> int | None:
    """The end of a lease by the wall clock. A lease of an earlier boot has expired; it is shown as of the epoch."""
    if lease_until is None or boot in {None, INJECTED}:
        return lease_until
    now, this_boot = lease_now(None)
    return wall_now() + lease_until - now if boot == this_boot else 0


@lru_cache(maxsize=1)
def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "boot"


@lru_cache(maxsize=1)
def offset_of_namespace() -> int:
    """By how much this process's boot clock differs from the host's, in microseconds."""
    try:
        return parse_offset(Path("/proc/self/timens_offsets").read_text(encoding="ascii"))
    except OSError:  # no time namespaces here
        return 0


def parse_offset(text: str) -> int:
    """The offset of the boot clock in the kernel's words: a clock, seconds and nanoseconds on each line."""
    for line in text.splitlines():
        match line.split():
            case ["boottime", seconds, nanoseconds]:
                return int(seconds) * 1_000_000 + int(nanoseconds) // 1_000
    return 0
