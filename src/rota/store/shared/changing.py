"""Checks changes against the jobs as they are now: which may be written, and why the others are refused.

Workers, the rescuer and people decide about a job that they have read. The store writes the change only if the job
still is what was decided on (`matching.is_held_by`, `matching.is_same`). All changes of a call are checked before any
is written, so that what one sets in motion does not refuse the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.model.schedules.occurrence import noted
from rota.store.contract import Refusal
from rota.store.shared.matching import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import LastRun


class Checked(NamedTuple):
    """The changes that hold, each with its job as it is now; and those that do not, in the order given."""

    accepted: list[tuple[Change, Job]]
    refused: list[Refusal]


def check_changes(
    changes: Iterable[Change], find: Callable[[Change], Job | None], still_holds: Callable[[Change, Job], bool]
) -> Checked:
    """Check changes. Of several changes to one job the first that holds counts. A job that was asked to stop may end
    and may not go on."""
    checked = Checked([], [])
    taken: set[str] = set()
    for change in changes:
        job = find(change)
        if job is None or change.id in taken or not still_holds(change, job):
            checked.refused.append(Refusal(change.id, "lease"))
        elif is_running(job) and job.cancel_reason and not change.state.is_final:
            checked.refused.append(Refusal(change.id, "cancel", job.cancel_reason))
        else:
            checked.accepted.append((change, job))
            taken.add(change.id)
    return checked


def last_runs(changes: Iterable[Change], read: Callable[[list[str]], Mapping[str, LastRun]]) -> dict[str, LastRun]:
    """What schedules record of their last runs after these changes. A schedule that is gone is left out."""
    recorded = [(change.job.schedule_id or "", change) for change in changes if change.is_last_run]
    after = dict(read(sorted({name for name, _ in recorded}))) if recorded else {}
    for name, change in recorded:
        if name in after:
            after[name] = noted(after[name], change)
    return after
