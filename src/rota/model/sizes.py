"""Reads and writes amounts of memory in the form that people use."""

from __future__ import annotations

import re

from rota.errors import BadOption

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)\s*(B|[KMGT]i?B?)?", re.IGNORECASE | re.ASCII)


def bytes_of(size: object) -> int:
    """A size such as "512MB" in bytes; each unit is 1,024 of the one below."""
    number, unit = size, ""
    if isinstance(size, str) and (found := _SIZE.fullmatch(size.strip())):
        number, unit = float(found[1]), (found[2] or "").upper()
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 1 <= number <= 2**60:
        raise BadOption(f"memory={size!r} is no size; write it as '512MB' or '2GB'")
    return int(number * 1024 ** "BKMGT".index(unit[:1] or "B"))


def jobs_of(number: object) -> int:
    """How many jobs a child process may run before it is replaced."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise BadOption(f"recycle_jobs={number!r} must be a whole number of jobs, at least 1")
    return number


def check_concurrency(number: object) -> int:
    """How many jobs a worker runs at once."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 10_000:
        raise BadOption(f"concurrency={number!r} must be a whole number from 1 to 10,000")
    return number
