"""Writes a line for each job that started or succeeded: the lines of one exchange together.

A record of the logging module costs more than many jobs do. So the lines of a batch are formatted here, as the
formatter of the handler would, and written at once. If anything but this process's own handler receives the records of
`rota.job`, each line is an ordinary record.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from rota.cli.text_lines import TextLines
from rota.cli.words import span
from rota.engine.events import Event, about_change, about_start
from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.observe.json_lines import JsonLines, component_of, time_of
from rota.observe.line_handler import sole_handler
from rota.observe.secrets import may_have_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change

job_log = logging.getLogger("rota.job")

STARTED, SUCCEEDED = "job.started", "job.succeeded"


class JsonLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A job's line as an object; its fields are in the order of JsonLines."""

    time: str
    level: str
    logger: str
    msg: str
    component: str
    event: str
    job_id: str
    job_name: str
    queue: str | None = None
    priority: int | None = None
    schedule_id: str | None = None
    attempt: int
    reason: str | None = None


def write_started(jobs: list[Job], at: int) -> None:
    """Log at level debug that these jobs started."""
    if not jobs or not job_log.isEnabledFor(logging.DEBUG):
        return
    messages = [f"job {job.id} ({job.task}) started, attempt {job.attempts + 1}" for job in jobs]
    if not _write(logging.DEBUG, messages, lambda head: _started_objects(head, jobs, messages)):
        for job in jobs:
            log_start(Event(STARTED, at, about_start(job)))


def write_settled(changes: list[Change], at: int) -> None:
    """Log at level info those of these jobs that succeeded."""
    if not job_log.isEnabledFor(logging.INFO):
        return
    ended = [change for change in changes if change.state is State.SUCCEEDED]
    messages = _success_messages([change.job for change in ended], at)
    if ended and not _write(logging.INFO, messages, lambda head: _ended_objects(head, ended, messages)):
        for change in ended:
            log_success(Event(SUCCEEDED, at, about_change(change)))


def log_start(event: Event) -> None:
    data = event.data
    job_log.debug("job %s (%s) started, attempt %s", data["job_id"], data["task"], data["attempt"], extra=extra(event))


def log_success(event: Event) -> None:
    data = event.data
    took = _took(data["started_at"], event.at)
    job_log.info("job %s (%s) succeeded in %s", data["job_id"], data["task"], took, extra=extra(event))


def extra(event: Event) -> dict[str, object]:
    """The fields, for handlers that read them."""
    return {"rota": {"event": event.name, **event.data}}


def _success_messages(jobs: list[Job], at: int) -> list[str]:
    took = {started_at: _took(started_at, at) for started_at in {job.started_at for job in jobs}}  # one per claim
    return [f"job {job.id} ({job.task}) succeeded in {took[job.started_at]}" for job in jobs]


def _took(started_at: int | None, at: int) -> str:
    return span((at - started_at) / SECOND) if started_at else "no time"


def _write(level: int, messages: list[str], objects: Callable[[logging.LogRecord], Iterable[JsonLine]]) -> bool:
    """Write a line for each message, or the objects if lines are JSON; False if each needs a record of its own."""
    handler = sole_handler(job_log, level)
    if handler is None:
        return False
    formatter = handler.formatter
    record = job_log.makeRecord(job_log.name, level, "", 0, messages[0], (), None)
    if type(formatter) is JsonLines:
        lines = _encoded(objects(record))
    elif type(formatter) is TextLines:
        lines = _text(formatter.head(record), messages)
    else:
        return False
    if lines is None:
        return False
    handler.write_lines(lines, record)
    return True


def _text(head: str, messages: list[str]) -> str:
    next_line = "\n" + head
    text = f"{head}{next_line.join(messages)}\n"
    if not may_have_secrets(text):
        return text
    return "".join([f"{without_secrets(head + message)}\n" for message in messages])


def _encoded(objects: Iterable[JsonLine]) -> str | None:
    """None if a text has a secret to mask, or a character that JSON cannot have: the formatter knows what to do."""
    try:
        text = _encoder.encode_lines(list(objects)).decode()
    except UnicodeEncodeError:
        return None
    return None if may_have_secrets(text) else text


_encoder = msgspec.json.Encoder()


# Both build each object by keyword in one call: a shared partial() takes five times as long, for every job.


def _started_objects(record: logging.LogRecord, jobs: list[Job], messages: list[str]) -> Iterator[JsonLine]:
    time, level, component = time_of(record), record.levelname.lower(), component_of(record.name)
    for job, message in zip(jobs, messages, strict=True):
        yield JsonLine(
            time=time,
            level=level,
            logger=record.name,
            msg=message,
            component=component,
            event=STARTED,
            job_id=job.id,
            job_name=job.task,
            attempt=job.attempts + 1,
        )


def _ended_objects(record: logging.LogRecord, ended: list[Change], messages: list[str]) -> Iterator[JsonLine]:
    time, level, component = time_of(record), record.levelname.lower(), component_of(record.name)
    for change, message in zip(ended, messages, strict=True):
        job = change.job
        yield JsonLine(
            time=time,
            level=level,
            logger=record.name,
            msg=message,
            component=component,
            event=SUCCEEDED,
            job_id=job.id,
            job_name=job.task,
            queue=job.queue,
            priority=job.priority,
            schedule_id=job.schedule_id,
            attempt=change.attempts,
            reason=change.cancel_reason or None,
        )
