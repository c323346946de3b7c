"""Checks the lives of jobs: allowed moves, rising attempts, budgets, unique keys, and an end for every job."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rota.model.jobs.job import FIRST_STATES, MOVES, State, history_of
from rota.model.jobs.retry import MAX_DEATHS
from rota.testing.simulation.checks.leases import accepted
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.model.jobs.job import Job, Move
    from rota.testing.simulation.history import Call, History

NO_LOSS = "I1: every accepted job ends in exactly one final state"
LAWFUL = "I6: histories are paths of the state table"
RISING = "I6: attempts rise"
BUDGETS = "I9: failures and deaths stay within their budgets"
ONE_KEY = "I1: a key has at most one live job, and is free once that has ended"


def check_no_loss(history: History) -> list[Violation]:
    """Every job that was ever added is in a final state now, or was deleted from one."""
    violations = [
        Violation(NO_LOSS, history.calls[-1].step, f"{_brief(job)} never ended")
        for job in history.final_world().jobs.values()
        if job.is_live
    ]
    for call in history.calls:
        ends = {change.id for change in accepted(call) if change.state.is_final}
        violations += [
            Violation(NO_LOSS, call.step, f"{_brief(before)} was removed by {call.verb} before it had ended")
            for before, after in call.jobs
            if before is not None and after is None and before.is_live and before.id not in ends
            if not (call.verb == "exchange" and _awaits_its_schedule(before))  # the ledger has its entry
        ]
    return violations


def _awaits_its_schedule(job: Job) -> bool:
    """Whether the claim may find that another run is live: then the job is deleted, and the ledger has an entry."""
    return job.state is State.SCHEDULED and not job.lease_no and job.ahead is not None


def check_additions(history: History) -> list[Violation]:
    """Every job that a reply named as accepted exists; if the reply named another job instead, that job has the key."""
    violations: list[Violation] = []
    for call, world in history.replay():
        if call.verb == "add_jobs":
            made = {after.id for before, after in call.jobs if before is None and after is not None}
            lost = [added.id for added in call.reply if not added.existed and added.id not in made]
            violations += [Violation(NO_LOSS, call.step, f"{job_id} was accepted and is not there") for job_id in lost]
            ended = {job.id for job in map(world.jobs.get, _taken(call) - made) if job and not _has_key(job, call.at)}
            violations += [Violation(ONE_KEY, call.step, f"{job_id} keeps its key for ever") for job_id in ended]
    return violations


def check_moves(history: History) -> list[Violation]:
    """Each history only grows, each of its moves is allowed, and a final state changes only by hand."""
    return [violation for call in history.calls for violation in _unlawful(call)]


def check_budgets(history: History, retries_of: Callable[[Job], int]) -> list[Violation]:
    """At most one failure more than there are retries, and at most three deaths; each failure counts one."""
    violations: list[Violation] = []
    for call in history.calls:
        for before, after in call.jobs:
            if after is None or (before is not None and before.past is after.past):
                continue
            spent = _failed_attempts(history_of(after))
            most = retries_of(after) + 1
            is_off = after.is_live and after.failures != spent
            if is_off or max(after.failures, spent) > most or after.deaths > MAX_DEATHS:
                text = f"{_brief(after)}: {after.failures} failures ({spent} reported), {after.deaths} deaths"
                violations.append(Violation(BUDGETS, call.step, text))
        violations += _free_deaths(call)
    return violations


def check_keys(history: History) -> list[Violation]:
    """No two live jobs have the same key, or the slot of the same schedule, at any time."""
    violations: list[Violation] = []
    holders: dict[tuple[str, str], set[str]] = {}
    for call in history.calls:
        for before, after in call.jobs:
            for name in _taken_by(before):
                holders.setdefault(name, set()).discard(before.id if before else "")
            for name in _taken_by(after) if after is not None and after.is_live else ():
                holders.setdefault(name, set()).add(after.id if after else "")
        crowded = {name: ids for name, ids in holders.items() if len(ids) > 1}
        violations += [Violation(ONE_KEY, call.step, f"{name}: {sorted(ids)}") for name, ids in crowded.items()]
    return violations


def _taken_by(job: Job | None) -> list[tuple[str, str]]:
    """The key and the slot that a job has."""
    if job is None:
        return []
    named = (("key", job.key), ("slot", job.slot))
    return [(kind, name) for kind, name in named if name is not None]


def _free_deaths(call: Call) -> Iterator[Violation]:
    """Each rescue counts one death; nothing else does."""
    rescued = {change.id for change in accepted(call)} if call.verb == "rescue_jobs" else set()
    for before, after in call.jobs:
        by_hand = call.verb == "change_jobs" and before is not None and before.state.is_final
        if before is None or after is None or by_hand:
            continue
        if after.deaths != before.deaths + (after.id in rescued):
            yield Violation(BUDGETS, call.step, f"{_brief(after)}: {before.deaths} deaths became {after.deaths}")


def _taken(call: Call) -> set[str]:
    """The jobs that a reply names instead of new ones, because they have the key."""
    pairs = zip(call.args[0], call.reply, strict=True)
    return {added.id for new, added in pairs if added.existed and added.id != new.id}


def _has_key(job: Job, now: int) -> bool:
    return job.is_live or job.key_until > now


def _unlawful(call: Call) -> Iterator[Violation]:
    by_hand = {change.id for change in accepted(call)} if call.verb == "change_jobs" else set()
    for before, after in call.jobs:
        if after is not None:
            yield from _unlawful_lines(call, before, after)
        if before is not None and after is not None:
            yield from _unlawful_move(call, before, after, by_hand=after.id in by_hand)


def _unlawful_lines(call: Call, before: Job | None, after: Job) -> Iterator[Violation]:
    lines = history_of(after)
    old = history_of(before) if before is not None else []
    states = [line.state for line in lines]
    if lines[: len(old)] != old:
        yield Violation(LAWFUL, call.step, f"{_brief(after)}: its history changed from {old} to {lines}")
    if states[0] not in FIRST_STATES or any(to not in MOVES[start] for start, to in pairwise(states)):
        yield Violation(LAWFUL, call.step, f"{_brief(after)}: {' > '.join(states)}")
    if states[-1] is not after.state:
        yield Violation(LAWFUL, call.step, f"{_brief(after)}: its history ends with {states[-1]}")


def _unlawful_move(call: Call, before: Job, after: Job, *, by_hand: bool) -> Iterator[Violation]:
    if by_hand and before.state.is_waiting and after.state is not State.CANCELLED:
        yield Violation(LAWFUL, call.step, f"{_brief(before)} was retried by hand before it had ended")
    if before.state.is_final and after.is_live and not by_hand:
        yield Violation(LAWFUL, call.step, f"{_brief(before)} came back to life by {call.verb}")
    if after.attempts < before.attempts or after.lease_no < before.lease_no:
        yield Violation(RISING, call.step, f"{_brief(before)} became {_brief(after)}")


def _failed_attempts(lines: list[Move]) -> int:
    """Attempts that were reported as failed and to be retried, since the last retry by hand."""
    count = 0
    previous: State | None = None
    for line in lines:
        if previous is not None and previous.is_final:
            count = 0  # queued at once, or scheduled where its time is still to come
        if line.state is State.SCHEDULED and (line.data or {}).get("cause") == "retry":
            count += 1
        previous = line.state
    return count


def _brief(job: Job) -> str:
    return f"job {job.id} ({job.task}, {job.state}, lease {job.lease_no}, {job.attempts} attempts)"
