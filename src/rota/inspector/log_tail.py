"""Reads the end of a job's log without reading all of it: lines have rising numbers, so bisection finds the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from rota.store.contract import LogLine, Store

SHORT = 3  # pages that are read one after the other


class Tail(NamedTuple):
    """The last lines of a log, in order, and whether there are more before them."""

    lines: list[LogLine]
    has_more: bool


def log_tail(store: Store, job_id: str, most: int = LARGEST_PAGE) -> Tail:
    lines: list[LogLine] = []
    for _ in range(SHORT):
        page = store.list_logs(job_id, after=lines[-1].number if lines else 0, limit=LARGEST_PAGE)
        lines += page
        if len(page) < LARGEST_PAGE:
            return Tail(lines[-most:], len(lines) > most)
    last = _last_number(store, job_id, lines[-1].number)
    step = most
    while True:  # numbers have gaps if a store counts the lines of all jobs
        lines = _after(store, job_id, max(0, last - step))
        if len(lines) >= most or step >= last:
            return Tail(lines[-most:], has_more=True)
        step *= 4


def _after(store: Store, job_id: str, number: int) -> list[LogLine]:
    lines: list[LogLine] = []
    while page := store.list_logs(job_id, after=lines[-1].number if lines else number, limit=LARGEST_PAGE):
        lines += page
        if len(page) < LARGEST_PAGE:
            break
    return lines


def _last_number(store: Store, job_id: str, low: int) -> int:
    """The number of the last line; there is one with the number `low`."""
    step = 1_024
    while found := store.list_logs(job_id, after=low + step, limit=1):
        low, step = found[0].number, step * 2
    high = low + step
    while low < high:
        middle = (low + high) // 2
        found = store.list_logs(job_id, after=middle, limit=1)
        low, high = (found[0].number, high) if found else (low, middle)
        if not found and middle == low:
            break
    return low
