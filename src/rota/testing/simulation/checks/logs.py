"""Checks that the store has a run's lines, in the order in which they were written, once it has the run's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.testing.simulation.checks.leases import accepted
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from rota.testing.simulation.history import History

WHOLE_LOGS = "a job's log holds its lines, in order"


def check_logs(history: History, written: dict[tuple[str, int], int]) -> list[Violation]:
    """Writers number the lines of a job and lease. A line may come twice if a reply was lost."""
    violations: list[Violation] = []
    kept: dict[tuple[str, int], int] = {}
    for call in history.calls:
        for line in call.args[0] if call.verb == "append_logs" else ():
            lease_no, number = map(int, line.text.split(":"))
            name = line.job_id, lease_no
            if number > kept.get(name, 0) + 1:
                text = f"line {number} of {line.job_id} follows {kept.get(name, 0)}"
                violations.append(Violation(WHOLE_LOGS, call.step, text))
            kept[name] = max(number, kept.get(name, 0))
        for change in accepted(call) if call.verb == "exchange" else ():
            name = change.id, change.job.lease_no
            if kept.get(name, 0) < written.get(name, 0) and change.finished_at is not None:
                text = f"{change.id} ended with {kept.get(name, 0)} of {written[name]} lines"
                violations.append(Violation(WHOLE_LOGS, call.step, text))
    return violations
