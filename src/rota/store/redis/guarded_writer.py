"""Reads snapshots for decisions, and commits the decisions that still hold; the others are decided again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.errors import StoreUnavailable
from rota.failpoints import reach
from rota.store.redis.codec import JobSnapshot, snapshots_of
from rota.store.redis.guarded_write import GuardedWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.store.redis.connection import Connection
    from rota.store.redis.indexes import Command

WIDEST_READ = 1_000  # jobs in one call
MOST_WRITES = 250  # in one commit: a script must not block the server for long
MOST_RETRIES = 100  # of a decision, before the caller gets an error


class Snapshot(NamedTuple):
    """What one call read at one instant."""

    now: int
    jobs: dict[str, JobSnapshot | None]
    answers: list[Any]  # to the commands
    positions: Iterator[int]  # that were reserved


class GuardedWriter:
    """Reads and writes of one namespace."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def snapshot(
        self,
        ids: Sequence[str] = (),
        *commands: Command,
        reserve: int = 0,
        now: int | None = None,
        is_work: bool = False,
    ) -> Snapshot:
        """The clock, jobs and answers to commands at one instant; and positions reserved for new jobs."""
        reply = self.connection.call(
            "read", now=now, is_work=is_work, ids=ids[:WIDEST_READ], commands=commands, reserve=reserve
        )
        answers, raw, base = reply.body
        jobs = snapshots_of(raw)
        if len(ids) > WIDEST_READ:
            jobs |= self.read_jobs(ids[WIDEST_READ:])
        return Snapshot(reply.now, jobs, answers, iter(range(base + 1, base + 1 + reserve)))

    def read_jobs(self, ids: Sequence[str]) -> dict[str, JobSnapshot | None]:
        return self.snapshot(ids).jobs

    def read(self, *commands: Command) -> list[Any]:
        return self.snapshot((), *commands).answers

    def commit(self, verb: str, writes: Sequence[GuardedWrite], *, is_work: bool) -> list[bool]:
        """Whether each was written; one whose snapshots have changed meanwhile is not written at all."""
        held: list[bool] = []
        for start in range(0, len(writes), MOST_WRITES):
            items = [write.item() for write in writes[start : start + MOST_WRITES]]
            reach(f"{verb}.before_commit")
            held += map(bool, self.connection.call("commit", items=items, is_work=is_work).body)
            reach(f"{verb}.after_commit")
        return held

    def write(self, *commands: Command, channels: Sequence[str] = (), is_work: bool = False) -> None:
        """Write what needs no guard."""
        write = GuardedWrite(self, 0)
        for command in commands:
            write.add_command(*command)
        for channel in channels:
            write.notify(channel)
        self.connection.call("commit", items=[write.item()], is_work=is_work)

    def retry(self, step: Callable[[], bool]) -> None:
        """Repeat a step that decides and commits until it says that nothing is left."""
        for _ in range(MOST_RETRIES):
            if step():
                return
        raise StoreUnavailable(
            f"{self.connection.address}: others changed what was to be written {MOST_RETRIES} times in a row; try again"
        )
