"""Upkeep: removing what was kept long enough, and counting anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.occurrence import of_job
from rota.model.state import FINAL, State
from rota.store.contract import Pruned, QueueInfo
from rota.store.redis.draft import Draft, neighbours
from rota.store.redis.packing import WIDTH, jobs_of, note_mark
from rota.store.redis.sheaves import SHEAF, SHEAVES_AT_ONCE, SPAN_BITS
from rota.store.redis.wire import binary
from rota.store.shared.counting import Counts
from rota.store.shared.matching import is_stale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.job import Job
    from rota.store.contract import Retention
    from rota.store.redis.desk import Desk
    from rota.store.redis.places import Command
    from rota.store.redis.reading import Reader

MOST_SKIPPED = 10  # batches of jobs that a key keeps, which a round looks past
WINDOW = 1_000


class Housekeeper:
    """Keeps the store small and its counters true."""

    def __init__(self, desk: Desk, reader: Reader) -> None:
        self._desk = desk
        self._reader = reader
        self._looked_at = ""  # how far the round through the ledgers has come

    # Removing.

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Remove ended jobs; says which."""
        removed = self._remove("delete", ids, lambda job: job.state.is_final)
        self._tidy(self._sheaves_of(removed))
        return [job.id for job in removed]

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        at, _, (counts,), _ = self._desk.look((), ["HGETALL", "count"], now=now)
        surplus = _number_ended(counts) - retention.most_finished
        opened: set[bytes] = set()
        ids = self._stale(retention, limit, at, opened)
        if surplus > len(ids) and len(ids) < limit:
            ids += self._oldest(min(surplus, limit), at, set(ids), opened)[: min(surplus, limit) - len(ids)]
        removed = self._remove("prune", ids, lambda job: job.state.is_final and job.key_until <= at)
        self._tidy(opened)
        lines, nodes, self._looked_at, notes = self._thin(retention, limit, at)
        return Pruned(len(removed), lines, nodes, notes)

    def _stale(self, retention: Retention, limit: int, now: int, opened: set[bytes]) -> list[str]:
        """Ended jobs that were kept long enough, the oldest first."""
        found: list[str] = []
        for state in sorted(FINAL):
            before = now - retention.kept_for(state)
            ended = self._ended(
                state, before, limit - len(found), lambda job: is_stale(job, retention, now), now, opened
            )
            found += ended
        return found

    def _ended(
        self, state: State, before: int, limit: int, is_wanted: Callable[[Job], bool], now: int, opened: set[bytes]
    ) -> list[str]:
        """The first of a state to have ended; those whose key still holds are left."""
        found: list[str] = []
        size = min(WINDOW, max(limit, 50))
        for turn in range(MOST_SKIPPED):
            if len(found) >= limit:
                break
            ask = {"state": state.value, "before": str(before), "skip": turn * size, "count": size}
            names, sheaves = self._desk.link.call("ended", step=SHEAVES_AT_ONCE, **ask).body
            opened.update(sheaves)
            jobs = self._reader.get([name.decode() for name in names])
            found += [job.id for job in jobs if job.state is state and job.key_until <= now and is_wanted(job)]
            if len(names) < size:
                break
        return found[:limit]

    def _oldest(self, number: int, now: int, known: set[str], opened: set[bytes]) -> list[str]:
        """The first to have ended, whatever their state, of those that are not known already."""
        ids = []
        for state in sorted(FINAL):
            ids += self._ended(state, now, number + len(known), lambda _: True, now, opened)
        jobs = [job for job in self._reader.get(ids) if job.id not in known]
        jobs.sort(key=lambda job: (job.finished_at or 0, job.seq))
        return [job.id for job in jobs]

    def _sheaves_of(self, jobs: Sequence[Job]) -> set[bytes]:
        """The sheaves that these jobs may stand in, by their places in line."""
        ended = {(job.queue, job.seq >> SPAN_BITS) for job in jobs if job.state is State.SUCCEEDED}
        spans = [
            ["ZRANGEBYSCORE", f"in:{queue}:{State.SUCCEEDED}", span << SPAN_BITS, (span + 1 << SPAN_BITS) - 1]
            for queue, span in sorted(ended)
        ]
        found = self._desk.ask(*spans) if spans else []
        return {name for names in found for name in names if name.startswith(SHEAF)}

    def _tidy(self, sheaves: set[bytes]) -> None:
        if sheaves:
            self._desk.link.call("tidy", sheaves=[binary(name) for name in sorted(sheaves)])

    def _remove(self, verb: str, ids: Sequence[str], may_go: Callable[[Job], bool]) -> list[Job]:
        """Each job in a draft of its own, but those of one schedule together: they share a ledger."""
        removed: list[Job] = []
        left = list(dict.fromkeys(ids))

        def turn() -> bool:
            at, sights, _, _ = self._desk.look(left)
            groups: dict[str, list[Job]] = {}
            seen = Draft(self._desk, at)
            seen.show(sights)
            for job in (seen.find(job_id) for job_id in left):
                if job is not None and may_go(job):
                    groups.setdefault(job.schedule_id or job.id, []).append(job)
            drafts = []
            ledgers = self._ledgers([job for jobs in groups.values() for job in jobs])
            for name, jobs in groups.items():
                draft = Draft(self._desk, at)
                draft.show({job.id: sights[job.id] for job in jobs})
                for command, answer in ledgers.get(name, ()):
                    draft.expect(command, answer)
                for job in sorted(jobs, key=lambda job: job.fire_at or 0):
                    draft.remove(job.id)
                drafts.append(draft)
            held = self._desk.commit(verb, drafts, is_work=True)
            outcome = list(zip(groups.values(), held, strict=True))
            removed.extend(job for jobs, is_held in outcome if is_held for job in jobs)
            left[:] = [job.id for jobs, is_held in outcome if not is_held for job in jobs]
            return not left

        if left:
            self._desk.settle_down(turn)
        if not removed:
            self._desk.write(is_work=True)  # a sealed store refuses this even where there is nothing to remove
        order = {job_id: number for number, job_id in enumerate(ids)}
        return sorted(removed, key=lambda job: order[job.id])

    def _ledgers(self, jobs: Sequence[Job]) -> dict[str, list[tuple[Command, Any]]]:
        """What the drafts of these removals will look at, read in one call: schedules, and neighbours in ledgers."""
        wanted: dict[str, list[Command]] = {}
        for job in jobs:
            if job.schedule_id is not None and job.fire_at is not None:
                wanted.setdefault(job.schedule_id, []).extend(neighbours(of_job(job)))
        commands = [(name, command) for name, near in wanted.items() for command in [["HGET", "schedule", name], *near]]
        found: dict[str, list[tuple[Command, Any]]] = {}
        answers = self._desk.ask(*[command for _, command in commands]) if commands else []
        for (name, command), answer in zip(commands, answers, strict=True):
            found.setdefault(name, []).append((command, answer))
        return found

    def _thin(self, retention: Retention, limit: int, now: int) -> tuple[int, int, str, int]:
        reply = self._desk.link.call(
            "thin",
            is_work=True,
            after=self._looked_at,
            limit=limit,
            before=str(now - retention.occurrences_for),
            most=retention.most_occurrences,
            silent_since=str(now - retention.nodes_for),
            notes_until=note_mark(max(0, now - retention.audit_for + 1)),
            width=WIDTH,
        )
        removed, nodes, reached, notes = reply.body
        return removed, nodes, reached.decode(), notes

    # Counting.

    def recount(self) -> dict[str, int]:
        """What the counters are off from the jobs themselves, read page by page: exact while nothing moves."""
        counted: list[tuple[str, State]] = []
        below = "9007199254740992"
        while True:
            raw, reached = self._desk.link.call(
                "list",
                sources=[("tasks", "")],
                below=below,
                least="0",
                count=WINDOW,
                step=SHEAVES_AT_ONCE,
                span=1 << SPAN_BITS,
            ).body
            counted += [(job.queue, job.state) for job in jobs_of(raw)]
            if len(raw[0]) < WINDOW:
                break
            below = reached.decode()
        counts = self._desk.link.call("queues").body[0]
        return _counts_of(counts).differences(counted)

    def queues(self) -> list[QueueInfo]:
        rows, paused, firsts, raw = self._desk.link.call("queues").body
        counts = _counts_of(rows)
        is_paused = {queue.decode() for queue in paused}
        oldest = _oldest_by_queue([queue.decode() for queue in firsts], jobs_of(raw))
        return [
            counts.info(name, is_paused=name in is_paused, oldest_at=oldest.get(name))
            for name in sorted(is_paused | counts.queues())
        ]


def _number_ended(rows: Sequence[bytes]) -> int:
    """How many jobs that have ended are kept."""
    states = {state.value.encode() for state in FINAL}
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return sum(int(number) for name, number in pairs if name.rpartition(b"|")[2] in states)


def _counts_of(rows: Sequence[bytes]) -> Counts:
    counts: dict[tuple[str, str], int] = {}
    for field, number in zip(rows[::2], rows[1::2], strict=True):
        queue, _, name = field.decode().rpartition("|")
        counts[queue, name] = int(number)
    return Counts(counts)


def _oldest_by_queue(queues: Sequence[str], jobs: Sequence[Job]) -> dict[str, int]:
    """Since when the first in line of each queue, of any priority, has been waiting."""
    oldest: dict[str, int] = {}
    for queue, job in zip(queues, jobs, strict=True):
        since = job.queued_at or job.run_at
        oldest[queue] = min(since, oldest.get(queue, since))
    return oldest
