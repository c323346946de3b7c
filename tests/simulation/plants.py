"""Planted bugs: failures that other job systems have published, put back into this one for the length of a test."""

from __future__ import annotations

import msgspec

from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.upkeep import rescuer, tenant_sync
from rota.engine.upkeep.tenant_sync import TenantSync
from rota.engine.worker import exchange_client
from rota.engine.worker.exchange_client import ExchangeClient
from rota.engine.worker.worker import Worker
from rota.errors import StoreUnavailable
from rota.model.entry import EntryEdit
from rota.model.jobs import settle
from rota.model.jobs.job import State
from rota.model.schedules import firing
from rota.model.tenant import UNSETTLED
from rota.store.contract import Extended
from rota.store.memory import MemoryStore, exchange
from rota.store.shared.changing import Counts
from rota.store.shared.matching import is_same

replace = msgspec.structs.replace


def settle_without_the_lease(patch):
    """A worker's late report overwrites what the next worker has done."""
    patch.setattr(exchange, "is_held_by", lambda _holder, _change, job: job.state is State.RUNNING)


def rescue_a_renewed_lease(patch):
    """The rescuer takes a job whose worker renewed its lease after the look and before the write."""

    def rescue_jobs(self, changes, *, now=None):
        return self._change_all(changes, self._at(now), is_same)

    patch.setattr(MemoryStore, "rescue_jobs", rescue_jobs)


def fire_without_the_version(patch):
    """Two schedulers fire the same schedule: each makes the job."""
    fire = MemoryStore._fire

    def _fire(self, plan, now):
        current = self._schedules.get(plan.schedule.id, plan.schedule)
        return fire(self, replace(plan, schedule=replace(plan.schedule, version=current.version)), now)

    patch.setattr(MemoryStore, "_fire", _fire)


def claim_without_priority(patch):
    """The oldest job goes first, however urgent another is."""
    claim = MemoryStore._claim

    def _claim(self, ask, now):
        ready = [job for job in self._jobs.values() if job.state is State.QUEUED]
        for job in ready:
            dict.__setitem__(self._jobs, job.id, replace(job, priority=0))
        claimed = claim(self, ask, now)
        for job in ready:
            dict.__setitem__(self._jobs, job.id, replace(self._jobs[job.id], priority=job.priority))
        return [self._jobs[job.id] for job in claimed]

    patch.setattr(MemoryStore, "_claim", _claim)


def lose_the_release(patch):
    """A job ends, and what waited for it waits for ever."""

    patch.setattr(MemoryStore, "_held_behind", lambda *_: [])


def advance_before_the_job_is_made(patch):
    """The schedule moves on first: a crash in between loses the run."""

    def fire(self, schedules, now):
        firings = [plan for schedule in schedules if (plan := self._plan(schedule, now))]
        fired = self._store.fire([replace(plan, shots=[]) for plan in firings])
        made = [plan for plan, result in zip(firings, fired, strict=True) if result.is_accepted]
        self._store.add_jobs([shot.job for plan in made for shot in plan.shots])

    patch.setattr(Scheduler, "fire", fire)


def a_death_spends_nothing(patch):
    """A job that kills its workers goes round for ever."""
    patch.setattr(rescuer, "rescue", lambda job, now: replace(settle.rescue(job, now), deaths=job.deaths))


def a_retry_spends_nothing(patch):
    """A job that always fails is tried for ever."""
    fail = settle._fail

    def _fail(job, *rest, **options):
        return replace(fail(replace(job, failures=0), *rest, **options), failures=0, job=job)

    patch.setattr(settle, "_fail", _fail)


def a_key_is_never_freed(patch):
    """The job has ended, and its key still keeps others out."""
    change = settle._change

    def _change(job, *rest, **options):
        return replace(change(job, *rest, **options), key=job.key)

    def _key_holder(self, key, now):
        del now
        return self._keys.get(key)

    patch.setattr(settle, "_change", _change)
    patch.setattr(MemoryStore, "_key_holder", _key_holder)


def drop_reports_in_an_outage(patch):
    """The store was out of reach when a job ended: nobody tells it again."""
    exchange = ExchangeClient.exchange

    def dropping(self):
        try:
            return exchange(self)
        except StoreUnavailable:
            self._unanswered.clear()
            raise

    patch.setattr(ExchangeClient, "exchange", dropping)


def renew_by_holder(patch):
    """Whatever a worker holds is renewed: a claim whose reply was lost never runs out."""

    def extend_leases(self, holder, leases, lease_for, *, now=None):
        at = self._at(now)
        held = [job for job in self._jobs.values() if job.state is State.RUNNING and job.holder == holder]
        for job in held:
            self._put(replace(job, lease_until=at + lease_for))
        mine = {job.id for job in held}
        return Extended(now=at, lost=[job_id for job_id, _ in leases if job_id not in mine])

    patch.setattr(MemoryStore, "extend_leases", extend_leases)


def claim_under_the_old_number(patch):
    """The lease number does not rise: the fence stands open."""
    claim = exchange.claim
    patch.setattr(exchange, "claim", lambda job, *rest: replace(claim(job, *rest), lease_no=max(1, job.lease_no)))


def replay_everything_missed(patch):
    """After an outage each missed time runs, whatever the policy says."""
    catch_up = firing._catch_up

    def _catch_up(schedule, missed, *, has_newer):
        spec = replace(schedule.spec, catchup="all", catchup_limit=100)
        return catch_up(replace(schedule, spec=spec), missed, has_newer=has_newer)

    patch.setattr(firing, "_catch_up", _catch_up)


def spin_while_idle(patch):
    """The worker asks again at once, though nothing is there."""
    patch.setattr(Worker, "_pause", lambda _self, _reply: 0.0)


def sleep_through_notifications(patch):
    """The worker does not listen and polls rarely: jobs wait for it."""
    patch.setattr(Worker, "_pause", lambda self, _reply: 0.0 if self.client.has_reports else 20.0)


def bury_log_lines(patch):
    """What a job wrote at its end is not kept."""
    patch.setattr(exchange_client, "flush_lines", lambda *_, **__: None)


def miscount_removals(patch):
    """A removed job stays in the counters."""
    patch.setattr(Counts, "remove", lambda *_: None)


def a_tenant_change_is_never_finished(patch):
    """The process that changes a tenant dies half-way, and its schedules never follow."""
    patch.setattr(TenantSync, "turn", lambda _self: 15.0)


def a_schedule_follows_half_of_its_tenant(patch):
    """A pending change counts as done before every schedule has followed."""

    def settle_tenant(store, mark, _by, _new_id):
        store.edit_entries([EntryEdit(kind=UNSETTLED, name=mark.name, expect_version=mark.version, data=None)])

    patch.setattr(tenant_sync, "settle_tenant", settle_tenant)
