"""Spoilt jobs: what somebody or something has made unreadable is failed with the reason, and the others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.outcome import Undecodable
from rota.model.retry import RetryPolicy
from rota.model.settle import apply, claim, settle
from rota.model.state import State
from rota.store.redis.draft import Draft
from rota.store.redis.packing import lease_of, pack_record, standing_of
from rota.store.redis.places import moves
from rota.store.redis.wire import binary

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.store.redis.desk import Desk


def set_aside(desk: Desk, spoilt: Job, record: bytes | None, now: int) -> None:
    """Fail a job under the lease that it was claimed with. What was stored becomes its payload: nothing is lost."""
    (lease,) = desk.ask(["HGET", "lease", spoilt.id])
    if lease is None:
        return
    held = lease_of(lease)
    queued = msgspec.structs.replace(
        spoilt, payload=record or b"", state=State.QUEUED, created_at=now, run_at=now, finished_at=None, error=None
    )
    running = msgspec.structs.replace(claim(queued, held.holder, now, now), lease_no=held.number)
    failed = apply(settle(running, Undecodable(spoilt.error or ""), RetryPolicy(), now, 0.0))
    draft = Draft(desk, now)
    draft.expect(["HGET", "lease", spoilt.id], lease)
    draft.count_move(running, failed)
    draft.write("HSET", "job", spoilt.id, binary(b"%d" % spoilt.seq + pack_record(queued)))
    draft.write("HSET", "end", spoilt.id, binary(standing_of(failed)))
    for name in ("state", "lease", "cancel", "ready_at"):
        draft.write("HDEL", name, spoilt.id)
    for command in moves(None, failed):
        draft.write(*command)
    desk.commit("change", [draft], is_work=False)
