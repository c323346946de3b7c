"""Applies changes by hand to one job or to thousands, in batches, and decides which jobs they fit."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.errors import JobNotFound, Refused
from rota.inspector.search import found_jobs
from rota.model.collection import collection_of
from rota.model.jobs.job import FINAL, WAITING, State
from rota.model.jobs.settle import cancel, retry_by_hand
from rota.model.reasons import reason_by_hand
from rota.operations.audit import AuditedChange, add_audit_records
from rota.sentences import sentence, sentence_of, with_fix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rota.inspector.search import Parameters, Search
    from rota.model.jobs.job import Job
    from rota.model.secrets.redaction import Redaction
    from rota.sentences import Said
    from rota.store.contract import Store

BATCH = 200


class Done(NamedTuple):
    """The jobs of a batch that were changed."""

    changed: list[Job]
    stopping: int = 0  # of them, running jobs that were asked to stop


class Verb(NamedTuple):
    """A change that is made by hand."""

    name: str
    done: str  # as in "3 jobs retried"
    states: frozenset[State]  # of jobs that it fits
    act: Callable[[Store, Sequence[Job], str], Done]
    instead: Callable[[State], Said]  # what to do about a job in a state that it does not fit


class Tally(NamedTuple):
    """The result of a change by hand."""

    changed: int
    left: int  # jobs that moved meanwhile, and were not changed
    stopping: int


def _retry(store: Store, jobs: Sequence[Job], reason: str) -> Done:
    now = store.now()
    refused = {refusal.id for refusal in store.change_jobs([retry_by_hand(job, now, reason) for job in jobs])}
    return Done([job for job in jobs if job.id not in refused])


def _cancel(store: Store, jobs: Sequence[Job], reason: str) -> Done:
    """Waiting jobs end immediately; running ones are asked to stop."""
    now = store.now()
    waiting = [cancel(job, now, reason) for job in jobs if job.state is not State.RUNNING]
    running = [job.id for job in jobs if job.state is State.RUNNING]
    refused = {refusal.id for refusal in store.change_jobs(waiting)} if waiting else set()
    stopping = set(store.request_cancels(running, reason)) if running else set()
    ended = {change.job.id for change in waiting} - refused
    return Done([job for job in jobs if job.id in ended | stopping], len(stopping))


def _delete(store: Store, jobs: Sequence[Job], reason: str) -> Done:
    del reason
    gone = set(store.delete_jobs([job.id for job in jobs]))
    return Done([job for job in jobs if job.id in gone])


def _instead_of_retry(state: State) -> Said:
    if state is State.SUCCEEDED:
        return sentence("instead.retry", "to run a job that succeeded again, enqueue it again")
    return sentence("instead.retry_live", "a job that has not ended can be cancelled first, then retried")


def _instead_of_cancel(state: State) -> Said:
    if state is State.SUCCEEDED:
        return sentence("instead.cancel", "a job that succeeded can only be deleted")
    return sentence("instead.cancel_ended", "a failed or cancelled job can be retried or deleted")


def _instead_of_delete(_state: State) -> Said:
    return sentence("instead.delete", "cancel a job first, then delete it")


RETRY = Verb("retry", done="retried", states=FINAL - {State.SUCCEEDED}, act=_retry, instead=_instead_of_retry)
CANCEL = Verb("cancel", done="cancelled", states=WAITING | {State.RUNNING}, act=_cancel, instead=_instead_of_cancel)
DELETE = Verb("delete", done="deleted", states=FINAL, act=_delete, instead=_instead_of_delete)


def fitting(verb: Verb, search: Search) -> Search:
    """The search, narrowed to the jobs that a verb fits."""
    asked = search.where.states
    states = verb.states & set(asked) if asked else verb.states
    if not states:
        raise Refused(
            sentence(
                "refused.states",
                "{asked} jobs cannot be {done}, only {fitting} ones; {instead}",
                asked=_either(asked),
                done=verb.done,
                fitting=_fitting_states(verb),
                instead=_instead(verb, asked),
            )
        )
    where = msgspec.structs.replace(search.where, states=tuple(sorted(states)))
    return msgspec.structs.replace(search, where=where)


def matching_ids(
    store: Store,
    verb: Verb,
    search: Search,
    redaction: Redaction,
    parameters: Parameters,
    *,
    until: int | None = None,
    most: int | None = None,
) -> list[str]:
    """All jobs that match now. Jobs created later, or after `until`, are not among them. Tasks of collections are
    never retried."""
    fit = fitting(verb, search)
    if until is not None:
        where = msgspec.structs.replace(fit.where, until=min(until, fit.where.until or until))
        fit = msgspec.structs.replace(fit, where=where)
    found = found_jobs(store, fit, redaction, parameters, most=most)
    return [job.id for job in found if verb is not RETRY or collection_of(job) is None]


def check_ids(store: Store, verb: Verb, ids: Sequence[str]) -> list[str]:
    """The jobs with these ids: all of them, or an error and no change."""
    found = {job.id: job for job in store.get_jobs(ids)}
    for job_id in ids:
        if job_id not in found:
            raise JobNotFound(
                sentence(
                    "missing.job_of_many",
                    "no job has the id {job!r}; it may have been pruned. Nothing was {done}",
                    job=job_id,
                    done=verb.done,
                )
            )
        try:
            _check_fits(verb, found[job_id])
        except Refused as err:
            if len(ids) == 1:
                raise
            raise Refused(
                sentence("refused.one_of_many", "{reason}. Nothing was {done}", reason=sentence_of(err), done=verb.done)
            ) from err
    return list(found)


def _check_fits(verb: Verb, job: Job) -> None:
    if job.state not in verb.states:
        raise Refused(
            sentence(
                "refused.state",
                "job {job} is {state}, and only {fitting} jobs can be {done}; {instead}",
                job=job.id,
                state=job.state.value,
                fitting=_fitting_states(verb),
                done=verb.done,
                instead=verb.instead(job.state),
            )
        )
    if verb is RETRY:
        retry_by_hand(job, 0, "")  # refuses the task of a collection, and says what to do


def _instead(verb: Verb, states: Iterable[State]) -> Said:
    """What to do about jobs in several states, each advice once."""
    return reduce(with_fix, dict.fromkeys(verb.instead(state) for state in states))


def carry_out(
    store: Store, verb: Verb, ids: Sequence[str], why: str, by: str, on_batch: Callable[[int], None]
) -> Tally:
    """Make the change, after reading each job once more. `why` is what the person said, or "". `on_batch` is called
    with the number of handled jobs."""
    reason = "" if verb is DELETE else reason_by_hand(verb.done, by, why)  # a deleted job could not store it
    changed = stopping = 0
    for batch in _batches(ids):
        jobs = [job for job in store.get_jobs(batch) if job.state in verb.states]
        done = verb.act(store, jobs, reason)
        _note(store, verb, done, why or reason, by)
        changed, stopping = changed + len(done.changed), stopping + done.stopping
        on_batch(len(batch))
    return Tally(changed, len(ids) - changed, stopping)


def _note(store: Store, verb: Verb, done: Done, reason: str, by: str) -> None:
    """Write an audit record for each job."""
    after = {} if verb is DELETE else {"reason": reason}
    records = [
        AuditedChange(job.id, verb.done, {"state": job.state.value, "task": job.task}, after) for job in done.changed
    ]
    if records:
        add_audit_records(store, "job", records, by)


def _fitting_states(verb: Verb) -> str:
    return _either(state for state in State if state in verb.states)


def _either(states: Iterable[State]) -> str:
    """failed or cancelled"""
    *rest, last = [state.value for state in states]
    return f"{', '.join(rest)} or {last}" if rest else last


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]
