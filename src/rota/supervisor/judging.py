"""Decides whether a worker process may continue, by what its parent has observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rota.supervisor.plan import Plan
    from rota.supervisor.worker_process import WorkerProcess

MEGABYTE = 1024**2

_DOINGS = {"R": "busy", "D": "waiting for a disk", "T": "stopped", "t": "traced"}


class Verdict(NamedTuple):
    """Why a worker must be replaced. It is killed if it does not respond; otherwise it drains."""

    why: str
    is_unresponsive: bool


def judge(worker: WorkerProcess, plan: Plan) -> Verdict | None:
    """The reason to replace it; None: it continues."""
    if not worker.is_up:
        is_late = worker.age >= plan.start_for
        return Verdict(f"was not up after {plan.start_for:g} s", is_unresponsive=True) if is_late else None
    if worker.silent_for >= plan.stuck_after:
        doing = _DOINGS.get(worker.state, "asleep")
        return Verdict(f"sent no heartbeat for {plan.stuck_after:g} s ({doing})", is_unresponsive=True)
    if worker.is_leaving:
        return None
    if worker.unwell_for >= plan.stuck_after:
        return Verdict(f"has a loop that has not turned for {plan.stuck_after:g} s", is_unresponsive=False)
    if worker.stuck_for >= plan.stuck_after:
        slots = f"{worker.stuck} slot" + ("s" if worker.stuck > 1 else "")
        return Verdict(f"has {slots} held by a run that does not end", is_unresponsive=False)
    if plan.most_memory is not None and worker.rss > plan.most_memory:
        used, most = worker.rss / MEGABYTE, plan.most_memory / MEGABYTE
        return Verdict(f"uses {used:.0f} MB, more than {most:.0f} MB", is_unresponsive=False)
    return None
