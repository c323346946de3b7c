"""Prunes what was kept long enough, recounts, and fails jobs whose records cannot be read."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from rota.model.jobs.job import NewJob
from rota.model.jobs.series import first_kept, last_kept
from rota.model.micros import SECOND
from rota.store.contract import Pruned
from rota.store.redis.codec import TIME_WIDTH, audit_key, lease_of
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.operations import counts_of
from rota.store.shared.pruning import Ended, jobs_to_prune
from rota.store.shared.unpacking import unreadable_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.jobs.job import Job, State
    from rota.store.contract import Retention
    from rota.store.redis.changing import Changer
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.listing import Listing

COUNTERS = ["HGETALL", "count"]
STEP = 1_000  # jobs in one call
LOOK_AGAIN = 3600 * SECOND  # after this, jobs that a key kept are looked at again: others may be among them


class Kept(NamedTuple):
    """Until when all jobs of a state that ended before an instant are kept by their keys, as one call found it."""

    seen_at: int
    until: int
    ended_before: int


class Upkeep:
    """Keeps the store small and its counters exact."""

    def __init__(self, writer: GuardedWriter, listing: Listing, changer: Changer) -> None:
        self._writer = writer
        self._listing = listing
        self._changer = changer
        self._kept: dict[State, Kept] = {}
        self._ledger_after = ""  # the schedule whose ledger was pruned last

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        found = self._writer.snapshot((), COUNTERS, now=now)
        at = found.now
        ended = counts_of(found.answer(COUNTERS)).ended()
        ids = jobs_to_prune(retention, limit, at, ended, lambda *asked: self._ended(at, *asked))
        removed = self._changer.remove("prune", ids, lambda job: job.state.is_final and job.key_until <= at)
        entries, nodes, reached, records = self._writer.connection.call(
            "prune",
            is_work=True,
            after=self._ledger_after,
            limit=limit,
            before=str(at - retention.occurrences_for),
            most=retention.most_occurrences,
            first_minute=str(first_kept(at)),
            last_minute=str(last_kept(at)),
            silent_since=str(at - retention.nodes_for),
            audit_until=audit_key(max(0, at - retention.audit_for + 1)),
            width=TIME_WIDTH,
        ).body
        self._ledger_after = reached.decode()
        return Pruned(jobs=len(removed), occurrences=entries, nodes=nodes, audit_records=records)

    def _ended(self, now: int, state: State, through: int, limit: int) -> list[Ended]:
        """The first of a state to have ended; those whose key still holds are left. The index knows no positions: all
        that ended when the last of them did are read."""
        kept = self._kept.get(state)
        if kept is None or not kept.seen_at <= now < kept.until:
            kept = Kept(seen_at=now, until=now + LOOK_AGAIN, ended_before=0)
        found: list[Ended] = []
        for jobs in self._read_ended(state, kept.ended_before, through, min(STEP, max(limit, 50))):
            found += [Ended(job.finished_at or 0, job.seq, job.id) for job in jobs if job.key_until <= now]
            reached = jobs[-1].finished_at or 0
            if not found:
                until = min(kept.until, *(job.key_until for job in jobs))
                kept = kept._replace(until=until, ended_before=reached)
            if len(found) >= limit and reached > sorted(found)[limit - 1].finished_at:
                break
        self._kept[state] = kept
        return sorted(found)[:limit]

    def _read_ended(self, state: State, start: int, through: int, size: int) -> Iterator[list[Job]]:
        """Pages of jobs that ended so, in the order of their ends."""
        for turn in count():
            page = ["LIMIT", turn * size, size]
            (ids,) = self._writer.read(["ZRANGEBYSCORE", f"ended:{state.value}", start, through, *page])
            jobs = self._listing.get_jobs([job_id.decode() for job_id in ids])
            if mine := [job for job in jobs if job.state is state and (job.finished_at or 0) <= through]:
                yield mine
            if len(ids) < size:
                return

    def recount(self) -> dict[str, int]:
        """How far the counters are from the jobs, read page by page: exact while nothing changes."""
        counted = [(job.queue, job.state) for job in self._listing.oldest_jobs()]
        return counts_of(*self._writer.read(COUNTERS)).differences(counted)


def fail_unreadable(writer: GuardedWriter, job: Job, record: bytes | None, now: int) -> None:
    """Fail a job under the lease that it was claimed with, so that the others go on. Its stored record becomes its
    payload: nothing is lost."""
    write = GuardedWrite(writer)
    (lease,) = write.read(["HGET", "lease", job.id])
    if lease is None:
        return
    held = lease_of(lease)
    new = NewJob(id=job.id, task=job.task, payload=record or b"", queue=job.queue)
    write.replace_unreadable(
        unreadable_job(new, job.error or "", seq=job.seq, at=now, holder=held.holder, lease_no=held.number)
    )
    for name in ("state", "lease", "cancel", "ready_at"):
        write.add_command("HDEL", name, job.id)
    writer.commit("change", [write], is_work=False)
