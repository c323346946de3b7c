"""Passes templates of schedules and copies of jobs through the creation middleware of their app."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from rota.errors import MiddlewareError
from rota.model.jobs.payload import Passed, unpack_call
from rota.tasks.middleware import Creation, draft_of, passed_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from rota.model.jobs.job import NewJob
    from rota.model.schedules.schedule import ScheduleSpec
    from rota.tasks.job import Job
    from rota.tasks.middleware import JobDraft, Middleware

R = TypeVar("R")


def put_through(
    middleware: Sequence[Middleware], specs: Mapping[str, ScheduleSpec], put: Callable[[dict[str, ScheduleSpec]], R]
) -> R:
    """Put schedules whose templates have passed the middleware. Templates from the store have passed it before."""
    found = [_template(name, spec) for name, spec in specs.items()] if middleware else []
    drafts = [draft for draft in found if draft is not None]
    if not drafts:
        return put(dict(specs))
    answers: list[R] = []

    def store(wanted: Sequence[JobDraft]) -> list[Job[Any]]:
        changed = [_changed(specs, given, draft) for given, draft in zip(drafts, wanted, strict=True)]
        answers.append(put({**specs, **dict(changed)}))
        return []

    Creation(middleware, drafts, store).go()
    return answers[0]


def add_through(middleware: Sequence[Middleware], new: NewJob, add: Callable[[NewJob], object]) -> None:
    """Add a job that has passed the middleware."""
    if not middleware:
        add(new)
        return
    draft = draft_of(new.payload, task=new.task, queue=new.queue, priority=new.priority, key=new.key)

    def store(wanted: Sequence[JobDraft]) -> list[Job[Any]]:
        payload = passed_payload(new.payload, draft, wanted[0])
        add(msgspec.structs.replace(new, payload=payload, queue=wanted[0].queue, priority=wanted[0].priority))
        return []

    Creation(middleware, [draft], store).go()


def _template(schedule_id: str, spec: ScheduleSpec) -> JobDraft | None:
    payload = spec.payload.encode()
    if unpack_call(payload).passed is not Passed.NO:
        return None
    return draft_of(
        payload,
        task=spec.task,
        queue=spec.queue,
        priority=spec.priority,
        key=spec.key or None,
        schedule_id=schedule_id,
    )


def _changed(specs: Mapping[str, ScheduleSpec], given: JobDraft, wanted: JobDraft) -> tuple[str, ScheduleSpec]:
    """The spec with its template marked as passed, so that a later edit does not pass it again."""
    name = given.schedule_id or ""
    if (wanted.queue, wanted.priority) != (given.queue, given.priority):
        raise MiddlewareError(
            f"a middleware changed the queue or the priority of schedule '{name}', which belong to the schedule and "
            "not to its template; change the meta or the arguments only"
        )
    payload = passed_payload(specs[name].payload.encode(), given, wanted)
    return name, msgspec.structs.replace(specs[name], payload=payload.decode())
