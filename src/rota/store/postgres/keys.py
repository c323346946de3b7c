"""Keeps unique keys and overlap slots. Each has a row while its job is live, or while a key holds for a period."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job
    from rota.store.postgres.transaction import Transaction

TABLES = {"key": "unique_key", "slot": "overlap_slot"}  # by the field of a job


def live(tx: Transaction, slots: Sequence[str]) -> dict[str, str]:
    """The live jobs in the slots of these schedules."""
    if not slots:
        return {}
    return dict(tx.rows("SELECT slot, id FROM {ns}.overlap_slot WHERE slot = ANY(%s)", (sorted(set(slots)),)))


def holders(tx: Transaction, keys: Sequence[str], now: int) -> dict[str, str]:
    """Which job holds which key; a key that only held for a period is freed once that is over."""
    if not keys:
        return {}
    rows = tx.rows(
        "SELECT k.key, k.id, k.seq, f.seq IS NOT NULL, coalesce(j.key_until, 0) FROM {ns}.unique_key k "
        "LEFT JOIN {ns}.job j ON j.seq = k.seq LEFT JOIN {ns}.finished f ON f.seq = k.seq WHERE k.key = ANY(%s)",
        (sorted(set(keys)),),
    )
    expired = [seq for _, _, seq, has_ended, until in rows if has_ended and until <= now]
    if expired:
        free(tx, "unique_key", expired)
        tx.run("UPDATE {ns}.finished SET key = NULL WHERE seq = ANY(%s)", (expired,))
    return {key: job_id for key, job_id, seq, _, _ in rows if seq not in expired}


def claim(tx: Transaction, jobs: Sequence[Job], now: int) -> dict[str, str]:
    """Take the keys of new jobs, before these are written; returns, by job, which other job was faster."""
    taken: dict[str, str] = {}
    wanted = {job.key: job for job in jobs if job.key}
    while wanted:
        names = sorted(wanted)
        got = tx.rows(
            "INSERT INTO {ns}.unique_key (key, seq, id) SELECT w.key, w.seq, w.id "
            "FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS w (key, seq, id) ORDER BY w.key "
            "ON CONFLICT (key) DO NOTHING RETURNING key",
            (names, [wanted[name].seq for name in names], [wanted[name].id for name in names]),
        )
        for (key,) in got:
            del wanted[key]
        for key, holder in holders(tx, list(wanted), now).items():
            taken[wanted.pop(key).id] = holder  # the others were freed meanwhile: try again
    return taken


def put(tx: Transaction, jobs: Sequence[Job], fields: Iterable[str] = TABLES) -> None:
    """Give keys and slots to jobs that have a position; in one order, so that no two transactions block each other."""
    for field in fields:
        rows = [(getattr(job, field), job.seq, job.id) for job in jobs if getattr(job, field)]
        tx.insert(TABLES[field], {field: "text", "seq": "bigint", "id": "text"}, sorted(rows))


def move(tx: Transaction, moved: Sequence[tuple[Job, Job]]) -> None:
    """Free what jobs had before a change, and give them what they have after it."""
    for field, table in TABLES.items():
        changed = [(before, after) for before, after in moved if getattr(before, field) != getattr(after, field)]
        free(tx, table, [before.seq for before, _ in changed if getattr(before, field)])
        put(tx, [after for _, after in changed], [field])


def free(tx: Transaction, table: str, seqs: Sequence[int]) -> None:
    if seqs:
        tx.run(f"DELETE FROM {{ns}}.{table} WHERE seq = ANY(%s)", (list(seqs),))
