"""Makes random operations on jobs: adds, works on, rescues, changes by hand and reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import NewJob, State
from rota.model.jobs.outcome import (
    Died,
    Failed,
    RetryAsked,
    Returned,
    Snoozed,
    Stopped,
    Succeeded,
    TaskUnknown,
    Undecodable,
)
from rota.model.jobs.settle import cancel, rescue, retry_by_hand, settle
from rota.model.micros import SECOND
from rota.store.contract import Exchange, JobFilter
from rota.testing.differential.operation import Operation
from rota.testing.differential.walk import HOLDERS, QUEUES, SCHEDULES
from rota.testing.store_suite.builders import LEASE, MINUTE, a_policy

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.jobs.outcome import Outcome
    from rota.model.jobs.settle import Change
    from rota.testing.differential.walk import Walk

TASKS = ("mail.send", "mail.sort", "mail", "pay", "päy.☕")
KEYS = (None, None, None, None, "k1", "k2", "k3", "K1", "k/☕", "schedule:s1", "s2")
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(b"1"),
    Succeeded(b"\x00\xff"),
    Succeeded(),
    Failed("boom\nat line 7"),
    Failed("boom", may_retry=False),
    RetryAsked(MINUTE, "later"),
    RetryAsked(None, "later"),
    Snoozed(MINUTE),
    Stopped("stopped"),
    TaskUnknown(),
    Undecodable("no JSON"),
    Returned(),
    Died("signal 9"),
)


# Callers.


def add(walk: Walk) -> Operation:
    jobs = [_new_job(walk) for _ in range(walk.random.randint(1, 5))]
    if walk.chance(0.05):
        jobs.append(jobs[0])  # the same request twice in one call …
    known = walk.some_job()
    if known and walk.chance(0.05):
        jobs.append(msgspec.structs.replace(jobs[0], id=known.id))  # … or one that came before
    return Operation("add_jobs", (jobs,), {"now": walk.now})


def _new_job(walk: Walk) -> NewJob:
    known = walk.some_job()
    choice = walk.random.choice
    return NewJob(
        id=walk.new_id(),
        task=choice(TASKS),
        payload=choice((b"[]", b"\x00\xff", b'{"a": 1}')),
        queue=choice(QUEUES),
        priority=choice((-1, 0, 0, 0, 5)),
        key=choice(KEYS),
        key_for=choice((0, 0, 5 * MINUTE)),
        run_at=choice((None, None, walk.now - MINUTE, walk.now + 30 * SECOND)),
        delay=choice((0, 0, 0, SECOND, 10 * MINUTE)),
        waits_for=known.id if known and walk.chance(0.15) else "nobody" if walk.chance(0.02) else None,
    )


# Workers.


def work(walk: Walk) -> Operation:
    """A worker settles the jobs that it believes it holds, then claims."""
    holder = walk.random.choice(HOLDERS)
    mine = [job for job in walk.jobs if job.state is State.RUNNING and (job.holder == holder or walk.chance(0.03))]
    settled = [_settled(walk, job) for job in _some(walk, mine, 4)]
    if settled and settled[0].state.is_final and walk.chance(0.1):
        settled.append(settled[0])  # reported twice in one call: the second is refused
    ask = Exchange(
        holder=holder,
        settled=settled,
        want=walk.random.choice((0, 1, 1, 2, 3, 10)),
        queues=tuple(walk.random.sample(QUEUES, walk.random.randint(1, 3))),
        lease_for=walk.random.choice((LEASE, LEASE, 5 * MINUTE)),
    )
    return Operation("exchange", (ask,), {"now": walk.now})


def _some(walk: Walk, jobs: list[Job], most: int) -> list[Job]:
    """Some of these jobs, each as it was read at some time."""
    views = {job.id: job for job in walk.random.sample(jobs, len(jobs))}
    return list(views.values())[:most]


def _settled(walk: Walk, job: Job) -> Change:
    outcome = walk.random.choice(OUTCOMES)
    return settle(job, outcome, a_policy(2), walk.now, walk.random.random(), keep=walk.chance(0.8))


def settle_under_a_wrong_number(walk: Walk) -> Operation | None:
    """A report under a lease that does not exist, or that another worker has."""
    running = [job for job in walk.jobs if job.state is State.RUNNING]
    if not running:
        return None
    job = walk.random.choice(running)
    off = msgspec.structs.replace(job, lease_no=job.lease_no + walk.random.choice((-1, 1_000)))
    ask = Exchange(holder=job.holder or "", settled=[_settled(walk, off)])
    return Operation("exchange", (ask,), {"now": walk.now})


def extend(walk: Walk) -> Operation:
    holder = walk.random.choice(HOLDERS)
    known = dict.fromkeys((job.id, job.lease_no) for job in walk.jobs if job.holder == holder or walk.chance(0.02))
    leases = list({job_id: (job_id, lease_no) for job_id, lease_no in known}.values())
    if leases and walk.chance(0.2):
        leases[0] = (leases[0][0], leases[0][1] + 1)
    return Operation("extend_leases", (holder, leases, walk.random.choice((LEASE, MINUTE))), {"now": walk.now})


def record_progress(walk: Walk) -> Operation:
    holder = walk.random.choice(HOLDERS)
    notes = [(job.id, job.lease_no, f"{n}/10 ☕") for n, job in enumerate(walk.jobs) if job.holder == holder]
    return Operation("record_progress", (holder, notes[-4:]))


# Rescuers.


def look_for_expired(walk: Walk) -> Operation:
    return Operation("expired_jobs", (walk.random.choice((1, 2, 100)),), {"now": walk.now})


def rescue_expired(walk: Walk) -> Operation:
    """A rescue of jobs that were read now or earlier, one of which may still have its lease."""
    running = [job for job in walk.jobs if job.state is State.RUNNING]
    expired = [job for job in running if (job.lease_until or 0) <= walk.now]
    chosen = {job.id: job for job in [*running[:1], *expired[-6:]]}
    return Operation("rescue_jobs", ([rescue(job, walk.now) for job in chosen.values()],), {"now": walk.now})


# Operators.


def ask_to_stop(walk: Walk) -> Operation:
    return Operation("request_cancels", (walk.some_ids(4), walk.random.choice(("enough", ""))), {"now": walk.now})


def cancel_by_hand(walk: Walk) -> Operation | None:
    waiting = [job for job in walk.jobs if job.state.is_waiting]
    changes = [cancel(job, walk.now, "by hand") for job in _some(walk, waiting, 2)]
    return Operation("change_jobs", (changes,), {"now": walk.now}) if changes else None


def retry(walk: Walk) -> Operation | None:
    ended = [job for job in walk.jobs if job.state in {State.FAILED, State.CANCELLED}]
    changes = [retry_by_hand(job, walk.now, "by hand") for job in _some(walk, ended, 2)]
    return Operation("change_jobs", (changes,), {"now": walk.now}) if changes else None


def delete(walk: Walk) -> Operation:
    return Operation("delete_jobs", (walk.some_ids(3),), {"now": walk.now})


# Readers.


def get(walk: Walk) -> Operation:
    ids = walk.some_ids(5)
    return Operation("get_jobs", ([*ids, *ids[:1]],))


def list_some(walk: Walk) -> Operation:
    """A list with up to two filters. With more, most lists would be empty and prove nothing."""
    choice, known = walk.random.choice, walk.some_job()
    at = known.created_at if known else walk.now  # the exact instant at which a job was created
    filters = {
        "states": choice(((State.QUEUED,), (State.SUCCEEDED, State.FAILED), (State.HELD, State.SCHEDULED))),
        "queue": choice(QUEUES),
        "task": choice(("mail*", "mail", "*", "p%*", "päy*")),
        "schedule_id": choice(SCHEDULES),
        "key": choice(("k1", "K1", "schedule:s1", "s2")),
        "since": at,
        "until": at,
    }
    chosen = walk.random.sample(list(filters), choice((0, 1, 1, 2)))
    where = JobFilter(**{name: filters[name] for name in chosen})  # type: ignore[arg-type]  # chosen by name
    return Operation("list_jobs", (where,), {"limit": choice((3, 7, 50, 200))})
