"""Copies a live system from one store to another: nothing is lost or duplicated, wherever it is killed.

The source is sealed first: it accepts no more work, and its running jobs end. Once nothing runs, it is copied, part by
part. The target is sealed, too, until everything was copied and compared. Only then is the source marked as copied, and
the target opened. A copy that is killed leaves both sealed, and the same call continues it: records that were copied
are not written again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from itertools import zip_longest
from secrets import token_hex
from shlex import quote
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias
from urllib.parse import quote as url_quote

import msgspec

from rota.errors import Refused, StoreError
from rota.model.clock.record import is_clock_record
from rota.model.jobs.job import Job, State
from rota.model.jobs.outcome import Returned
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import rescue, settle
from rota.model.micros import SECOND
from rota.model.reasons import reason_text
from rota.store.contract import LARGEST_PAGE, Exchange, JobFilter, Seal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.store.contract import Part, Record, Store

PARTS: tuple[Part, ...] = ("entries", "audit_records", "schedules", "occurrences", "jobs", "logs", "queues", "locks")
BATCH = 1_000  # records in one read and one write
WAIT = 60 * SECOND  # for running jobs: twice a lease, so that a dead worker's lease has expired
LOOK = 0.2  # seconds between two checks for running jobs

Phase = Literal["wait", "copy", "check"]


class Step(NamedTuple):
    """The progress of a copy."""

    phase: Phase
    part: Part
    done: int  # records; while waiting: jobs that still run
    total: int | None = None  # if it is known


class Moved(NamedTuple):
    """The result of a copy."""

    records: dict[str, int]  # by part: the records that both stores have now
    copied: int  # of them, by this call; an earlier one that was killed may have copied others
    given_back: int  # jobs that still ran at the end of the wait, and start again in the other store


OnStep: TypeAlias = Callable[[Step], None]


def move(source: Store, target: Store, *, wait: int = WAIT, on_step: OnStep = lambda _step: None) -> Moved:
    """Copy everything from one open store to another, or continue an earlier call that was stopped.

    `wait` (microseconds) is how long running jobs may take to end. Jobs that still run then are returned, spend no
    retry, and start again in the target. `on_step` is called with the progress.
    """
    seal = _begin(source, target)
    if seal.is_done:  # everything was copied, but the target was not opened
        target.seal(None)
        return Moved(_counted(target), copied=0, given_back=0)
    given_back = _let_run_out(source, seal, wait, on_step)
    copied = {part: _copy(source, target, part, on_step) for part in PARTS}
    _check_all_read(source, copied["jobs"].records)
    for part, sent in copied.items():
        _compare(source, target, part, sent, on_step)
    _check_ours(source, seal)
    source.seal(msgspec.structs.replace(seal, is_done=True, at=source.now()))  # first, so that both are never open
    target.seal(None)
    records = {str(part): sent.records for part, sent in copied.items()}
    return Moved(records, sum(sent.new for sent in copied.values()), given_back)


def is_new(target: Store) -> bool:
    """Whether a target does not exist yet, so that opening it would create something. It need not be open."""
    return target.is_missing() or (target.features.is_shared and target.namespace not in target.namespaces())


def check(source: Store, target: Store, *, is_new: bool = False) -> Seal | None:
    """Refuse a copy that is impossible. Returns the seal of an earlier copy that this one would continue. Nothing is
    changed.

    A target that is new need not be open: it is empty.
    """
    left, filled = source.sealed(), None if is_new else target.sealed()
    if source is target or _look_alike(source, target):
        raise _same_store(source)
    if left is not None and left.source:
        raise Refused(f"{source.describe()} is itself being filled from {left.source}; let that copy end first")
    if left is not None and filled is not None and left.id == filled.id:
        if not filled.source:
            raise _same_store(source)
        return left
    if left is not None and (left.is_done or left.target != target.describe()):
        raise _left_already(source, left)
    if filled is not None:
        raise _sealed_target(target, filled)
    if not is_new and not _is_empty(target):
        raise _not_empty(target)
    if left is None and _is_empty(source):
        _check_only_namespace(source)
    return left


def check_there(source: Store) -> None:
    """Refuse a source whose namespace does not exist; opening it would create it, empty."""
    if source.features.is_shared and source.namespace not in source.namespaces():
        _check_only_namespace(source)
        raise Refused(f"{source.describe()} holds no system of Rota; check what --from names")


def undo_command(source: Store, url: str | None = None) -> str:
    """The command that cancels the copy of a store. The URL of a server is left to the reader unless it is given: it
    may hold a password."""
    if url is None and source.path is not None:
        url = f"sqlite:///{url_quote(str(source.path))}"
    return f"`rota copy --undo --from {quote(url or 'URL')} --namespace {source.namespace}`"


def undo(source: Store) -> Seal:
    """Open a store again whose copy was not finished. Copied records stay in the target, which stays sealed."""
    seal = source.sealed()
    if seal is None:
        raise Refused(f"{source.describe()} is not being moved; there is nothing to undo")
    if seal.source:
        raise Refused(
            f"{source.describe()} is the store that is being filled, from {seal.source}; name that one with --from, "
            "and delete this one where it is not wanted"
        )
    if seal.is_done:
        raise Refused(
            f"all that {source.describe()} held was copied to {seal.target}, and work goes on there; "
            "to come back, copy from there into an empty store"
        )
    source.seal(None)
    return seal


# Beginning.


def _begin(source: Store, target: Store) -> Seal:
    """Seal both stores, the source first."""
    seal = check(source, target)
    if seal is not None and seal.is_done:
        return seal
    if seal is None:
        seal = Seal(target=target.describe(), id=token_hex(8), at=source.now())
        source.seal(seal)
        _check_ours(source, seal)
    filled = target.sealed()
    if filled is not None and not filled.source:  # the seal that this call has just put on the source
        source.seal(None)
        raise _same_store(source)
    if filled is None:
        target.seal(Seal(target=target.describe(), source=source.describe(), id=seal.id, at=target.now()))
        if not _is_empty(target):  # another client wrote before the seal
            target.seal(None)
            source.seal(None)
            raise _not_empty(target)
    return seal


def _check_ours(source: Store, seal: Seal) -> None:
    now = source.sealed()
    if now is None or now.id != seal.id:
        what = "called off" if now is None else f"started again, to {now.target}"
        raise Refused(f"the move of {source.describe()} was {what} meanwhile; this one ends here, unfinished")


def _look_alike(source: Store, target: Store) -> bool:
    """Whether two handles name one store in the same words. The seal detects one store under different names."""
    if not source.features.is_shared or source.describe() != target.describe():
        return False
    return source.namespace == target.namespace


def _is_empty(store: Store) -> bool:
    return all(next(_pages(store, part), None) is None for part in PARTS)


def _same_store(store: Store) -> Refused:
    return Refused(f"both sides are the same store, {store.describe()}; name another one with --to")


def _not_empty(store: Store) -> Refused:
    return Refused(
        f"{store.describe()} already holds something of its own, and two systems cannot become one; "
        "copy into an empty store, before anything is started on it, or into another namespace with --to-namespace"
    )


def _check_only_namespace(source: Store) -> None:
    """A namespace that was misspelt, or not named at all, looks like an empty store: name the others that exist."""
    others = [name for name in source.namespaces() if name != source.namespace]
    if others:
        raise Refused(
            f"{with_namespace(source)} holds nothing to copy. The other namespaces there are: {', '.join(others)}. "
            "Name one of them with --namespace"
        )


def with_namespace(store: Store) -> str:
    """The description of a store that always names its namespace, once: most omit the default one."""
    words, name = store.describe(), f"namespace {store.namespace}"
    return words if name in words else f"{words}, {name},"


def _left_already(source: Store, seal: Seal) -> Refused:
    if seal.is_done:
        return Refused(f"all that {source.describe()} held was copied to {seal.target}; copy from there instead")
    return Refused(
        f"{source.describe()} is being copied to {seal.target}; end that copy with the same --to, "
        f"or call it off with {undo_command(source)}"
    )


def _sealed_target(target: Store, seal: Seal) -> Refused:
    if seal.source:
        return Refused(
            f"{target.describe()} holds part of another copy, from {seal.source}, which was called off or has not "
            "ended; copy into an empty store"
        )
    return Refused(
        f"{target.describe()} was itself copied to {seal.target}, or is being copied there; use another store"
    )


# Waiting for running jobs.


def _let_run_out(source: Store, seal: Seal, wait: int, on_step: OnStep) -> int:
    """Wait until nothing runs. Returns the number of jobs that were returned because they still ran at the end."""
    deadline = time.monotonic() + wait / SECOND
    pause = threading.Event()
    while running := _running(source):
        on_step(Step("wait", "jobs", len(running)))
        source.rescue_jobs([rescue(job, source.now()) for job in source.expired_jobs(LARGEST_PAGE)])
        if time.monotonic() >= deadline:
            return _return_remaining(source, seal)
        pause.wait(LOOK)
    on_step(Step("wait", "jobs", 0))
    return 0


def _running(source: Store) -> list[Job]:
    return source.list_jobs(JobFilter(states=(State.RUNNING,)), limit=LARGEST_PAGE).items


def _return_remaining(source: Store, seal: Seal) -> int:
    """Void the remaining leases, as a worker does when it shuts down. A job that ends meanwhile keeps its outcome."""
    total = 0
    seen: list[Job] = []
    while running := _running(source):
        if running == seen:
            raise StoreError(
                f"job {running[0].id} of {source.describe()} cannot be returned to its queue; report this as a bug"
            )
        seen = running
        outcome = Returned(reason_text("copied_to", target=seal.target))
        now = source.now()
        for holder in {job.holder or "" for job in running}:
            held = [settle(job, outcome, RetryPolicy(), now, 0.0) for job in running if job.holder == holder]
            total += len(held) - len(source.exchange(Exchange(holder=holder, settled=held)).refused)
    return total


# Copying.


class Sent(NamedTuple):
    """The records that were read of one part."""

    records: int
    digest: int
    new: int  # to the target


def _copy(source: Store, target: Store, part: Part, on_step: OnStep) -> Sent:
    """Send a part's records, except jobs that an earlier call has sent: jobs are copied in their order."""
    total = _jobs_of(source) if part == "jobs" else None
    last = _last_job(target) if part == "jobs" else None
    sent = Sent(0, 0, 0)
    for records in _pages(source, part):
        is_known = last is not None and all(getattr(record, "id", None) != last for record in records)
        last = last if is_known else None
        new = 0 if is_known else target.load(records)
        sent = Sent(sent.records + len(records), _digest(records, sent), sent.new + new)
        on_step(Step("copy", part, sent.records, total))
    return sent


