"""Logs: what jobs wrote, line by line, numbered within a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.store.contract import LogLine
from rota.store.redis.wire import binary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.redis.desk import Desk

STEP = 1_000  # lines looked at in one call where a time is asked for

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, str, str]).decode


def append_logs(desk: Desk, lines: Sequence[LogLine]) -> None:
    """Keep lines of jobs that exist."""
    by_job: dict[str, list[str | msgspec.Raw]] = {}
    for line in lines:
        by_job.setdefault(line.job_id, [line.job_id]).append(binary(pack_log(line)))
    if by_job:
        desk.link.call("log", logs=list(by_job.values()))


def list_logs(desk: Desk, job_id: str, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
    """A job's lines with a number above `after`, written in start <= t < end, in order."""
    step = limit if start is None and end is None else max(limit, STEP)
    shown: list[LogLine] = []
    while len(shown) < limit:
        (rows,) = desk.ask(["ZRANGEBYSCORE", f"log:{job_id}", f"({after}", "+inf", "LIMIT", 0, step])
        lines = [log_of(job_id, row) for row in rows]
        shown += [line for line in lines if _is_within(line, start, end)]
        if len(rows) < step:
            break
        after = lines[-1].number
    return shown[:limit]


def pack_log(line: LogLine) -> bytes:
    return _encode((line.at, line.level, line.text))


def log_of(job_id: str, row: bytes) -> LogLine:
    number, _, packed = row.partition(b"|")
    at, level, text = _decode(packed)
    return LogLine(job_id=job_id, number=int(number), at=at, level=level, text=text)


def _is_within(line: LogLine, start: int | None, end: int | None) -> bool:
    return (start is None or line.at >= start) and (end is None or line.at < end)
