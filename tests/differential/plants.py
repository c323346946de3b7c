"""Planted bugs: memory stores that are wrong in one way each, as a store that somebody writes may be."""

from __future__ import annotations

import msgspec

from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.store.contract import Added, LogLine
from rota.store.memory import MemoryStore

replace = msgspec.structs.replace


class IgnoresTheFence(MemoryStore):
    """A worker's late report counts, even if another worker has the job by now."""

    def exchange(self, ask, *, now=None):
        current = {job.id: job for job in self.get_jobs([change.id for change in ask.settled])}
        settled = [
            replace(change, job=replace(change.job, lease_no=current[change.id].lease_no))
            if change.id in current
            else change
            for change in ask.settled
        ]
        return super().exchange(replace(ask, settled=settled), now=now)


class NeverFreesAKey(MemoryStore):
    """The job has ended, and its key still keeps others out."""

    def __init__(self):
        super().__init__()
        self._ever = {}

    def add_jobs(self, jobs, *, now=None):
        taken = {job.id: self._ever[job.key] for job in jobs if job.key in self._ever}
        added = super().add_jobs([job for job in jobs if job.id not in taken], now=now)
        self._ever.update({job.key: job.id for job in jobs if job.key and job.id not in taken})
        answers = iter(added)
        return [Added(taken[job.id], existed=True) if job.id in taken else next(answers) for job in jobs]


class PromotesEarly(MemoryStore):
    """What is due within five seconds is given out now."""

    def exchange(self, ask, *, now=None):
        for job in list(self._jobs.values()):
            if ask.want and job.state is State.SCHEDULED and now < job.run_at <= now + 5 * SECOND:
                self._jobs[job.id] = replace(job, run_at=now)
        return super().exchange(ask, now=now)


class DoublesAFiring(MemoryStore):
    """Two schedulers fire the same schedule, and both are taken at their word."""

    def fire(self, firings, *, now=None):
        current = {schedule.id: schedule for schedule in self.get_schedules([f.schedule.id for f in firings])}
        return super().fire(
            [replace(firing, schedule=current.get(firing.schedule.id, firing.schedule)) for firing in firings], now=now
        )


class LosesASkip(MemoryStore):
    """What was missed is passed over in silence."""

    def fire(self, firings, *, now=None):
        return super().fire([replace(firing, skips=firing.skips[1:]) for firing in firings], now=now)


class ForgetsPriority(MemoryStore):
    """The oldest job goes first, however urgent another is."""

    def exchange(self, ask, *, now=None):
        ready = {job.id: job for job in self._jobs.values() if job.state is State.QUEUED}
        self._jobs.update({job_id: replace(job, priority=0) for job_id, job in ready.items()})
        reply = super().exchange(ask, now=now)
        urgent = {job_id: job.priority for job_id, job in ready.items()}
        self._jobs.update(
            {job_id: replace(self._jobs[job_id], priority=priority) for job_id, priority in urgent.items()}
        )
        return replace(reply, claimed=[replace(job, priority=urgent.get(job.id, 0)) for job in reply.claimed])


class LosesTheRelease(MemoryStore):
    """A job ends, and what waited for it waits for ever."""

    def _held_behind(self, job_id):
        del job_id
        return []


class ExtendsForAnybody(MemoryStore):
    """A lease is renewed by its number alone, whichever worker asks."""

    def extend_leases(self, holder, leases, lease_for, *, now=None):
        owners = {job.id: job.holder for job in self.get_jobs([job_id for job_id, _ in leases])}
        reply = super().extend_leases(holder, [], lease_for, now=now)
        lost = [
            job_id
            for job_id, lease_no in leases
            if super(ExtendsForAnybody, self)
            .extend_leases(owners.get(job_id) or holder, [(job_id, lease_no)], lease_for, now=now)
            .lost
        ]
        return replace(reply, lost=lost)


class RescuesARenewedLease(MemoryStore):
    """The rescuer takes a job whose worker is alive."""

    def rescue_jobs(self, changes, *, now=None):
        return super().rescue_jobs(changes, now=now + 60 * SECOND)


class CountsAJobTwice(MemoryStore):
    """A job that was found by its key is counted as if it had been made."""

    def add_jobs(self, jobs, *, now=None):
        added = super().add_jobs(jobs, now=now)
        for job, answer in zip(jobs, added, strict=True):
            if answer.existed:
                self._counts.add(job.queue, State.QUEUED)
        return added


class DropsALine(MemoryStore):
    """Of two equal lines of a log one is kept."""

    def append_logs(self, lines):
        return super().append_logs([LogLine(**dict(fields)) for fields in {_fields(line) for line in lines}])


class ShowsTheWindowsEnd(MemoryStore):
    """A list shows what was made at its end, too."""

    def list_jobs(self, where, *, cursor=None, limit=50):
        until = None if where.until is None else where.until + 1
        return super().list_jobs(replace(where, until=until), cursor=cursor, limit=limit)


class ReusesALockNumber(MemoryStore):
    """A lock that was released counts from 1 again."""

    def change_lock(self, name, act, token, ttl=0, *, now=None):
        number = super().change_lock(name, act, token, ttl, now=now)
        if act == "release" and number is not None:
            del self._locks._states[name]
        return number


class RevokesNothing(MemoryStore):
    """A schedule is paused, and what it had made still runs."""

    def edit_schedules(self, edits, *, now=None):
        return super().edit_schedules([replace(edit, revoke=None) for edit in edits], now=now)


def _fields(line):
    return tuple(msgspec.structs.asdict(line).items())


PLANTS = [
    IgnoresTheFence,
    NeverFreesAKey,
    PromotesEarly,
    DoublesAFiring,
    LosesASkip,
    ForgetsPriority,
    LosesTheRelease,
    ExtendsForAnybody,
    RescuesARenewedLease,
    CountsAJobTwice,
    DropsALine,
    ShowsTheWindowsEnd,
    ReusesALockNumber,
    RevokesNothing,
]
