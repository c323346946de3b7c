"""Settles jobs and claims jobs, in one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.series import count_runs, minute_of
from rota.model.jobs.settle import apply, claim
from rota.model.schedules.occurrence import noted
from rota.store.contract import FEWEST_REPEATED, MOST_PROMOTED, Exchanged, Refusal
from rota.store.redis.codec import (
    UNKNOWN_LAST,
    UNREADABLE,
    binary,
    claimed_job,
    fence_of,
    pack_last,
    pack_standing,
    unreadable,
    waiting_job,
)
from rota.store.redis.indexes import runs_of, settle_commands
from rota.store.redis.upkeep import fail_unreadable
from rota.store.shared.matching import is_held_by

if TYPE_CHECKING:
    from rota.model.jobs.job import Job, State
    from rota.model.jobs.settle import Change
    from rota.store.contract import Exchange
    from rota.store.redis.changing import Changer
    from rota.store.redis.connection import Reply
    from rota.store.redis.fast.direct_claims import DirectClaims
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.lookahead import LookaheadDecider

    # Lease number, queue, state, priority and whether the job is deleted: their number in a request.
    Kinds = dict[tuple[int, str, State, int, bool], int]

WAITS_FOR = 2_500_000  # microseconds that an idle worker is registered as waiting: a little more than the default poll
MOST_CLAIMED = 2_000  # jobs in one call: a script must not block the server for long


class Exchanger:
    """Records what workers did, and gives them jobs."""

    def __init__(
        self, writer: GuardedWriter, changer: Changer, lookahead: LookaheadDecider, direct_claims: DirectClaims
    ) -> None:
        self._writer = writer
        self._changer = changer
        self._lookahead = lookahead
        self._direct_claims = direct_claims

    def exchange(self, request: Exchange, now: int | None) -> Exchanged:
        """One round trip. More are needed if an end releases other jobs or adds to a ledger, if a job succeeded that
        was asked to stop, and if a job is due that its schedule created before it was."""
        direct: list[Job] = []
        try:
            return self._exchange(request, direct, now)
        except BaseException:
            self._direct_claims.restore(request.holder, direct)
            raise

    def _exchange(self, request: Exchange, direct: list[Job], now: int | None) -> Exchanged:
        """Exchange. `direct` receives the job that was claimed for this worker and that no message has brought."""
        settled = request.settled
        reply = self._call(request, direct, settled, now)
        refused, left = reply.body[:2]
        refusals = [Refusal(settled[n - 1].id, why.decode(), reason.decode()) for n, why, reason in refused]
        others = {*left, *(n for n, _, _ in refused)}  # the runs of all were counted, or of none
        uncounted = count_runs(change for n, change in enumerate(settled, 1) if n not in others) if others else []
        if uncounted:  # before anything else fails: if these are reported again, they are refused
            self._writer.write(["RUNS", minute_of(reply.now), runs_of(uncounted)])
        if left:
            rest = [settled[number - 1] for number in left]
            refusals += self._changer.apply(
                "exchange", rest, lambda change, job, _: is_held_by(request.holder, change, job), now=now
            )
            reply = self._call(request, direct, [], now)
        if lookahead := reply.body[4]:
            self._lookahead.decide(lookahead, now)
            reply = self._call(request, direct, [], now, has_decided=True)
        raw, next_due_at = reply.body[2:4]
        jobs = self._claimed(raw, request.holder, reply.now) if raw else []
        due = None if next_due_at is None else int(next_due_at)
        return Exchanged(now=reply.now, refused=refusals, claimed=[*direct, *jobs], next_due_at=due)

    def _call(
        self, request: Exchange, direct: list[Job], settled: list[Change], now: int | None, *, has_decided: bool = False
    ) -> Reply:
        kinds: Kinds = {}
        rows = [_settled(change, kinds) for change in settled]
        reply = self._writer.connection.call(
            "exchange",
            verb="exchange",
            now=now,
            is_work=request.want > 0,
            holder=request.holder,
            kinds=[(fence_of(number, request.holder), *kind) for number, *kind in kinds],
            settled=rows,
            runs=runs_of(count_runs(settled)),
            want=min(request.want - len(direct), MOST_CLAIMED),
            queues=list(dict.fromkeys(request.queues)),
            lease_for=request.lease_for,
            most_promoted=MOST_PROMOTED,
            has_decided=has_decided,
            ahead=request.ahead,
            channel=self._direct_claims.channel if request.is_idle else None,
            waits_for=WAITS_FOR,
            known=self._direct_claims.last_taken(request.holder),
        )
        if reply.body[5] is not None:
            *raw, claimed_at = reply.body[5]
            for job in self._claimed(raw, request.holder, int(claimed_at)):
                direct += self._direct_claims.take_returned(request.holder, job)
        return reply

    def _claimed(self, raw: list[Any], holder: str, now: int) -> list[Job]:
        """Claimed jobs; one that cannot be read is failed with the reason, and the others go on."""
        ids, queues, records, standings, ready, till = raw
        until, none = int(till), [None] * len(ids)
        jobs = []
        for name, queue, record, standing, since in zip(
            ids, queues, records, standings or none, ready or none, strict=True
        ):
            job_id = name.decode()
            try:
                if standing is None and since is None:
                    jobs.append(claimed_job(job_id, record, holder, now, until))
                else:
                    jobs.append(claim(waiting_job(job_id, record, standing, since), holder, now, until))
            except UNREADABLE as err:
                fail_unreadable(self._writer, unreadable(job_id, record, err, queue.decode()), record, now)
        return jobs


def _settled(change: Change, kinds: Kinds) -> tuple[Any, ...]:
    """A change as the script takes it, with the number of its kind; the last parts only if there is more to record."""
    job, finished_at = change.job, change.finished_at
    kind = (job.lease_no, job.queue, change.state, job.priority, change.is_removal)
    settled = (
        job.id,
        kinds.setdefault(kind, len(kinds) + 1),
        binary(pack_standing(change, job, None if finished_at is None else job.holder)),
        change.run_at if finished_at is None else finished_at,
        job.seq,
    )
    is_repeated = change.attempts >= FEWEST_REPEATED
    if job.schedule_id is None and job.key is None and job.slot is None and not (change.is_removal or is_repeated):
        return settled
    if change.is_removal and job.schedule_id is not None and job.fire_at:
        return (*settled, job.schedule_id, False)  # it adds to a ledger
    commands = settle_commands(job, None if change.is_removal else apply(change))
    if change.is_last_run:
        commands.append(["LAST", job.schedule_id, pack_last(noted(UNKNOWN_LAST, change))])
    if change.is_removal:
        commands += [["HDEL", "job", job.id], ["HDEL", "progress", job.id], ["UNLINK", f"log:{job.id}"]]
    return (*settled, job.schedule_id or False, commands)
