"""Checks that no claim takes a job while a better one that was ready before is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.testing.simulation.checks.leases import accepted
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.jobs.job import Job
    from rota.testing.simulation.history import Call, History, World

BEST_FIRST = "I8: a claim never takes a job while a better ready one stays"


def check_claims(history: History) -> list[Violation]:
    """Higher priority first, then older first, over all queues asked for; nothing of a paused queue."""
    paused: set[str] = set()
    violations: list[Violation] = []
    for call, world in history.replay():
        if call.verb == "pause_queue":
            queue, is_paused = call.args
            (paused.add if is_paused else paused.discard)(queue)
        if call.verb == "exchange" and call.args[0].want > 0:
            violations += _claim_faults(call, world, paused)
    return violations


def _claim_faults(call: Call, world: World, paused: set[str]) -> Iterator[Violation]:
    ask, claimed = call.args[0], call.reply.claimed
    taken = {job.id for job in claimed}
    settled = {change.id for change in accepted(call)}
    decided = set(_decided_away(call))
    left = [
        job
        for job in world.jobs.values()
        if job.queue in ask.queues
        and job.queue not in paused
        and job.id not in taken
        and job.id not in settled
        and job.id not in decided
        and _is_ready(job, call.at)
    ]
    if len(claimed) < ask.want and left:
        yield Violation(BEST_FIRST, call.step, f"{ask.holder} got {len(claimed)} of {ask.want}, {left[0].id} was ready")
    worst = max((_rank(job) for job in claimed), default=None)
    better = [job for job in left if worst is not None and _rank(job) < worst]
    if better:
        yield Violation(BEST_FIRST, call.step, f"{ask.holder} took {taken} while {better[0].id} was ready")
    strange = (job for job in claimed if job.queue in paused or job.queue not in ask.queues)
    early = (job for job in claimed if job.run_at > call.at + ask.ahead and not _was_queued(job, world))
    wrong = [*strange, *early]
    if wrong:
        yield Violation(BEST_FIRST, call.step, f"{ask.holder} claimed {wrong[0].id}, which cannot be claimed now")


def _decided_away(call: Call) -> Iterator[str]:
    """Jobs created before they were due that this claim refused (catch-up, overlap, a key): they were not ready."""
    for before, after in call.jobs:
        if before is not None and before.ahead is not None and (after is None or after.state is State.HELD):
            yield before.id


def _is_ready(job: Job, now: int) -> bool:
    return job.state is State.QUEUED or (job.state is State.SCHEDULED and job.run_at <= now)


def _was_queued(job: Job, world: World) -> bool:
    """Whether it had become ready before: it was claimed early, or returned then."""
    before = world.jobs.get(job.id)
    return before is not None and before.state is State.QUEUED


def _rank(job: Job) -> tuple[int, int]:
    return -job.priority, job.seq
