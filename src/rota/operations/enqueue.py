"""Adds requested jobs to a store in batches, and encodes the next batch while the last one is stored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rota.background import BackgroundThread
from rota.clock import utc_micros
from rota.errors import BadOption
from rota.model.jobs.job import NewJob, new_id
from rota.store.contract import LARGEST_BATCH
from rota.tasks.task import NOTHING_ELSE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from rota.background import BackgroundCall
    from rota.store.contract import Added, Store
    from rota.tasks.task import Request


def send_in_turn(store: Store, requests: Sequence[Request], random: Random) -> Iterable[list[Added]]:
    """Send batches in order. Each is accepted whole or not at all; if one is not, none after it is sent."""
    if len(requests) <= LARGEST_BATCH:
        return (store.add_jobs(_batch(requests, random)),) if requests else ()
    return _send_batches(store, requests, random)


def _send_batches(store: Store, requests: Sequence[Request], random: Random) -> Iterator[list[Added]]:
    with BackgroundThread() as background:
        sent: BackgroundCall[list[Added]] | None = None
        for batch in _batches(requests, random):
            added = sent.result() if sent is not None else None
            sent = background.begin(partial(store.add_jobs, batch))
            if added is not None:  # reported while the store adds the next batch
                yield added
        if sent is not None:
            yield sent.result()


def send_within(
    store: Store, transaction: object, requests: Sequence[Request], random: Random
) -> Iterator[list[Added]]:
    """Send all requests inside a caller's transaction, in one call and in the caller's own thread: all are in it, or
    none."""
    yield store.add_jobs_in(transaction, [new for batch in _batches(requests, random) for new in batch])


def _batches(requests: Sequence[Request], random: Random) -> Iterator[list[NewJob]]:
    for start in range(0, len(requests), LARGEST_BATCH):
        yield _batch(requests[start : start + LARGEST_BATCH], random)


def _batch(requests: Sequence[Request], random: Random) -> list[NewJob]:
    now = utc_micros()
    return [_new_job(request, new_id(random, now)) for request in requests]


def _new_job(request: Request, job_id: str) -> NewJob:
    overrides, options = request.overrides, request.options
    if overrides is NOTHING_ELSE and request.unique_key is None:  # most have only arguments
        return NewJob(
            id=job_id,
            task=request.task,
            payload=request.payload,
            queue=options.queue,
            priority=options.priority,
        )
    return NewJob(
        id=job_id,
        task=request.task,
        payload=request.payload,
        queue=request.queue,
        priority=request.priority,
        key=request.key,
        key_for=request.key_for,
        run_at=overrides.at,
        delay=overrides.delay,
    )


def one_transaction(requests: Sequence[Request]) -> object:
    """The caller's transaction that all of these requests are part of; None for none."""
    first: object = requests[0].overrides.transaction if requests else None
    if len(requests) > 1 and any(request.overrides.transaction is not first for request in requests):
        raise BadOption("requests that are sent together must share one tx=, or have none")
    return first


def in_transaction(requests: Sequence[Request], transaction: object) -> list[Request]:
    """The same requests in another form of their transaction."""
    return [
        msgspec.structs.replace(request, overrides=request.overrides._replace(transaction=transaction))
        for request in requests
    ]
