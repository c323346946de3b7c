"""Reporter: collects how runs ended and turns each into the change that the store is asked to make."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from rota.model.outcome import Succeeded
from rota.model.settle import settle

if TYPE_CHECKING:
    from random import Random

    from rota.engine.executors.run import Run
    from rota.model.outcome import Outcome
    from rota.model.settle import Change


class Report:
    """One run that has ended, and the change that follows; kept until the store has taken or refused it."""

    __slots__ = ("change", "outcome", "run")

    def __init__(self, run: Run, outcome: Outcome, change: Change) -> None:
        self.run = run
        self.outcome = outcome
        self.change = change


class Reporter:
    """Threads put outcomes in, the worker's loop takes changes out, in batches."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._ended: deque[tuple[Run, Outcome]] = deque()

    def put(self, run: Run, outcome: Outcome) -> None:
        self._ended.append((run, outcome))

    def take(self, limit: int, now: int) -> list[Report]:
        """The next changes to record; decided at `now`."""
        reports: list[Report] = []
        while self._ended and len(reports) < limit:
            run, outcome = self._ended.popleft()
            if run.is_lost:
                continue  # the store has given the job out anew: there is nothing to report
            reports.append(self._decide(run, outcome, now))
        return reports

    def put_back(self, report: Report, cancel_reason: str) -> None:
        """The job was asked to stop while its worker was deciding: decide again, knowing that."""
        report.run.job = msgspec.structs.replace(report.run.job, cancel_reason=cancel_reason)
        self.put(report.run, report.outcome)

    def __len__(self) -> int:
        return len(self._ended)

    def _decide(self, run: Run, outcome: Outcome, now: int) -> Report:
        keep = run.task is None or run.task.options.keep
        if run.stop_reason is not None and run.job.cancel_reason is None and isinstance(outcome, Succeeded):
            run.job = msgspec.structs.replace(run.job, cancel_reason=run.stop_reason)  # it came too late: say so
        secrets = () if isinstance(outcome, Succeeded) else run.secrets  # a result is hidden when it is shown
        change = settle(run.job, outcome, run.policy, now, self._random.random(), keep=keep, secrets=secrets)
        return Report(run, outcome, change)
