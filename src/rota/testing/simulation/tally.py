"""Counts what a simulation has seen: jobs, schedules and faults by kind. A run without faults proves nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.testing.simulation.checks.leases import accepted, count_refused

if TYPE_CHECKING:
    from rota.testing.simulation.history import Call
    from rota.testing.simulation.simulation import Simulation

EXPECTED = (
    "refused writes", "rescues", "retries", "skips", "releases", "repeat", "firings", "refused firings", "log lines",
    "tenant syncs",
    "crash before", "crash after", "cut before", "cut after", "delay", "freeze",
)  # fmt: skip


def tally_of(simulation: Simulation) -> Counter[str]:
    """Counts by name: what happened to jobs and schedules, and the faults by kind."""
    history = simulation.recorder.history
    counts = Counter(simulation.fault_plan.seen)
    counts["steps"] = simulation.step
    counts["calls"] = len(history.pulses)
    counts["refused writes"] = count_refused(history)
    for call in history.calls:
        counts.update(_work_of(call))
    return counts


def _work_of(call: Call) -> Counter[str]:
    counts: Counter[str] = Counter()
    match call.verb:
        case "rescue_jobs":
            counts["rescues"] = len(accepted(call))
        case "exchange":
            counts["retries"] = sum(change.failures > change.job.failures for change in accepted(call))
        case "fire":
            counts["firings"] = sum(len(fired.jobs) for fired in call.reply)
            counts["skips"] = sum(fired.skipped for fired in call.reply)
            counts["refused firings"] = sum(not fired.is_accepted for fired in call.reply)
        case "edit_entries":
            counts["tenant syncs"] = int(call.actor.endswith("/tenant sync"))
        case "append_logs":
            counts["log lines"] = len(call.args[0])
        case _:
            pass
    counts["releases"] = sum(
        before is not None and before.state is State.HELD and after is not None and after.state is not State.HELD
        for before, after in call.jobs
        if after is None or after.state is not State.CANCELLED
    )
    return counts
