"""Copies a store: the seal in a table of its own, parts read by their keys, records written as they are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import Job
from rota.store.contract import LogLine, QueueRecord, Seal
from rota.store.postgres import codec, job_rows, keys
from rota.store.postgres.operations import queue_infos, write_pause
from rota.store.postgres.transaction import columns_of
from rota.store.shared.changing import load_queue
from rota.store.shared.importing import fresh_jobs, of_kind
from rota.store.shared.sql_codec import log_line_from
from rota.store.shared.sql_moving import PARTS, Part, load_rows, page_of_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Page, Record
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction
    from rota.store.shared.parts import OwnPart


_PARTS: dict[OwnPart, Part] = {
    **PARTS,
    "jobs": Part(("seq",), codec.JOB_COLUMNS, "{ns}.jobs", codec.job_from),
    "logs": Part(
        ("g.seq", "g.number"),
        "j.id, g.number, g.at, g.level, g.text",
        "{ns}.log g JOIN {ns}.job j ON j.seq = g.seq",
        log_line_from,
    ),
}
_UNUSED_LOCK = {"token": "''", "until": "0"}


class Moving:
    """Seals one namespace, exports its parts and imports those of another store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def seal(self, seal: Seal | None) -> None:
        self._database.transact("seal", lambda tx: _write_seal(tx, seal))

    def sealed(self) -> Seal | None:
        row = self._database.call(lambda tx: tx.row("SELECT value FROM {ns}.seal"))
        return None if row is None else msgspec.json.decode(row[0], type=Seal)

    def dump(self, part: OwnPart, cursor: str | None, limit: int) -> Page[Record]:
        return page_of_part(self._database.select, _PARTS[part], cursor, limit)

    def load(self, given: Sequence[Record]) -> int:
        """Write records as they are; returns how many were new. What exists is left alone."""
        return self._database.transact("load", lambda tx: _load(tx, given))


def _write_seal(tx: Transaction, seal: Seal | None) -> None:
    """Every transaction that brings work has read the seal; the lock waits for all of them."""
    tx.run("LOCK TABLE {ns}.seal IN ACCESS EXCLUSIVE MODE")
    tx.run("DELETE FROM {ns}.seal")
    if seal is not None:
        tx.run("INSERT INTO {ns}.seal VALUES (%s)", (msgspec.json.encode(seal).decode(),))
    tx.notify("jobs")
    tx.notify("schedules")


def _load(tx: Transaction, given: Sequence[Record]) -> int:
    return (
        _load_queues(tx, of_kind(given, QueueRecord))
        + load_rows(tx, codec.CODEC, given, _UNUSED_LOCK)
        + _load_jobs(tx, of_kind(given, Job))
        + _load_logs(tx, of_kind(given, LogLine))
    )


def _load_jobs(tx: Transaction, jobs: Sequence[Job]) -> int:
    known = {job.id for job in job_rows.get(tx, [job.id for job in jobs])}
    new = job_rows.insert(tx, job_rows.placed(tx, fresh_jobs(jobs, known)))
    keys.put(tx, new)
    return len(new)


def _load_logs(tx: Transaction, lines: Sequence[LogLine]) -> int:
    if not lines:
        return 0
    highest = max(line.number for line in lines)  # the numbers of new lines are higher
    tx.rows("SELECT setval('{ns}.log_number', %s) FROM {ns}.log_number WHERE last_value < %s", (highest, highest))
    rows = [(line.job_id, line.number, line.at, line.level, codec.text_of(line.text)) for line in lines]
    return tx.run(
        "INSERT INTO {ns}.log (seq, number, at, level, text) SELECT j.seq, w.number, w.at, w.level, w.text "
        "FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::text[]) "
        "AS w (id, number, at, level, text) JOIN {ns}.job j ON j.id = w.id ON CONFLICT DO NOTHING",
        columns_of(rows),
    )


def _load_queues(tx: Transaction, queues: Sequence[QueueRecord]) -> int:
    here = {info.name: info for info in queue_infos(tx)} if queues else {}
    return sum(
        load_queue(queue, here.get(queue.name), tx.counts, partial(write_pause, tx, queue.name, paused=True))
        for queue in queues
    )
