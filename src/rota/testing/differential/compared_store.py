"""Does operations to one store of a differential test, in the store's own positions, numbers and cursors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.jobs.job import Job
from rota.model.jobs.settle import Change
from rota.store.contract import LARGEST_PAGE, AuditFilter, Exchange, Exchanged, JobFilter, Page
from rota.testing.differential.answers import (
    Raised,
    comparable,
    comparable_expired,
    comparable_lines,
    comparable_lines_of_many,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rota.store.contract import Part, ScheduleFilter, Store
    from rota.testing.differential.operation import Operation

FAR = 2**53  # beyond every instant
MOST_PAGES = 50


class ComparedStore:
    """One store. A decision that was made on the memory store is translated: each store has positions of its own."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.errors: list[BaseException] = []  # in the order raised, for a report that needs more than their class
        self._seqs: dict[str, int] = {}
        self._special: dict[str, Callable[..., Any]] = {
            "list_jobs": self._list_jobs,
            "list_schedules": self._list_schedules,
            "list_occurrences": self._list_occurrences,
            "list_logs": self._list_logs,
            "expired_jobs": self._expired_jobs,
            "prune": self._prune,
            "dump": self._dump,
        }

    def do(self, operation: Operation) -> tuple[Any, Any]:
        """The comparable answer, and the reply as it came (None if there was an error)."""
        special = self._special.get(operation.verb)
        try:
            if special is not None:
                answer, reply = special(*operation.args, **operation.options)
                return answer, reply
            args = tuple(self._localised(arg) for arg in operation.args)
            reply = getattr(self.store, operation.verb)(*args, **operation.options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            self.errors.append(error)
            return Raised(type(error).__name__), None
        self._remember(reply)
        return comparable(reply), reply

    def state(self, schedules: Iterable[str], logged: Iterable[str]) -> dict[str, Any]:
        """Everything that can be read: the schedules and the jobs with logs are those that the walk knows of."""
        jobs = self._pages(lambda cursor: self.store.list_jobs(JobFilter(), cursor=cursor, limit=LARGEST_PAGE), 1_000)
        self._remember(jobs)
        return {
            "recount": self.store.recount(),
            "queues": self.store.list_queues(),
            "series": self.store.read_series(0, FAR),
            "jobs": comparable(jobs),
            "schedules": comparable(self.store.list_schedules(limit=LARGEST_PAGE)),
            "occurrences": {name: self._occurrences(name) for name in schedules},
            "logs": {job_id: comparable_lines(self.store.list_logs(job_id)) for job_id in logged},
            "nodes": self.store.list_nodes(),
            "entries": self.store.list_entries("tenant", limit=LARGEST_PAGE).items,
            "audit_records": self._pages(
                lambda cursor: self.store.list_audit_records(AuditFilter(), cursor=cursor, limit=LARGEST_PAGE), 1_000
            ),
        }

    # Reads whose answers come in pages, with numbers or in an order of the store's own.

    def _list_jobs(self, where: JobFilter, *, limit: int, begin: str | None = None) -> tuple[Any, Any]:
        jobs = self._pages(lambda cursor: self.store.list_jobs(where, cursor=cursor or begin, limit=limit))
        self._remember(jobs)
        return comparable(jobs), jobs

    def _list_schedules(self, where: ScheduleFilter, *, limit: int) -> tuple[Any, Any]:
        found = self._pages(lambda cursor: self.store.list_schedules(where, cursor=cursor, limit=limit))
        return found, found

    def _list_entries(self, kind: str, *, limit: int) -> tuple[Any, Any]:
        found = self._pages(lambda cursor: self.store.list_entries(kind, cursor=cursor, limit=limit))
        return found, found

    def _list_audit_records(self, where: AuditFilter, *, limit: int) -> tuple[Any, Any]:
        found = self._pages(lambda cursor: self.store.list_audit_records(where, cursor=cursor, limit=limit))
        return found, found

    def _list_occurrences(
        self, schedule_id: str, start: int, end: int, *, limit: int, begin: str | None = None
    ) -> tuple[Any, Any]:
        found = self._pages(
            lambda cursor: self.store.list_occurrences(schedule_id, start, end, cursor=cursor or begin, limit=limit)
        )
        return found, found

    def _list_logs(
        self, job_id: str, *, behind: int, start: int | None, end: int | None, limit: int
    ) -> tuple[Any, Any]:
        """The lines after the first so many, by the number that this store gave to the last of those."""
        passed = self.store.list_logs(job_id, limit=behind) if behind else []
        after = passed[-1].number if passed else 0
        found = self.store.list_logs(job_id, after=after, start=start, end=end, limit=limit)
        return comparable_lines(found), found

    def _expired_jobs(self, limit: int, *, now: int) -> tuple[Any, Any]:
        found = self.store.expired_jobs(limit, now=now)
        self._remember(found)
        return comparable_expired(found, limit), found

    def _prune(self, *args: Any, **options: Any) -> tuple[Any, Any]:
        """Prune until two calls found nothing: one may end a round of all schedules. The order is the store's own."""
        rounds = [self.store.prune(*args, **options), self.store.prune(*args, **options)]
        while rounds[-1].total or rounds[-2].total:
            rounds.append(self.store.prune(*args, **options))
        names = ("jobs", "occurrences", "nodes", "audit_records")
        total = {name: sum(getattr(done, name) for done in rounds) for name in names}
        return total, rounds

    def _dump(self, part: Part, *, limit: int) -> tuple[Any, Any]:
        """All records of a part; the order is promised for jobs, and for the lines of one job."""
        found = self._pages(lambda cursor: self.store.dump(part, cursor=cursor, limit=limit), most=1_000)
        self._remember(found)
        if part == "logs":
            return comparable_lines_of_many(found), found
        shown = comparable(found)
        return shown if part == "jobs" else sorted(shown, key=repr), found

    def _occurrences(self, schedule_id: str) -> list[Any]:
        return self._pages(
            lambda cursor: self.store.list_occurrences(schedule_id, 0, FAR, cursor=cursor, limit=LARGEST_PAGE)
        )

    def _pages(self, page_at: Callable[[str | None], Page[Any]], most: int = MOST_PAGES) -> list[Any]:
        """The items of all pages. A list that does not end is cut, and recognised by its length."""
        items: list[Any] = []
        cursor: str | None = None
        for _ in range(most):
            page = page_at(cursor)
            items += page.items
            cursor = page.cursor
            if cursor is None:
                break
        return items

    # Positions.

    def _remember(self, reply: Any) -> None:
        jobs = reply.claimed if isinstance(reply, Exchanged) else reply
        if isinstance(jobs, list):
            self._seqs.update((job.id, job.seq) for job in jobs if isinstance(job, Job))

    def _localised(self, value: Any) -> Any:
        match value:
            case Change():
                return msgspec.structs.replace(value, job=msgspec.structs.replace(value.job, seq=self._seq(value.id)))
            case Exchange():
                return msgspec.structs.replace(value, settled=self._localised(value.settled))
            case list():
                return [self._localised(item) for item in value]
            case _:
                return value

    def _seq(self, job_id: str) -> int:
        """The position of a job in this store; 0 if it has no such job, or deleted it before it was read."""
        if job_id not in self._seqs:
            self._remember(self.store.get_jobs([job_id]))
        return self._seqs.get(job_id, 0)
