"""Prunes what was kept long enough, recounts, and fails jobs whose records cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.outcome import Undecodable
from rota.model.retry import RetryPolicy
from rota.model.settle import apply, claim, settle
from rota.model.state import FINAL, State
from rota.store.contract import Pruned
from rota.store.redis.codec import TIME_WIDTH, audit_key, binary, lease_of, pack_record, standing_of
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.indexes import index_commands
from rota.store.redis.listing import ALL_JOBS, BEYOND
from rota.store.redis.operations import counts_of
from rota.store.shared.pruning import Ended, jobs_to_prune

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.contract import Retention
    from rota.store.redis.changing import Changer
    from rota.store.redis.guarded_writer import GuardedWriter
    from rota.store.redis.listing import Listing

MOST_SKIPPED = 10  # batches of jobs that a key keeps, in one call of prune
STEP = 1_000  # jobs in one call


class Upkeep:
    """Keeps the store small and its counters exact."""

    def __init__(self, writer: GuardedWriter, listing: Listing, changer: Changer) -> None:
        self._writer = writer
        self._listing = listing
        self._changer = changer
        self._ledger_after = ""  # the schedule whose ledger was pruned last

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        found = self._writer.snapshot((), ["HGETALL", "count"], now=now)
        at = found.now
        ended = _number_ended(found.answers[0])
        ids = jobs_to_prune(retention, limit, at, ended, lambda *asked: self._ended(at, *asked))
        removed = self._changer.remove("prune", ids, lambda job: job.state.is_final and job.key_until <= at)
        entries, nodes, reached, records = self._writer.connection.call(
            "prune",
            is_work=True,
            after=self._ledger_after,
            limit=limit,
            before=str(at - retention.occurrences_for),
            most=retention.most_occurrences,
            silent_since=str(at - retention.nodes_for),
            audit_until=audit_key(max(0, at - retention.audit_for + 1)),
            width=TIME_WIDTH,
        ).body
        self._ledger_after = reached.decode()
        return Pruned(len(removed), entries, nodes, records)

    def _ended(self, now: int, state: State, through: int, limit: int) -> list[Ended]:
        """The first of a state to have ended; those whose key still holds are left."""
        found: list[Ended] = []
        size = min(STEP, max(limit, 50))
        for turn in range(MOST_SKIPPED):
            if len(found) >= limit:
                break
            (ids,) = self._writer.read(
                ["ZRANGEBYSCORE", f"ended:{state.value}", "-inf", through, "LIMIT", turn * size, size]
            )
            jobs = [job for job in self._listing.get_jobs([job_id.decode() for job_id in ids]) if job.state is state]
            free = (job for job in jobs if job.key_until <= now and (job.finished_at or now) <= through)
            found += [Ended(job.finished_at or 0, job.seq, job.id) for job in free]
            if len(ids) < size:
                break
        return sorted(found)[:limit]

    def recount(self) -> dict[str, int]:
        """How far the counters are from the jobs, read page by page: exact while nothing changes."""
        counted: list[tuple[str, State]] = []
        below, is_last = BEYOND, False
        while not is_last:
            jobs, below, is_last = self._listing.read_step(ALL_JOBS, below, 0, STEP)
            counted += [(job.queue, job.state) for job in jobs]
        return counts_of(self._writer.read(["HGETALL", "count"])[0]).differences(counted)


def _number_ended(rows: Sequence[bytes]) -> int:
    """How many ended jobs are kept."""
    states = {state.value.encode() for state in FINAL}
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return sum(int(number) for name, number in pairs if name.rpartition(b"|")[2] in states)


def fail_unreadable(writer: GuardedWriter, job: Job, record: bytes | None, now: int) -> None:
    """Fail a job under the lease that it was claimed with, so that the others go on. Its stored record becomes its
    payload: nothing is lost."""
    (lease,) = writer.read(["HGET", "lease", job.id])
    if lease is None:
        return
    held = lease_of(lease)
    queued = msgspec.structs.replace(
        job, payload=record or b"", state=State.QUEUED, created_at=now, run_at=now, finished_at=None, error=None
    )
    running = msgspec.structs.replace(claim(queued, held.holder, now, now), lease_no=held.number)
    failed = apply(settle(running, Undecodable(job.error or ""), RetryPolicy(), now, 0.0))
    write = GuardedWrite(writer, now)
    write.guard(["HGET", "lease", job.id], lease)
    write.count_end(running, failed)
    write.add_command("HSET", "job", job.id, binary(b"%d" % job.seq + pack_record(queued)))
    write.add_command("HSET", "end", job.id, binary(standing_of(failed)))
    for name in ("state", "lease", "cancel", "ready_at"):
        write.add_command("HDEL", name, job.id)
    for command in index_commands(job.id, None, failed):
        write.add_command(*command)
    writer.commit("change", [write], is_work=False)
