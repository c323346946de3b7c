"""What workers do: settle and claim in one round trip, renew leases, say how far they are."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from rota.failpoints import reach
from rota.model.occurrence import is_noted, noted
from rota.model.settle import claim, promote
from rota.store.contract import MOST_PROMOTED, Exchange, Exchanged, Extended, Refusal
from rota.store.redis.desk import text_of
from rota.store.redis.packing import (
    UNKNOWN_LAST,
    UNREADABLE,
    claimed_job,
    fence_of,
    pack_last,
    pack_standing,
    unreadable,
    waiting_job,
)
from rota.store.redis.sheaves import LEAST_SHEAF, sorted_out
from rota.store.redis.spoilt import set_aside
from rota.store.redis.wire import binary
from rota.store.shared.matching import is_held_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.model.settle import Change
    from rota.store.redis.changing import Changer
    from rota.store.redis.desk import Desk
    from rota.store.redis.judging import Judge
    from rota.store.redis.link import Reply

MOST_WANTED = 2_000  # jobs that one claim takes at most: a script must not hold up the others for long


class Exchanger:
    """Where workers bring what they did and take what is next."""

    def __init__(self, desk: Desk, changer: Changer, judge: Judge) -> None:
        self._desk = desk
        self._link = desk.link
        self._changer = changer
        self._judge = judge

    def exchange(self, ask: Exchange, now: int | None) -> Exchanged:
        """One round trip; some more where an end sets others in motion or leaves a line in a ledger, where a job was
        asked to stop and returned all the same, and where a job that was made ahead is due."""
        groups, others = sorted_out(ask.settled, ask.holder)
        later = _later(others)
        at_once = [change for change in others if change.id not in later]
        reply = self._exchange(ask, groups, at_once, 0 if later else ask.want, now)
        refused, apart, *taken = reply.body
        refusals = [Refusal(job_id.decode(), why.decode(), reason.decode()) for job_id, why, reason in refused]
        if later or apart:
            left = {(job_id.decode(), fence.decode(), state.decode()) for job_id, fence, state in apart}
            rest = [change for change in ask.settled if change.id in later or _drop(left, change, ask.holder)]
            refusals += self._settle_apart(ask, rest, now)
            reply = self._exchange(ask, [], [], ask.want, now)
            taken = reply.body[2:]
        claimed, next_due_at, ahead = taken
        if ahead:
            self._judge.judge(ahead, now)
            reply = self._exchange(ask, [], [], ask.want, now, has_judged=True)
            claimed, next_due_at, _ = reply.body[2:]
        jobs = self._claimed(claimed, ask.holder, reply.now) if claimed else []
        due = None if next_due_at is None else int(next_due_at)
        return Exchanged(now=reply.now, refused=refusals, claimed=jobs, next_due_at=due)

    def _exchange(
        self,
        ask: Exchange,
        groups: list[dict[str, Any]],
        others: Sequence[Change],
        want: int,
        now: int | None,
        *,
        has_judged: bool = False,
    ) -> Reply:
        reach("exchange.before_commit")
        reply = self._link.call(
            "exchange",
            now=text_of(now),
            is_work=ask.want > 0,
            holder=ask.holder,
            groups=groups,
            settled=[_settled(change, ask.holder) for change in others],
            want=min(want, MOST_WANTED),
            queues=list(dict.fromkeys(ask.queues)),
            lease_for=ask.lease_for,
            most_promoted=MOST_PROMOTED,
            least_sheaf=LEAST_SHEAF,
            has_judged=has_judged,
            ahead=ask.ahead,
        )
        reach("exchange.after_commit")
        return reply

    def _settle_apart(self, ask: Exchange, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        return self._changer.change(
            "exchange", changes, lambda change, job, _: is_held_by(ask.holder, change, job), now=now
        )

    def _claimed(self, raw: list[Any], holder: str, now: int) -> list[Job]:
        """Claimed jobs put together; one that cannot be read is failed with the reason, and the others go on."""
        ids, queues, records, standings, ready, till = raw
        until = int(till)
        if not standings and not ready:
            with suppress(*UNREADABLE):
                names = b" ".join(ids).decode().split(" ")
                return [claimed_job(*one, holder, now, until) for one in zip(names, records, strict=True)]
        jobs = []
        for n, record in enumerate(records):
            job_id = ids[n].decode()
            try:
                job = waiting_job(job_id, record, standings[n] if standings else None)
                if ready and ready[n] is not None:
                    job = promote(job, int(ready[n]))
                jobs.append(claim(job, holder, now, until))
            except UNREADABLE as err:
                queue = queues[n if len(queues) > 1 else 0].decode()
                spoilt = unreadable(job_id, record, err)
                set_aside(self._desk, msgspec.structs.replace(spoilt, queue=queue), record, now)
        return jobs

    def extend(self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None) -> Extended:
        if leases:
            reach("extend.before_commit")
        reply = self._link.call(
            "extend",
            now=text_of(now),
            holder=holder,
            ids=[job_id for job_id, _ in leases],
            fences=[fence_of(lease_no, holder) for _, lease_no in leases],
            lease_for=lease_for,
        )
        if leases:
            reach("extend.after_commit")
        lost, asked = reply.body
        told = [part.decode() for part in asked]
        cancels = dict(zip(told[::2], told[1::2], strict=True))
        return Extended(now=reply.now, lost=[job_id.decode() for job_id in lost], cancels=cancels)

    def record_progress(self, holder: str, notes: Sequence[tuple[str, int, str]]) -> None:
        if notes:
            fenced = [(job_id, fence_of(lease_no, holder), text) for job_id, lease_no, text in notes]
            self._link.call("progress", notes=fenced)

    def request_cancels(self, ids: Sequence[str], reason: str) -> list[str]:
        asked = self._link.call("cancel", ids=list(ids), reason=reason or "cancelled").body
        return [job_id.decode() for job_id in asked]


def _leaves_a_line(change: Change) -> bool:
    """Whether the job goes with its end and its occurrence must be folded into a ledger."""
    return change.is_removal and change.job.schedule_id is not None and change.job.fire_at is not None


def _later(changes: Sequence[Change]) -> set[str]:
    """The jobs that are settled in a step of their own, and those of the same schedule that come behind them: it must
    hear of its jobs' ends in their order."""
    later: set[str] = set()
    schedules: set[str | None] = set()
    for change in changes:
        if _leaves_a_line(change) or change.job.schedule_id in schedules:
            later.add(change.id)
            schedules.add(change.job.schedule_id)
    return later


def _drop(left: set[tuple[str, str, str]], change: Change, holder: str) -> bool:
    """Whether this is a change that the script left to us: of several under one lease, the first to its state."""
    name = (change.id, fence_of(change.job.lease_no, holder), change.state.value)
    if name not in left:
        return False
    left.remove(name)
    return True


def _standing(change: Change) -> bytes:
    return pack_standing(change, change.job, change.job.holder if change.state.is_final else None)


def _settled(change: Change, holder: str) -> tuple[Any, ...]:
    """One change by itself."""
    job, state = change.job, change.state
    is_final = state.is_final
    settled = (
        job.id,
        fence_of(job.lease_no, holder),
        job.queue,
        state,
        binary(_standing(change)),
        change.finished_at if is_final else change.run_at,
        job.seq,
        str(job.priority),
    )
    if not is_noted(change) and not (is_final and (job.key or job.slot or change.is_removal)):
        return settled
    freed = job.key if job.key != change.key else None
    left = job.slot if job.slot != change.slot else None
    last = pack_last(noted(UNKNOWN_LAST, change)) if is_noted(change) else None
    return (*settled, freed, job.schedule_id, last, job.task if change.is_removal else None, left)
