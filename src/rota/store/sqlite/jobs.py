"""The job table: claiming, settling and listing, each inside a transaction that the store has begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.occurrence import is_noted, is_record_of, noted, of_job
from rota.model.settle import Change, cancel, release, still_awaited
from rota.model.state import State
from rota.store.contract import MOST_PROMOTED, Exchange, Refusal
from rota.store.shared.changing import check_changes
from rota.store.shared.claiming import claim_order, due_order
from rota.store.shared.pruning import Ended
from rota.store.sqlite.adding import Intake
from rota.store.sqlite.batches import Update, all_or_none
from rota.store.sqlite.marks import BLOCK
from rota.store.sqlite.rows import (
    FRESH_COLUMNS,
    IS_AHEAD,
    IS_FRESH,
    JOB_COLUMNS,
    fresh_job_of,
    jobs_of,
    last_of,
    packed_last,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from rota.model.job import Job
    from rota.store.shared.counting import Counts
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.marks import Marks

LARGEST_IN = 500  # values in one IN (…) list


class JobTable(Intake):
    """One namespace's jobs."""

    def __init__(self, namespace: str, ledger: Ledger, marks: Marks) -> None:
        super().__init__(namespace, marks)
        self._ledger = ledger
        self._schedules = f"{namespace}_schedule"
        self._logs = f"{namespace}_log"
        self._update = (
            f"UPDATE {self._name} SET state = ?, run_at = ?, queued_at = ?, started_at = ?, finished_at = ?, "
            "attempts = ?, failures = ?, deaths = ?, cancel_reason = coalesce(?, CASE WHEN ? THEN cancel_reason END), "
            "error = ?, result = ?, past = ?, key = ?, slot = ?, holder = ?, "
            "lease_until = NULL, lease_boot = NULL WHERE seq = ?"
        )
        fence = "seq = ? AND id = ? AND state = 'running' AND lease_no = ? AND holder = ?"
        self._end = f"{self._update[: self._update.index('seq = ?')]}{fence}"
        self._end_barely = Update(
            self._name,
            ("state", "finished_at", "attempts", "result"),
            "lease_until = NULL, lease_boot = NULL",
            ("seq", "id", "lease_no", "holder"),
            f"{self._name}.state = 'running'",
        )

    # Claiming.

    def promote(
        self, connection: sqlite3.Connection, queues: Sequence[str], now: int, ahead: int, counts: Counts
    ) -> None:
        """Make jobs of these queues ready that are due, or will be within `ahead`; a bounded number of them."""
        for queue in queues:
            promoted = connection.execute(
                f"UPDATE {self._name} SET state = 'queued', queued_at = max(?, run_at) "
                f"WHERE seq IN (SELECT seq FROM {self._name} WHERE state = 'scheduled' "
                f"AND ({IS_AHEAD}) IS NOT TRUE AND queue = ? AND run_at <= ? ORDER BY run_at, seq LIMIT ?)",
                (now, queue, now + ahead, MOST_PROMOTED),
            ).rowcount
            if promoted:
                counts.move(queue, State.SCHEDULED, State.QUEUED, promoted)

    def due_ahead(self, connection: sqlite3.Connection, queues: Sequence[str], now: int) -> list[Job]:
        """Due jobs of these queues that were made ahead and are yet to be judged, in the order of their times."""
        query = (
            f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE state = 'scheduled' AND {IS_AHEAD} "
            "AND queue = ? AND run_at <= ? ORDER BY run_at, seq LIMIT ?"
        )
        due = [job for queue in queues for job in jobs_of(connection.execute(query, (queue, now, MOST_PROMOTED)))]
        return sorted(due, key=due_order)

    def claim(
        self,
        connection: sqlite3.Connection,
        ask: Exchange,
        queues: Sequence[str],
        now: int,
        lease: tuple[int, str],
        counts: Counts,
    ) -> list[Job]:
        """Take the best ready jobs of these queues, in one merged order."""
        if not queues:
            return []
        best, values = self._best(queues, ask.want)
        lease_at, boot = lease
        until = lease_at + ask.lease_for
        rows = connection.execute(
            f"UPDATE {self._name} SET state = 'running', started_at = max(?, ifnull(queued_at, 0)), "
            "progress = NULL, lease_no = lease_no + 1, holder = ?, "
            f"lease_until = ?, lease_boot = ? WHERE seq IN ({best}) RETURNING {FRESH_COLUMNS}, {IS_FRESH}",
            (now, ask.holder, until, boot, *values),
        ).fetchall()
        claimed = [fresh_job_of(row, now, ask.holder, until) for row in rows if row[-1]]
        if len(claimed) < len(rows):
            others = [row[1] for row in rows if not row[-1]]
            claimed += jobs_of(self._select_in(connection, JOB_COLUMNS, "seq", others))
        claimed.sort(key=claim_order)
        counts.move_all((job.queue, State.QUEUED, State.RUNNING) for job in claimed)
        return claimed

    def has_work(self, connection: sqlite3.Connection, queues: Sequence[str], now: int) -> bool:
        """Whether a claim would find anything: a look that takes no write lock."""
        if self.next_due(connection, queues, until=now) is not None:
            return True
        best, values = self._best(queues, 1)
        return connection.execute(best, values).fetchone() is not None

    def _best(self, queues: Sequence[str], want: int) -> tuple[str, list[Any]]:
        each = (
            f"SELECT seq, priority FROM {self._name} WHERE state = 'queued' AND queue = ? "
            "ORDER BY priority DESC, seq LIMIT ?"
        )
        if len(queues) == 1:
            return f"SELECT seq FROM ({each})", [queues[0], want]
        merged = " UNION ALL ".join(f"SELECT * FROM ({each})" for _ in queues)
        values = [value for queue in queues for value in (queue, want)]
        return f"SELECT seq FROM ({merged}) ORDER BY priority DESC, seq LIMIT ?", [*values, want]

    def next_due(self, connection: sqlite3.Connection, queues: Sequence[str], until: int | None = None) -> int | None:
        """When the first scheduled job of these queues is due (at or before `until`, where that is given)."""
        query = f"SELECT min(run_at) FROM {self._name} WHERE state = 'scheduled' AND queue = ?"
        found = [connection.execute(query, (queue,)).fetchone()[0] for queue in queues]
        first = min((run_at for run_at in found if run_at is not None), default=None)
        return None if first is None or (until is not None and first > until) else first

    # Settling.

    def end(
        self, connection: sqlite3.Connection, holder: str, changes: Sequence[Change], now: int, counts: Counts
    ) -> bool:
        """End jobs whose leases the holder has, all of them; False, with nothing changed, where one must be looked at.

        What a worker reports is mostly this: one fenced statement each, and nothing is read first.
        """
        if not all(change.state.is_final for change in changes):
            return False
        if all(change.is_bare_end for change in changes):
            bare = [_row_of_end(change, holder) for change in changes]
            are_over = all_or_none(connection, lambda: self._end_barely.write(connection, bare), len(bare))
        else:
            rows = [(*_row_of_change(change), change.id, change.job.lease_no, holder) for change in changes]
            are_over = all_or_none(connection, lambda: connection.executemany(self._end, rows).rowcount, len(rows))
        if not are_over:
            return False
        self._follow(connection, changes, now, counts)
        return True

    def settle(
        self,
        connection: sqlite3.Connection,
        changes: Sequence[Change],
        now: int,
        counts: Counts,
        still_holds: Callable[[Change, Job], bool],
    ) -> list[Refusal]:
        """Apply changes where the jobs still are what was decided on; name the others."""
        places = [change.job.seq for change in changes]
        current = {job.seq: job for job in jobs_of(self._select_in(connection, JOB_COLUMNS, "seq", places))}

        def find(change: Change) -> Job | None:
            job = current.get(change.job.seq)
            return job if job is not None and job.id == change.id else None

        checked = check_changes(changes, find, still_holds)
        self.apply(connection, [change for change, _ in checked.accepted], now, counts)
        return checked.refused

    def oldest_ready(self, connection: sqlite3.Connection, queue: str) -> int | None:
        """Since when the first in line waits: one look per priority that is in use, never at the whole line."""
        ready = f"FROM {self._name} WHERE state = 'queued' AND queue = :queue"
        row = connection.execute(
            f"WITH RECURSIVE used(p) AS (SELECT max(priority) {ready} UNION ALL "
            f"SELECT (SELECT max(priority) {ready} AND priority < p) FROM used WHERE p IS NOT NULL) "
            f"SELECT min((SELECT coalesce(queued_at, run_at) {ready} AND priority = p ORDER BY seq LIMIT 1)) FROM used",
            {"queue": queue},
        ).fetchone()
        return row[0] if row else None

    def apply(self, connection: sqlite3.Connection, changes: Sequence[Change], now: int, counts: Counts) -> None:
        """Write changes that were found to hold, and what follows from them."""
        if not changes:
            return
        connection.executemany(self._update, [_row_of_change(change) for change in changes])
        self._follow(connection, changes, now, counts)

    def _follow(self, connection: sqlite3.Connection, changes: Sequence[Change], now: int, counts: Counts) -> None:
        """What changes set in motion, once they are written."""
        counts.move_all((change.job.queue, change.job.state, change.state) for change in changes)
        ended = [change for change in changes if change.state.is_final]
        if ended:
            succeeded = {change.job.seq // BLOCK for change in ended if change.state is State.SUCCEEDED}
            self._marks.note_successes(connection, succeeded)
            self._let_go(connection, [change.id for change in ended], now, counts)
        self._note_last_runs(connection, changes)
        if ended:
            self.remove(connection, [change.id for change in ended if change.is_removal], counts)

    def _let_go(self, connection: sqlite3.Connection, over: list[str], now: int, counts: Counts) -> None:
        """The jobs that waited for these go on, or wait for what a cancelled link of their chain waited for."""
        if connection.execute(f"SELECT 1 FROM {self._name} WHERE state = 'held' LIMIT 1").fetchone() is None:
            return
        for job in jobs_of(self._select_in(connection, JOB_COLUMNS, "waits_for", over, "AND state = 'held'")):
            awaited = still_awaited(job, lambda job_id: next(iter(self.get(connection, [job_id])), None))
            if awaited is None:
                self.apply(connection, [release(job, now)], now, counts)
            else:
                connection.execute(f"UPDATE {self._name} SET waits_for = ? WHERE seq = ?", (awaited, job.seq))

    def _note_last_runs(self, connection: sqlite3.Connection, changes: Sequence[Change]) -> None:
        """Record with the schedules how their jobs ended, or that an attempt failed."""
        for change in changes:
            if not is_noted(change):
                continue
            where = (change.job.schedule_id,)
            row = connection.execute(f"SELECT last FROM {self._schedules} WHERE id = ?", where).fetchone()
            if row is not None:
                last = packed_last(noted(last_of(row[0]), change))
                connection.execute(f"UPDATE {self._schedules} SET last = ? WHERE id = ?", (last, *where))

    def put(self, connection: sqlite3.Connection, before: Job, after: Job, counts: Counts) -> None:
        """Write a job that nobody holds as it is from now on."""
        connection.execute(
            f"UPDATE {self._name} SET state = ?, queued_at = ?, waits_for = ?, key = ?, slot = ?, ahead = ?, past = ? "
            "WHERE seq = ?",
            (
                after.state.value,
                after.queued_at,
                after.waits_for,
                after.key,
                after.slot,
                after.ahead,
                after.past,
                before.seq,
            ),
        )
        counts.move(before.queue, before.state, after.state)

    def stop(self, connection: sqlite3.Connection, job_id: str, reason: str, now: int, counts: Counts) -> None:
        """Ask a running job to stop; a waiting one is cancelled."""
        if not self.request_cancels(connection, [job_id], reason):
            waiting = [job for job in self.get(connection, [job_id]) if job.state is not State.RUNNING]
            self.apply(connection, [cancel(job, now, reason) for job in waiting], now, counts)

    # Leases.

    def extend(
        self, connection: sqlite3.Connection, holder: str, leases: Sequence[tuple[str, int]], until: int, boot: str
    ) -> list[str]:
        """Renew exactly these leases; the ids of those that are lost."""
        lost = []
        for job_id, lease_no in leases:
            renewed = connection.execute(
                f"UPDATE {self._name} SET lease_until = ?, lease_boot = ? "
                "WHERE id = ? AND state = 'running' AND lease_no = ? AND holder = ?",
                (until, boot, job_id, lease_no, holder),
            ).rowcount
            if not renewed:
                lost.append(job_id)
        return lost

    def cancels(self, connection: sqlite3.Connection, holder: str) -> dict[str, str]:
        rows = connection.execute(
            f"SELECT id, cancel_reason FROM {self._name} "
            "WHERE state = 'running' AND holder = ? AND cancel_reason IS NOT NULL",
            (holder,),
        )
        return dict(rows.fetchall())

    def lapsed(self, connection: sqlite3.Connection, limit: int, lease: tuple[int, str]) -> list[Job]:
        rows = connection.execute(
            f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE state = 'running' "
            "AND (lease_until <= ? OR lease_boot <> ?) ORDER BY lease_until LIMIT ?",
            (*lease, limit),
        )
        return jobs_of(rows)

    def lapsed_among(self, connection: sqlite3.Connection, places: Sequence[int], lease: tuple[int, str]) -> set[int]:
        """Those of the running jobs, by seq, whose lease has expired."""
        rows = self._select_in(connection, "seq, lease_until, lease_boot", "seq", places, "AND state = 'running'")
        return {seq for seq, until, boot in rows if until <= lease[0] or boot != lease[1]}

    def request_cancels(self, connection: sqlite3.Connection, ids: Sequence[str], reason: str) -> list[str]:
        running = []
        for job_id in ids:
            asked = connection.execute(
                f"UPDATE {self._name} SET cancel_reason = coalesce(cancel_reason, ?) "
                "WHERE id = ? AND state = 'running'",
                (reason or "cancelled", job_id),
            ).rowcount
            if asked:
                running.append(job_id)
        return running

    # Reading and removing.

    def get(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[Job]:
        found = {job.id: job for job in jobs_of(self._select_in(connection, JOB_COLUMNS, "id", ids))}
        return [found[job_id] for job_id in ids if job_id in found]

    def waiting_of(self, connection: sqlite3.Connection, schedule_id: str) -> list[Job]:
        """What a schedule's trigger made and nobody has started."""
        query = (
            f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE schedule_id = ? AND fire_at IS NOT NULL "
            "AND state IN ('scheduled', 'queued', 'held')"
        )
        return jobs_of(connection.execute(query, (schedule_id,)))

    def has_occurrence(self, connection: sqlite3.Connection, schedule_id: str, fire_at: int | None) -> bool:
        query = f"SELECT 1 FROM {self._name} WHERE schedule_id = ? AND fire_at = ?"
        return connection.execute(query, (schedule_id, fire_at)).fetchone() is not None

    def made(self, connection: sqlite3.Connection, occurrences: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of the occurrences (schedule and time) that have a job."""
        wanted = list(occurrences)
        found: set[tuple[str, int]] = set()
        for start in range(0, len(wanted), LARGEST_IN):
            chunk = wanted[start : start + LARGEST_IN]
            query = (
                f"WITH wanted (name, at) AS (VALUES {', '.join(['(?, ?)'] * len(chunk))}) SELECT name, at FROM wanted "
                f"WHERE EXISTS (SELECT 1 FROM {self._name} WHERE schedule_id = name AND fire_at = at)"
            )
            found.update(connection.execute(query, [value for pair in chunk for value in pair]))
        return found

    def slots_in_use(self, connection: sqlite3.Connection, names: Sequence[str]) -> set[str]:
        """Those of the schedules whose slot a live job has."""
        return {slot for (slot,) in self._select_in(connection, "slot", "slot", names)}

    def found_among(
        self, connection: sqlite3.Connection, query: str, values: Sequence[Any], extra: str = ""
    ) -> list[tuple[Any, ...]]:
        """What a query that ends with IN finds, in lists of bounded length."""
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(values), LARGEST_IN):
            chunk = values[start : start + LARGEST_IN]
            rows += connection.execute(f"{query} ({', '.join('?' * len(chunk))}) {extra}", chunk)
        return rows

    def last_held(self, connection: sqlite3.Connection, schedule_id: str) -> str | None:
        query = f"SELECT id FROM {self._name} WHERE schedule_id = ? AND state = 'held' ORDER BY seq DESC LIMIT 1"
        row = connection.execute(query, (schedule_id,)).fetchone()
        return row[0] if row else None

    def remove(self, connection: sqlite3.Connection, ids: Sequence[str], counts: Counts) -> list[str]:
        """Delete ended jobs with their logs; their occurrences stay in the ledger."""
        if not ids:
            return []
        jobs = [job for job in self.get(connection, list(dict.fromkeys(ids))) if job.state.is_final]
        self._ledger.record(connection, [of_job(job) for job in jobs if self._is_of_a_schedule(connection, job)])
        self._drop(connection, jobs, counts)
        return [job.id for job in jobs]

    def unmake(self, connection: sqlite3.Connection, jobs: Sequence[Job], now: int, counts: Counts) -> None:
        """Jobs go without a trace; what waited for them waits no more."""
        self._drop(connection, jobs, counts)
        if jobs:
            self._let_go(connection, [job.id for job in jobs], now, counts)

    def _drop(self, connection: sqlite3.Connection, jobs: Sequence[Job], counts: Counts) -> None:
        """Delete jobs with their logs and leave no record."""
        for job in jobs:
            counts.remove(job.queue, job.state)
        connection.executemany(f"DELETE FROM {self._name} WHERE seq = ?", [(job.seq,) for job in jobs])
        connection.executemany(f"DELETE FROM {self._logs} WHERE job_id = ?", [(job.id,) for job in jobs])

    def _is_of_a_schedule(self, connection: sqlite3.Connection, job: Job) -> bool:
        """Whether a job is an occurrence of a schedule that still exists, and not of an earlier namesake."""
        if job.schedule_id is None:
            return False
        query = f"SELECT created_at FROM {self._schedules} WHERE id = ?"
        row = connection.execute(query, (job.schedule_id,)).fetchone()
        return is_record_of(job, row[0] if row else None)

    def ended(self, connection: sqlite3.Connection, state: State, through: int, now: int, limit: int) -> list[Ended]:
        """Jobs that ended until then and whose key no longer holds, the first to have ended first."""
        rows = connection.execute(
            f"SELECT finished_at, seq, id FROM {self._name} WHERE finished_at IS NOT NULL AND state = ? "
            "AND finished_at <= ? AND key_until <= ? ORDER BY finished_at, seq LIMIT ?",
            (state.value, through, now, limit),
        )
        return [Ended(finished_at, seq, job_id) for finished_at, seq, job_id in rows]

    def _select_in(
        self, connection: sqlite3.Connection, columns: str, column: str, values: Sequence[Any], extra: str = ""
    ) -> list[tuple[Any, ...]]:
        """Rows whose column is one of the values."""
        query = f"SELECT {columns} FROM {self._name} WHERE {column} IN"
        return self.found_among(connection, query, values, extra)


def _row_of_end(change: Change, holder: str) -> tuple[Any, ...]:
    job = change.job
    return (
        change.state.value,
        change.finished_at,
        change.attempts,
        change.result,
        job.seq,
        job.id,
        job.lease_no,
        holder,
    )


def _row_of_change(change: Change) -> tuple[Any, ...]:
    return (
        change.state.value,
        change.run_at,
        change.queued_at,
        change.started_at,
        change.finished_at,
        change.attempts,
        change.failures,
        change.deaths,
        change.cancel_reason,
        change.keeps_cancel,
        change.error,
        change.result,
        change.past,
        change.key,
        change.slot,
        change.job.holder if change.state.is_final else None,
        change.job.seq,
    )
