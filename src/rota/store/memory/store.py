"""MemoryStore: jobs and schedules in plain Python; what operates and moves it is joined in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.edit import audit_after, schedule_after
from rota.model.firing import fired, place
from rota.model.job import Job, NewJob, accept, holds_key
from rota.model.lookahead import is_ahead, judge
from rota.model.occurrence import is_noted, is_record_of, noted, of_job, of_skip
from rota.model.settle import Change, apply_to, cancel, claim, promote, release, still_awaited
from rota.model.state import State
from rota.store.contract import (
    MOST_PROMOTED,
    Added,
    Due,
    Exchange,
    Exchanged,
    Extended,
    Features,
    Fired,
    JobFilter,
    Page,
    Refusal,
    ScheduleFilter,
)
from rota.store.memory.moving import MemoryMoving
from rota.store.memory.operations import MemoryOperations
from rota.store.memory.records import MemoryRecords
from rota.store.shared.changing import check_changes
from rota.store.shared.claiming import claim_order, due_order
from rota.store.shared.matching import (
    check_cursor,
    has_lapsed,
    is_held_by,
    is_running,
    is_same,
    matches,
    schedule_matches,
)
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.model.edit import Edit
    from rota.model.firing import Firing
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.store.contract import Channel, Listener


class MemoryStore(MemoryOperations, MemoryRecords, MemoryMoving):
    """Jobs and schedules in this process."""

    features = Features(kind="memory", is_durable=False, is_shared=False)

    def open(self) -> None:
        """Nothing to do."""

    def pending_migrations(self) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing to do."""

    def describe(self) -> str:
        return "memory (this process only)"

    def listen(self, channel: Channel) -> Listener:
        return self._notifier.listen(channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        with self._lock:
            self._check_open()
            at = self._at(now)
            added = [self._add(job, at) for job in jobs]
        self._notifier.notify("jobs")
        return added

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        with self._lock:
            if ask.want > 0:
                self._check_open()
            at = self._at(now)
            refused = self._change_all(ask.settled, at, lambda change, job: is_held_by(ask.holder, change, job))
            claimed = self._claim(ask, at) if ask.want > 0 else []
            reply = Exchanged(now=at, refused=refused, claimed=claimed, next_due_at=self._next_due(ask.queues))
        if ask.settled:
            self._notifier.notify("jobs")
        return reply

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        with self._lock:
            at = self._at(now)
            lost = [job_id for job_id, lease_no in leases if not self._extend(job_id, lease_no, holder, at + lease_for)]
            asked = {
                job.id: job.cancel_reason
                for job in self._jobs.values()
                if job.state is State.RUNNING and job.holder == holder and job.cancel_reason
            }
            return Extended(now=at, lost=lost, cancels=asked)

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        with self._lock:
            at = self._at(now)
            lapsed = [job for job in self._jobs.values() if has_lapsed(job, at)]
            return sorted(lapsed, key=lambda job: job.lease_until or 0)[:limit]

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        at = self._at(now)
        return self._decided(changes, at, lambda change, job: is_same(change, job) and has_lapsed(job, at))

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        at = self._at(now)
        with self._lock:
            self._check_open()
            return self._decided(changes, at, lambda change, job: is_same(change, job) and not is_running(job))

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        with self._lock:
            running = [job for job in self.get_jobs(ids) if job.state is State.RUNNING]
            for job in running:
                why = job.cancel_reason or reason or "cancelled"
                self._jobs[job.id] = msgspec.structs.replace(job, cancel_reason=why)
            return [job.id for job in running]

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        with self._lock:
            for job_id, lease_no, text in reports:
                job = self._jobs.get(job_id)
                if job is not None and is_running(job) and (job.lease_no, job.holder) == (lease_no, holder):
                    self._put(msgspec.structs.replace(job, progress=text))

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        del now
        with self._lock:
            self._check_open()
            ended = [job for job in self.get_jobs(list(dict.fromkeys(ids))) if job.state.is_final]
            for job in ended:
                self._remove(job)
            return [job.id for job in ended]

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._lock:
            return [self._jobs[job_id] for job_id in ids if job_id in self._jobs]

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        check_cursor(cursor)
        with self._lock:
            found = (job for job in self._jobs.values() if matches(job, where))
            newest = sorted(found, key=lambda job: -job.seq)
        rest = [job for job in newest if cursor is None or job.seq < int(cursor)]
        return page_of(rest, limit, lambda job: str(job.seq))

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        with self._lock:
            self._check_open()
            at = self._at(now)
            refused = [edit.id for edit in edits if not self._edit(edit, at)]
        self._notifier.notify("schedules")
        self._notifier.notify("jobs")
        return refused

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        with self._lock:
            return [self._schedules[name] for name in ids if name in self._schedules]

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        with self._lock:
            ids = sorted(name for name in self._schedules if cursor is None or name > cursor)
            found = [self._schedules[name] for name in ids if schedule_matches(self._schedules[name], where)]
            return page_of(found, limit, lambda schedule: schedule.id)

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        with self._lock:
            at = self._at(now)
            waiting = sorted(
                (due_at, schedule.id)
                for schedule in self._schedules.values()
                if (due_at := schedule.due_at) is not None
            )
            due = [self._schedules[name] for due_at, name in waiting[:limit] if due_at <= at]
            rest = waiting[len(due) :]
            return Due(now=at, schedules=due, next_due_at=rest[0][0] if rest else None)

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        with self._lock:
            self._check_open()
            at = self._at(now)
            results = [self._fire(firing, at) for firing in firings]
        self._notifier.notify("jobs")
        return results

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        check_cursor(cursor)
        with self._lock:
            schedule = self._schedules.get(schedule_id)
            made_at = schedule.created_at if schedule else 0
            mine = (job for job in self._jobs.values() if job.schedule_id == schedule_id)
            kept = [of_job(job) for job in mine if is_record_of(job, made_at)]
            lines = [*kept, *self._ledger.of(schedule_id)]
        after = int(cursor) if cursor else start - 1
        shown = [line for line in lines if line.through_at > after and line.earliest_at < end]
        shown.sort(key=lambda line: line.through_at)
        return page_of(shown, limit, lambda line: str(line.through_at))

    # What the verbs are made of. The lock is held.

    def _add(self, new: NewJob, now: int) -> Added:
        if new.id in self._jobs:
            return Added(new.id, existed=True)
        taken = self._slots.get(new.slot or "") or self._key_holder(new.key, now)
        if taken:
            return Added(taken, existed=True)
        awaited = self._jobs.get(new.waits_for or "")
        must_wait = awaited is not None and awaited.is_live
        self._insert(accept(new, now, self._next_seq(), must_wait=must_wait))
        return Added(new.id)

    def _key_holder(self, key: str | None, now: int) -> str | None:
        """The job that has a key; a key that only held for a period is free once that is over."""
        job = self._jobs.get(self._keys.get(key or "", ""))
        if job is None:
            return None
        if holds_key(job.state, job.key_until, now):
            return job.id
        self._put(msgspec.structs.replace(job, key=None))
        return None

    def _decided(
        self, changes: Sequence[Change], now: int, still_holds: Callable[[Change, Job], bool]
    ) -> list[Refusal]:
        with self._lock:
            refused = self._change_all(changes, now, still_holds)
        self._notifier.notify("jobs")
        return refused

    def _change_all(
        self, changes: Sequence[Change], now: int, still_holds: Callable[[Change, Job], bool]
    ) -> list[Refusal]:
        """Apply the changes whose jobs still are what was decided on; name the others."""
        checked = check_changes(changes, lambda change: self._jobs.get(change.id), still_holds)
        self._apply([change for change, _ in checked.accepted], now)
        return checked.refused

    def _apply(self, changes: Sequence[Change], now: int) -> None:
        """Write changes that were found to hold, then what they set in motion."""
        for change in changes:
            self._counts.move(change.job.queue, change.job.state, change.state)
            self._put(apply_to(self._jobs[change.id], change))
        for change in changes:
            if change.state.is_final:
                self._let_go(change.id, now)
            if is_noted(change):
                self._note_last_run(change)
        for change in changes:
            if change.is_removal:
                self._remove(self._jobs[change.id])

    def _note_last_run(self, change: Change) -> None:
        """Its schedule hears how it ended, or that an attempt failed."""
        schedule = self._schedules.get(change.job.schedule_id or "")
        if schedule is not None:
            self._schedules[schedule.id] = msgspec.structs.replace(schedule, last=noted(schedule.last, change))

    def _let_go(self, job_id: str, now: int) -> None:
        """The jobs that waited for this one go on, or wait for what it waited for."""
        for job in [job for job in self._jobs.values() if job.state is State.HELD and job.waits_for == job_id]:
            awaited = still_awaited(job, self._jobs.get)
            if awaited is None:
                self._apply([release(job, now)], now)
            else:
                self._put(msgspec.structs.replace(job, waits_for=awaited))

    def _unmake(self, jobs: Sequence[Job], now: int) -> None:
        """Jobs go without a trace; what waited for them waits no more."""
        for job in jobs:
            self._drop(job)
        for job in jobs:
            self._let_go(job.id, now)

    def _claim(self, ask: Exchange, now: int) -> list[Job]:
        queues = set(ask.queues) - self._paused
        for job in self._due(queues, now, ahead=True):
            self._judge(job, now)
        for job in self._due(queues, now + ask.ahead, ahead=False):  # what a judgement has ended is none of them
            self._counts.move(job.queue, job.state, State.QUEUED)
            self._put(promote(job, now))
        ready = [job for job in self._jobs.values() if job.state is State.QUEUED and job.queue in queues]
        ready.sort(key=claim_order)
        claimed = [claim(job, ask.holder, now, now + ask.lease_for) for job in ready[: ask.want]]
        for job in claimed:
            self._counts.move(job.queue, State.QUEUED, State.RUNNING)
            self._put(job)
        return claimed

    def _due(self, queues: set[str], now: int, *, ahead: bool) -> list[Job]:
        waiting = (job for job in self._jobs.values() if job.state is State.SCHEDULED and job.queue in queues)
        due = [job for job in waiting if job.run_at <= now and is_ahead(job) is ahead]
        return sorted(due, key=due_order)[:MOST_PROMOTED]

    def _judge(self, job: Job, now: int) -> None:
        """A job that was made ahead is due: it is ready, held behind the run before it, or goes."""
        schedule = self._schedules.get(job.schedule_id or "")
        live = self._slots.get(job.schedule_id or "")
        holder = self._key_holder(job.ahead, now)
        became = judge(job, schedule, live, self._last_held(job.schedule_id or ""), holder, now)
        if became.job is None:
            self._unmake([job], now)
        else:
            self._counts.move(job.queue, job.state, became.job.state)
            self._put(became.job)
        if became.skip is not None and schedule is not None:
            self._ledger.record(of_skip(job.schedule_id or "", became.skip))
        if became.cancels is not None:
            self._stop(became.cancels, "replaced by the next occurrence", now)

    def _next_due(self, queues: Iterable[str]) -> int | None:
        """When the first scheduled job of these queues is due; in the past, where a bound left some behind."""
        wanted = set(queues) - self._paused
        waiting = (job for job in self._jobs.values() if job.state is State.SCHEDULED and job.queue in wanted)
        return min((job.run_at for job in waiting), default=None)

    def _extend(self, job_id: str, lease_no: int, holder: str, until: int) -> bool:
        job = self._jobs.get(job_id)
        if job is None or job.state is not State.RUNNING or (job.lease_no, job.holder) != (lease_no, holder):
            return False
        self._put(msgspec.structs.replace(job, lease_until=until))
        return True

    def _edit(self, edit: Edit, now: int) -> bool:
        current = self._schedules.get(edit.id)
        if not edit.holds_for(current.version if current else None, current.created_at if current else None):
            return False
        if edit.revoke is not None:
            self._revoke(edit, edit.revoke, now)
        made: list[str] = []
        if edit.is_removal:
            del self._schedules[edit.id]
            self._ledger.forget(edit.id)
        else:
            made = [new.id for new in edit.jobs if not self._is_made(new) and not self._add(new, now).existed]
            self._schedules[edit.id] = schedule_after(edit, current.last if current else None, made)
        audit = audit_after(edit, made)
        self._keep_audit([audit] if audit else [])
        self._ledger.erase(edit.id, edit.reopens)
        for skip in edit.skips:
            self._ledger.record(of_skip(edit.id, skip))
        return True

    def _is_made(self, new: NewJob) -> bool:
        """Whether its occurrence has, or had, a job."""
        return (new.schedule_id, new.fire_at) in self._made

    def _revoke(self, edit: Edit, reason: str, now: int) -> None:
        """Cancel what the schedule's trigger made and nobody has started; runs by hand stay."""
        made = (job for job in self._jobs.values() if job.schedule_id == edit.id and job.fire_at)
        waiting = [job for job in made if job.state.is_waiting]
        self._unmake([job for job in waiting if edit.unmakes(job)], now)
        self._apply([cancel(job, now, reason) for job in waiting if not edit.unmakes(job)], now)

    def _fire(self, firing: Firing, now: int) -> Fired:
        schedule = self._schedules.get(firing.schedule.id)
        if schedule is None or not firing.holds_for(schedule.version, schedule.created_at):
            return Fired(schedule_id=firing.schedule.id, is_accepted=False)
        holders = (self._key_holder(key, now) for key in firing.keys)
        if firing.must_wait(self._slots.get(schedule.id), next(filter(None, holders), None)):
            return Fired(schedule_id=firing.schedule.id, is_accepted=False)
        made: list[str] = []
        skips = list(firing.skips)
        for shot in firing.shots:
            if (schedule.id, shot.job.fire_at) in self._made:
                continue  # by a schedule of that name, before the clock stepped back
            live, holder = self._slots.get(schedule.id), self._key_holder(shot.job.key, now)
            placement = place(shot, live, self._last_held(schedule.id), holder)
            if placement.skip is not None:
                skips.append(placement.skip)
            if placement.job is not None:
                self._insert(accept(placement.job, now, self._next_seq()))
                made.append(placement.job.id)
            if placement.cancels is not None:
                self._stop(placement.cancels, "replaced by the next occurrence", now)
        for skip in skips:
            self._ledger.record(of_skip(schedule.id, skip))
        current = msgspec.structs.replace(firing, schedule=schedule)
        self._schedules[schedule.id] = fired(current, len(made), now, made[-1] if made else None)
        return Fired.of(schedule.id, made, skips)

    def _stop(self, job_id: str, reason: str, now: int) -> None:
        job = self._jobs[job_id]
        if job.state is State.RUNNING:
            self.request_cancels([job_id], reason)
        else:
            self._apply([cancel(job, now, reason)], now)

    def _last_held(self, schedule_id: str) -> str | None:
        held = [job for job in self._jobs.values() if job.schedule_id == schedule_id and job.state is State.HELD]
        return max(held, key=lambda job: job.seq).id if held else None
