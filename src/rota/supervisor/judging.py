"""Decides whether a worker process may go on, by what its parent has seen of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rota.supervisor.plan import Plan
    from rota.supervisor.worker_process import WorkerProcess

MEGABYTE = 1024**2

_DOINGS = {"R": "busy", "D": "waiting for a disk", "T": "stopped", "t": "traced"}


class Verdict(NamedTuple):
    """A worker must go: killed, if it no longer receives messages; else it drains."""

    why: str
    is_deaf: bool


def judge(worker: WorkerProcess, plan: Plan) -> Verdict | None:
    """None: let it be."""
    if not worker.is_up:
        return Verdict(f"was not up after {plan.start_for:g} s", is_deaf=True) if worker.age >= plan.start_for else None
    if worker.silent_for >= plan.stuck_after:
        doing = _DOINGS.get(worker.state, "asleep")
        return Verdict(f"sent no heartbeat for {plan.stuck_after:g} s ({doing})", is_deaf=True)
    if worker.is_leaving:
        return None
    if worker.unwell_for >= plan.stuck_after:
        return Verdict(f"has a loop that stands still for {plan.stuck_after:g} s", is_deaf=False)
    if worker.stuck_for >= plan.stuck_after:
        slots = f"{worker.stuck} slot" + ("s" if worker.stuck > 1 else "")
        return Verdict(f"has {slots} held by a run that does not end", is_deaf=False)
    if plan.most_memory is not None and worker.rss > plan.most_memory:
        used, most = worker.rss / MEGABYTE, plan.most_memory / MEGABYTE
        return Verdict(f"uses {used:.0f} MB, more than {most:.0f} MB", is_deaf=False)
    return None