def _last_job(target: Store) -> str | None:
    newest = target.list_jobs(JobFilter(), limit=1).items
    return newest[0].id if newest else None


def _pages(store: Store, part: Part) -> Iterator[list[Record]]:
    """A part without the record of the store's clock: that record is about this store, and every node writes it."""
    cursor: str | None = None
    while True:
        page = store.dump(part, cursor=cursor, limit=BATCH)
        if records := [record for record in page.items if not is_clock_record(record)]:
            yield records
        cursor = page.cursor
        if cursor is None:
            return


def _jobs_of(store: Store) -> int:
    return sum(sum(queue.counts.values()) for queue in store.list_queues())


def _counted(store: Store) -> dict[str, int]:
    return {part: sum(len(records) for records in _pages(store, part)) for part in PARTS}


# Comparing.


def _check_all_read(source: Store, read: int) -> None:
    """The source counts its jobs by another way than it gives them out. Fewer may be left: old jobs are pruned."""
    if source.count_jobs(JobFilter(), limit=read + 1) > read:
        raise StoreError(
            f"{source.describe()} holds more jobs than it gave out ({read:,}), so that some were not copied. Both "
            f"stores stay sealed; call the move off with {undo_command(source)}, and report this as a bug"
        )


def _compare(source: Store, target: Store, part: Part, sent: Sent, on_step: OnStep) -> None:
    """Read a part from the target: it must equal what was sent. (The source may have changed: a worker whose lease
    was voided may still write a log line there.)"""
    found = Sent(0, 0, 0)
    for records in _pages(target, part):
        found = Sent(found.records + len(records), _digest(records, found), 0)
        on_step(Step("check", part, found.records, sent.records))
    if (found.records, found.digest) == (sent.records, sent.digest):
        return
    what = _first_difference(source, target) if part == "jobs" else "or of other content"
    raise StoreError(
        f"{target.describe()} does not hold what {source.describe()} holds: {sent.records:,} {part} were sent, "
        f"{found.records:,} are there, {what}. Both stay sealed; call the move off with {undo_command(source)}, "
        "and report this as a bug"
    )


def _digest(records: list[Record], before: Sent) -> int:
    """A sum of the records' digests: the same in any order, except for jobs, whose position in the queue counts."""
    total = before.digest
    for number, record in enumerate(records, before.records):
        packed = msgspec.json.encode(_plain(record, number), order="deterministic")
        total += int.from_bytes(blake2b(packed, digest_size=16).digest(), "big")
    return total


def _plain(record: Record, number: int) -> Record:
    """A job with its position in the queue, instead of the number that each store assigns."""
    return msgspec.structs.replace(record, seq=number) if isinstance(record, Job) else record


def _first_difference(source: Store, target: Store) -> str:
    here, there = ((job for page in _pages(store, "jobs") for job in page) for store in (source, target))
    for number, (old, new) in enumerate(zip_longest(here, there)):
        if old is None or new is None:
            return f"and only one of them has job {getattr(old or new, 'id', '')}"
        mine, theirs = _plain(old, number), _plain(new, number)
        if mine != theirs:
            fields = [name for name in Job.__struct_fields__ if getattr(mine, name) != getattr(theirs, name)]
            return f"and job {getattr(old, 'id', '')} differs in {', '.join(fields)}"
    return "though a second look finds no difference"
