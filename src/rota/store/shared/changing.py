"""Checks changes against the jobs as they are now: which may be written, and why the others are refused.

Workers, the rescuer and people decide about a job that they have read. The store writes the change only if the job
still is what was decided on (`matching.is_held_by`, `matching.is_same`). All changes of a call are checked before any
is written, so that what one sets in motion does not refuse the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.store.contract import Refusal
from rota.store.shared.matching import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rota.model.job import Job
    from rota.model.settle import Change


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
