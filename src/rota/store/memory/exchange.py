"""Exchanges jobs with workers: settles those that they report and claims those that they request, in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.jobs.settle import claim, claim_order, due_order, open_queues, promote
from rota.model.schedules.lookahead import is_ahead
from rota.store.contract import MOST_PROMOTED, Exchange, Exchanged
from rota.store.memory.lookahead import LookaheadDecider
from rota.store.shared.matching import is_held_by

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.jobs.job import Job


class Exchanger(LookaheadDecider):
    """The exchange with workers."""

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

    # The lock is held.

    def _claim(self, ask: Exchange, now: int) -> list[Job]:
        queues = set(open_queues(ask.queues, self._paused))
        for job in self._due(queues, now, ahead=True):
            self._decide_due(job, now)
        for job in self._due(queues, now + ask.ahead, ahead=False):  # what a decision has ended is none of them
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

    def _next_due(self, queues: Iterable[str]) -> int | None:
        """When the first scheduled job of these queues is due; in the past, if a limit left due jobs."""
        wanted = set(open_queues(queues, self._paused))
        waiting = (job for job in self._jobs.values() if job.state is State.SCHEDULED and job.queue in wanted)
        return min((job.run_at for job in waiting), default=None)
