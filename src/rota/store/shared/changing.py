"""The steps of every store when jobs change: which changes hold, what schedules record of them, and the counters.

Workers, the rescuer and people decide about a job that they have read. The store writes the change only if the job
still is what was decided on (`matching.is_held_by`, `matching.is_same`). All changes of a call are checked before any
is written, so that what one sets in motion does not refuse the next.

Counters are kept, not counted: how many jobs each queue has in each state, how many have ever ended, and what happened
in this minute.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from rota.model.jobs.job import FINAL, State
from rota.model.jobs.series import added, count_runs, minute_of
from rota.model.schedules.occurrence import noted
from rota.store.contract import QueueInfo, QueueRecord, Refusal
from rota.store.shared.matching import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import LastRun

TOTAL = "total:"  # in front of a state: jobs that ever ended so


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


class Counts:
    """Differences per (queue, name), where name is a state or a total; and what settled runs add to a minute."""

    def __init__(self, start: dict[tuple[str, str], int] | None = None) -> None:
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int, start or {})
        self.minute = 0
        self.runs: list[int] = []  # for this minute, as the model counts them; empty: nothing

    def add(self, queue: str, state: State, number: int = 1) -> None:
        self._counts[queue, state.value] += number

    def add_all(self, jobs: Iterable[Job]) -> None:
        for (queue, state), number in Counter((job.queue, job.state) for job in jobs).items():
            self.add(queue, state, number)

    def remove_all(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self.remove(job.queue, job.state)

    def change(self, before: Job | None, after: Job | None) -> None:
        """Count one job that is written. A total rises when it ends, and when one that had ended does so again."""
        if before is None and after is not None:
            self.add(after.queue, after.state)
        elif after is None and before is not None:
            self.remove(before.queue, before.state)
        elif before is not None and after is not None and before.state is not after.state:
            self.move(after.queue, before.state, after.state)

    def move(self, queue: str, before: State, after: State, number: int = 1) -> None:
        self._counts[queue, before.value] -= number
        self._counts[queue, after.value] += number
        if after in FINAL:
            self._counts[queue, TOTAL + after.value] += number

    def move_all(self, moves: Iterable[tuple[str, State, State]]) -> None:
        """Count many moves (queue, before, after): a batch has few kinds of them."""
        for (queue, before, after), number in Counter(moves).items():
            self.move(queue, before, after, number)

    def settle(self, changes: Iterable[Change], now: int) -> None:
        """Count changes that were written: the moves of their jobs, and the runs that ended with them."""
        changes = list(changes)
        self.move_all((change.job.queue, change.job.state, change.state) for change in changes)
        self.add_runs(changes, now)

    def add_runs(self, changes: Iterable[Change], now: int) -> None:
        """Count the runs that ended. One step has one instant."""
        runs = count_runs(changes)
        if runs:
            self.minute = minute_of(now)
            self.runs = added(self.runs, runs) if self.runs else runs

    def remove(self, queue: str, state: State, number: int = 1) -> None:
        self._counts[queue, state.value] -= number

    def add_total(self, queue: str, state: str, number: int) -> None:
        """Jobs that ended so, in another store."""
        self._counts[queue, TOTAL + state] += number

    def grew(self, *states: State) -> bool:
        """Whether some queue has more jobs in one of these states than before."""
        names = {state.value for state in states}
        return any(number > 0 and name in names for (_, name), number in self._counts.items())

    def queues(self) -> set[str]:
        return {queue for queue, _ in self._counts}

    def ended(self) -> int:
        """How many ended jobs are kept."""
        names = {state.value for state in FINAL}
        return sum(number for (_, name), number in self._counts.items() if name in names)

    def rows(self) -> list[tuple[str, str, int]]:
        """What changed, for a store that keeps the sums elsewhere."""
        return [(queue, name, number) for (queue, name), number in self._counts.items() if number]

    def info(self, queue: str, *, is_paused: bool, oldest_at: int | None) -> QueueInfo:
        mine = {name: number for (of, name), number in self._counts.items() if of == queue and number}
        return QueueInfo(
            name=queue,
            is_paused=is_paused,
            counts={name: number for name, number in mine.items() if not name.startswith(TOTAL)},
            totals={name.removeprefix(TOTAL): number for name, number in mine.items() if name.startswith(TOTAL)},
            oldest_at=oldest_at,
        )

    def infos(self, paused: set[str] | frozenset[str], oldest_at: Callable[[str], int | None]) -> list[QueueInfo]:
        """The queues that have, or had, jobs or are paused; `oldest_at`: since when the first ready job waits."""
        return [
            self.info(name, is_paused=name in paused, oldest_at=oldest_at(name))
            for name in sorted(paused | self.queues())
        ]

    def differences(self, jobs: Iterable[tuple[str, State]]) -> dict[str, int]:
        """Where the kept counts differ from these jobs: "queue/state" and by how much."""
        counted = Counter((queue, state.value) for queue, state in jobs)
        kept = {key: number for key, number in self._counts.items() if not key[1].startswith(TOTAL)}
        keys = counted.keys() | kept.keys()
        off = {f"{queue}/{name}": kept.get((queue, name), 0) - counted[queue, name] for queue, name in keys}
        return {name: number for name, number in off.items() if number}


def load_queue(
    queue: QueueRecord, here: QueueRecord | QueueInfo | None, counts: Counts, pause: Callable[[], object]
) -> bool:
    """Take over what a record of another store has and the queue here lacks: its pause, and higher totals. Whether
    there was any."""
    is_paused_now = queue.is_paused and not (here is not None and here.is_paused)
    if is_paused_now:
        pause()
    missing = lacking(queue, here.totals if here is not None else {})
    for state, number in missing.items():
        counts.add_total(queue.name, state, number)
    return is_paused_now or bool(missing)


def lacking(queue: QueueRecord, totals: dict[str, int]) -> dict[str, int]:
    """By how much a queue's totals here are lower than in a record of it, where they are."""
    return {
        state: number - totals.get(state, 0) for state, number in queue.totals.items() if number > totals.get(state, 0)
    }
