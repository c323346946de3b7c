"""Changes by hand to one job or to thousands: which jobs they fit, and how they are made, a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.cli.where import matching_jobs
from rota.cli.words import count, listed
from rota.errors import JobNotFound, Refused
from rota.model.collection import collection_of
from rota.model.settle import cancel, retry_by_hand
from rota.model.state import FINAL, WAITING, State
from rota.operations.audit import Deed, add_deeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.model.job import Job
    from rota.store.contract import JobFilter, Store

BATCH = 200


class Done(NamedTuple):
    """The jobs of a batch that took the change."""

    changed: list[Job]
    stopping: int = 0  # of them, running jobs that were asked to stop


class Verb(NamedTuple):
    """A change that is made by hand."""

    name: str
    done: str
    states: frozenset[State]  # of jobs that it fits
    act: Callable[[Store, Sequence[Job], str], Done]
    instead: str  # what to do about a job that it does not fit


class Tally(NamedTuple):
    """What came of it."""

    changed: int
    left: int  # jobs that moved meanwhile, and were left alone
    stopping: int


def _retry(store: Store, jobs: Sequence[Job], reason: str) -> Done:
    now = store.now()
    refused = {refusal.id for refusal in store.change_jobs([retry_by_hand(job, now, reason) for job in jobs])}
    return Done([job for job in jobs if job.id not in refused])


def _cancel(store: Store, jobs: Sequence[Job], reason: str) -> Done:
    """Waiting jobs end at once; running ones are asked to stop."""
    now = store.now()
    waiting = [cancel(job, now, reason) for job in jobs if job.state is not State.RUNNING]
    running = [job.id for job in jobs if job.state is State.RUNNING]
    refused = {refusal.id for refusal in store.change_jobs(waiting)} if waiting else set()
    stopping = set(store.request_cancels(running, reason)) if running else set()
    ended = {change.job.id for change in waiting} - refused
    return Done([job for job in jobs if job.id in ended | stopping], len(stopping))


def _delete(store: Store, jobs: Sequence[Job], reason: str) -> Done:
    del reason  # nothing is left that could carry it
    gone = set(store.delete_jobs([job.id for job in jobs]))
    return Done([job for job in jobs if job.id in gone])


RETRY = Verb(
    "retry", "retried", FINAL - {State.SUCCEEDED}, _retry, "to run a job that succeeded again, enqueue it again"
)
CANCEL = Verb("cancel", "cancelled", WAITING | {State.RUNNING}, _cancel, "a job that has ended can only be deleted")
DELETE = Verb("delete", "deleted", FINAL, _delete, "cancel a job first, then delete it")


def fitting(verb: Verb, where: JobFilter) -> JobFilter:
    """The filter, narrowed to the jobs that a verb fits."""
    states = verb.states & set(where.states) if where.states else verb.states
    if not states:
        raise Refused(
            f"{listed([state.value for state in where.states], 'or')} jobs cannot be {verb.done}, only "
            f"{_fitting_states(verb)} ones; {verb.instead}"
        )
    return msgspec.structs.replace(where, states=tuple(sorted(states)))


def matching_ids(store: Store, verb: Verb, where: JobFilter) -> list[str]:
    """All that match now: what is made later is none of them. Tasks of collections are never retried."""
    found = matching_jobs(store, where)
    return [job.id for job in found if verb is not RETRY or collection_of(job) is None]


def check_ids(store: Store, verb: Verb, ids: Sequence[str]) -> list[str]:
    """The jobs that were named, all of them or an error: nothing is half done."""
    found = {job.id: job for job in store.get_jobs(ids)}
    for job_id in ids:
        if job_id not in found:
            raise JobNotFound(f"no job has the id {job_id!r}; it may have been pruned. Nothing was {verb.done}")
        state = found[job_id].state
        if state not in verb.states:
            raise Refused(
                f"job {job_id} is {state}; only {_fitting_states(verb)} jobs can be {verb.done}, and {verb.instead}"
            )
        if verb is RETRY:
            retry_by_hand(found[job_id], 0, "")  # refuses the task of a collection, and says what to do
    return list(found)


def carry_out(store: Store, verb: Verb, ids: Sequence[str], reason: str, by: str, tell: Callable[[int], None]) -> Tally:
    """Make the change, looking at each job once more before; `tell` hears how many were dealt with."""
    changed = stopping = 0
    for batch in _batches(ids):
        jobs = [job for job in store.get_jobs(batch) if job.state in verb.states]
        done = verb.act(store, jobs, reason)
        _note(store, verb, done, reason, by)
        changed, stopping = changed + len(done.changed), stopping + done.stopping
        tell(len(batch))
    return Tally(changed, len(ids) - changed, stopping)


def _note(store: Store, verb: Verb, done: Done, reason: str, by: str) -> None:
    """Keep who did it, of each job."""
    after = {} if verb is DELETE else {"reason": reason}
    deeds = [Deed(job.id, verb.done, {"state": job.state.value, "task": job.task}, after) for job in done.changed]
    if deeds:
        add_deeds(store, "job", deeds, by)


def sentence(verb: Verb, tally: Tally) -> str:
    """retried 3 jobs"""
    ended = tally.changed - tally.stopping
    words = [f"{verb.done} {count(ended, 'job')}"] if ended or not tally.stopping else []
    if tally.stopping:
        words.append(f"asked {count(tally.stopping, 'running job')} to stop")
    return "; ".join(words)


def _fitting_states(verb: Verb) -> str:
    return listed([state.value for state in State if state in verb.states], "or")


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]
