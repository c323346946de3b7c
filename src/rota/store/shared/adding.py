"""Decides about new jobs by the batch: which exist already, by id, slot or key, and what the others become."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.model.jobs.job import accept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job, NewJob


class Existing(NamedTuple):
    """The jobs that new ones meet."""

    ids: set[str]
    live: set[str]  # those of them that have not ended
    slots: dict[str, str]  # the live job in each slot
    keys: dict[str, str]  # the job that holds each key


class Accepted(NamedTuple):
    """What becomes of new jobs."""

    existing: list[str | None]  # of each, in order: the job that answers in its place
    fresh: list[Job]


def accept_new(jobs: Sequence[NewJob], found: Existing, now: int) -> Accepted:
    """Accept jobs one after another: each meets those that came before it, too."""
    accepted = Accepted([], [])
    for new in jobs:
        holder = new.id if new.id in found.ids else found.slots.get(new.slot or "") or found.keys.get(new.key or "")
        accepted.existing.append(holder)
        if holder is not None:
            continue
        job = accept(new, now, must_wait=new.waits_for in found.live)
        accepted.fresh.append(job)
        found.ids.add(job.id)
        found.live.add(job.id)
        found.slots.update({job.slot: job.id} if job.slot else {})
        found.keys.update({job.key: job.id} if job.key else {})
    return accepted
