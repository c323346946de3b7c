"""Changing jobs: decisions about jobs, and whatever they set in motion, written where they still hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Refusal
from rota.store.redis.draft import Draft
from rota.store.shared.matching import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.job import Job
    from rota.model.settle import Change
    from rota.store.redis.desk import Desk
    from rota.store.redis.packing import Sight

    Holds = Callable[[Change, Job, int], bool]


class Changer:
    """Applies changes that somebody decided: a worker, a rescuer, a person."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def change(
        self,
        verb: str,
        changes: Sequence[Change],
        still_holds: Holds,
        *,
        now: int | None,
        is_work: bool = False,
    ) -> list[Refusal]:
        """Apply the changes whose jobs still are what was decided on; name the others. All are judged first."""
        refused: list[Refusal] = []
        left = list(changes)

        def turn() -> bool:
            judged = self._judge(left, still_holds, now)
            refused.extend(judged.refused)
            held = self._desk.commit(verb, [draft for draft, _ in judged.drafts], is_work=is_work)
            left[:] = [
                change
                for (_, of_draft), is_held in zip(judged.drafts, held, strict=True)
                if not is_held
                for change in of_draft
            ]
            return not left

        if changes:
            self._desk.settle_down(turn)
        return refused

    def _judge(self, changes: Sequence[Change], still_holds: Holds, now: int | None) -> _Judged:
        ids = list(dict.fromkeys(change.id for change in changes))
        waits = [["EXISTS", f"waits:{job_id}"] for job_id in ids]
        at, sights, waited_for, _ = self._desk.look(ids, *waits, now=now)
        judged = _Judged(self._desk, at, sights, {job_id for job_id, n in zip(ids, waited_for, strict=True) if n})
        for change in changes:
            judged.judge(change, still_holds)
        judged.draft()
        return judged


class _Judged:
    """What became of changes when they were held against the jobs as they are."""

    def __init__(self, desk: Desk, now: int, sights: dict[str, Sight | None], waited_for: set[str]) -> None:
        self.refused: list[Refusal] = []
        self.accepted: list[Change] = []
        self.drafts: list[tuple[Draft, list[Change]]] = []
        self._ids: set[str] = set()  # of the accepted: a second change of the same job is refused
        self._desk = desk
        self._now = now
        self._sights = sights
        self._waited_for = waited_for
        self._seen = Draft(desk, now)
        self._seen.show(sights)

    def judge(self, change: Change, still_holds: Holds) -> None:
        job = self._seen.find(change.id)
        if job is None or change.id in self._ids or not still_holds(change, job, self._now):
            self.refused.append(Refusal(change.id, "lease"))
        elif is_running(job) and job.cancel_reason and not change.state.is_final:
            self.refused.append(Refusal(change.id, "cancel", job.cancel_reason))
        else:
            self.accepted.append(change)
            self._ids.add(change.id)

    def draft(self) -> None:
        """Jobs that others wait for, or that wait for others, go together with those of their schedules, which must
        hear of their ends in order; each of the rest stands alone."""
        schedules = {change.job.schedule_id for change in self.accepted if self._is_linked(change)} - {None}
        linked: list[Change] = []
        alone: list[Change] = []
        for change in self.accepted:
            is_linked = self._is_linked(change) or change.job.schedule_id in schedules
            (linked if is_linked else alone).append(change)
        groups = [*([linked] if linked else []), *([change] for change in alone)]
        for group in groups:
            draft = Draft(self._desk, self._now)
            draft.show({change.id: self._sights[change.id] for change in group})
            if group is not linked:
                draft.expect_no_waiters(group[0].id)
            draft.apply(group)
            self.drafts.append((draft, group))

    def _is_linked(self, change: Change) -> bool:
        return change.id in self._waited_for or change.job.waits_for is not None
