"""The block index: which queues, tasks and times occur in each block of 1,000 positions. Lists by them read it.

Writers enter their jobs in the same transaction, see `index_blocks` and `index_times` in the schema. Upkeep deletes
entries of jobs that are gone. An entry may be stale, never missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.store.postgres.transaction import Transaction

BLOCK = 1000  # positions; the schema's functions say the same
SLICE = 600 * SECOND  # of time
_LATEST = 2**62  # after every time
_MOST_CHECKED = 500  # entries in one round of upkeep

_ADVANCE = (
    "UPDATE {ns}.block_index_upkeep u SET settled = CASE WHEN u.since < s.oldest THEN u.coming ELSE u.settled END, "
    "coming = CASE WHEN u.since < s.oldest OR u.since > s.own THEN %s ELSE u.coming END, "
    "since = CASE WHEN u.since < s.oldest OR u.since > s.own THEN s.own ELSE u.since END "
    "FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS oldest, pg_current_xact_id() AS own) s "
    "RETURNING u.settled, u.queue, u.task, u.block"
)
_NEXT = (
    "SELECT b.ctid::text, b.queue, b.task, b.block, b.block < %s AND NOT EXISTS ("
    f"SELECT FROM {{ns}}.job j WHERE j.seq >= b.block * {BLOCK} AND j.seq < b.block * {BLOCK} + {BLOCK} "
    "AND j.queue = b.queue AND j.task = b.task) "
    "FROM (SELECT x.ctid, x.queue, x.task, x.block FROM {ns}.block_index x "
    "WHERE (x.queue, x.task, x.block) > (%s, %s, %s) ORDER BY x.queue, x.task, x.block LIMIT %s) b"
)


def positions(tx: Transaction, since: int | None, until: int | None) -> range:
    """The positions between which all jobs are that were created in since <= t < until."""
    slices = (0 if since is None else since // SLICE, _LATEST if until is None else (until - 1) // SLICE)
    query = "SELECT min(block), max(block) FROM {ns}.time_block WHERE slice BETWEEN %s AND %s"
    ((first, last),) = tx.rows(query, slices)
    return range(0) if first is None else range(first * BLOCK, (last + 1) * BLOCK)


def prune(tx: Transaction) -> None:
    """Delete entries without a job. A bounded number is checked, and the next call goes on.

    An open transaction may rely on an entry for jobs that nobody else can see yet. So an entry is deleted only if no
    transaction is open that began before the positions of its block were all drawn.
    """
    drawn = tx.rows("SELECT last_value FROM {ns}.job_seq_seq")[0][0]  # before this transaction has its id
    if tx.row("SELECT FROM {ns}.block_index_upkeep FOR UPDATE SKIP LOCKED") is None:
        return  # another process does it
    ((settled, *checked),) = tx.rows(_ADVANCE, (drawn // BLOCK,))
    found = tx.rows(_NEXT, (settled, *checked, _MOST_CHECKED))
    stale = [row_id for row_id, _, _, _, is_stale in found if is_stale]
    tx.run("DELETE FROM {ns}.block_index WHERE ctid = ANY(%s::tid[])", (stale,))
    first = f"(SELECT min(seq) / {BLOCK} FROM {{ns}}.job)"
    tx.run(f"DELETE FROM {{ns}}.time_block WHERE block < %s AND block < {first}", (settled,))
    queue, task, block = found[-1][1:4] if len(found) == _MOST_CHECKED else ("", "", 0)
    tx.run("UPDATE {ns}.block_index_upkeep SET queue = %s, task = %s, block = %s", (queue, task, block))
