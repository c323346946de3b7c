"""The states of a job and the only lawful moves between them. Nothing else changes a state."""

from __future__ import annotations

from enum import StrEnum

from rota.errors import UnlawfulMove


class State(StrEnum):
    """Where a job stands; each can be said aloud: "the job is queued"."""

    SCHEDULED = "scheduled"  # due later; with attempts behind it, it is waiting for its next one
    QUEUED = "queued"  # ready for a worker
    RUNNING = "running"  # under a lease
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    HELD = "held"  # waits for another job to end

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def is_waiting(self) -> bool:
        return self in WAITING


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
WAITING = frozenset({State.SCHEDULED, State.QUEUED, State.HELD})

MOVES: dict[State, frozenset[State]] = {
    State.SCHEDULED: frozenset({State.QUEUED, State.HELD, State.CANCELLED}),  # held: made ahead, and it would overlap
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset({State.SCHEDULED, State.QUEUED, *FINAL}),
    State.HELD: frozenset({State.QUEUED, State.SCHEDULED, State.CANCELLED}),  # scheduled: released before its time
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset({State.QUEUED, State.SCHEDULED}),  # retried by hand; scheduled: its time is still to come
    State.CANCELLED: frozenset({State.QUEUED, State.SCHEDULED}),
}
FIRST = frozenset({State.SCHEDULED, State.QUEUED, State.HELD})  # where a new job may begin


def check_move(before: State, after: State) -> None:
    """Raise if the table has no such move."""
    if after not in MOVES[before]:
        raise UnlawfulMove(f"a {before} job cannot become {after}")
