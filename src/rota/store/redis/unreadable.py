"""Fails a job whose record cannot be read, with the reason, so that the others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.outcome import Undecodable
from rota.model.retry import RetryPolicy
from rota.model.settle import apply, claim, settle
from rota.model.state import State
from rota.store.redis.codec import binary, lease_of, pack_record, standing_of
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.indexes import index_commands

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.store.redis.guarded_writer import GuardedWriter


def fail_unreadable(writer: GuardedWriter, job: Job, record: bytes | None, now: int) -> None:
    """Fail a job under the lease that it was claimed with. What was stored becomes its payload: nothing is lost."""
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
