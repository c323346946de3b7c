"""Logs the engine's events by the standard logging module, without arguments and without a line per success."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from rota.model.clock.record import ClockStep
from rota.model.reasons import LAST_DEATHS
from rota.model.schedules.schedule import PAUSED
from rota.model.schedules.slots import DISABLED, MISSED, OVERLAP, UNIQUE
from rota.model.why.time_words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.engine.events import Event, Events

jobs = logging.getLogger("rota.job")
schedules = logging.getLogger("rota.schedule")
documents = logging.getLogger("rota.documents")
alerts = logging.getLogger("rota.alerts")
store = logging.getLogger("rota.store")

_LEVELS = {
    "job.failed": logging.ERROR,
    "job.retried": logging.WARNING,
    "job.rescued": logging.WARNING,
    "job.refused": logging.WARNING,
    "job.returned": logging.INFO,
    "job.cancelled": logging.INFO,
    "schedule.skipped": logging.WARNING,
    "schedule.refused": logging.DEBUG,
    "document.failed": logging.ERROR,
    "document.ended": logging.INFO,
    "document.locked_out": logging.WARNING,
    "alert.raised": logging.ERROR,
    "alert.recovered": logging.INFO,
    "alert.undelivered": logging.ERROR,
    "store.unavailable": logging.WARNING,
    "store.back": logging.INFO,
    "store.moved": logging.ERROR,
    "store.clock_set": logging.ERROR,
    "store.clock_repaired": logging.WARNING,
}

_LOGGERS = {"job": jobs, "schedule": schedules, "document": documents, "alert": alerts}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

BEHIND_FIRST = "several times were due at once, and the job of the first had not ended (overlap)"
_WHY_SKIPPED = {
    OVERLAP: "an earlier run had not ended (overlap)",
    UNIQUE: "another job held its unique key (unique)",
    PAUSED: "it was paused (paused)",
    DISABLED: "it was disabled (disabled)",
    MISSED: "its time had passed, and its catchup policy drops it (catch-up)",
    "coalesced": "its time had passed, and one later run stands for it (coalesced)",
}


def log_events(events: Events) -> None:
    """Log the events that an operator needs."""
    for name in _LEVELS:
        events.on(name, _write)


def _write(event: Event) -> None:
    logger = _LOGGERS.get(event.name.partition(".")[0], store)
    level = logging.ERROR if _is_error(event) else _LEVELS[event.name]
    if logger.isEnabledFor(level):
        logger.log(level, "%s", sentence(event), extra={"rota": {"event": event.name, **event.data}})


def _is_error(event: Event) -> bool:
    """Whether schedules are not fired in time: that is an error, whatever the event's usual level."""
    is_outage = event.name == "store.unavailable" and event.data.get("service") == "scheduler"
    return is_outage or bool(event.data.get("is_fault"))


def sentence(event: Event) -> str:
    """An event in words."""
    special = {"alert": _about_an_alert, "document": _about_a_document}.get(event.name.partition(".")[0])
    return _about_work(event) if special is None else special(event)


def _about_work(event: Event) -> str:
    data = event.data
    job = f"job {data.get('job_id')} ({data.get('task')})"
    match event.name:
        case "job.failed" if str(data.get("error")).startswith(LAST_DEATHS):
            return f"{job} is {data.get('error')}"
        case "job.failed":
            return (
                f"{job} failed for good after {counted(int(data.get('attempt') or 0), 'attempt')}: {data.get('error')}"
            )
        case "job.retried":
            return f"{job} failed and will be tried again: {_first_line(data.get('error'))}"
        case "job.rescued":
            return f"{job} was held by {data.get('worker')}, which {data.get('how')}; it is {data.get('state')}"
        case "job.refused":
            return f"{job} ended here too late: its lease was lost, and what this worker reports is dropped"
        case "job.returned":
            return f"{job} was returned to its queue: {data.get('reason') or 'the worker stops'}"
        case "job.cancelled":
            return f"{job} was cancelled: {data.get('reason')}"
        case "schedule.skipped":
            skipped = counted(int(data.get("count") or 0), "occurrence")
            why = _reasons(data.get("reasons") or {}, is_behind_first=bool(data.get("jobs")))
            return f"schedule {data.get('schedule_id')} skipped {skipped}: {why}"
        case "schedule.refused":
            return _about_a_refusal(event)
        case _:
            return _about_the_store(event)


def _reasons(reasons: Mapping[str, int], *, is_behind_first: bool) -> str:
    """Why occurrences were skipped; with a number for each reason, if there are several."""
    known = {**_WHY_SKIPPED, OVERLAP: BEHIND_FIRST} if is_behind_first else _WHY_SKIPPED
    words = [(number, known.get(reason, reason)) for reason, number in reasons.items()]
    if len(words) == 1:
        return words[0][1]
    return ", ".join(f"{number:,} because {why}" for number, why in words) or "no reason is known"


def _about_a_refusal(event: Event) -> str:
    schedule = f"schedule {event.data.get('schedule_id')}"
    if event.data.get("is_fault"):
        task, error = event.data.get("task"), event.data.get("error")
        return f"{schedule} ({task}) is due and could not be fired; it is tried again: {error}"
    return f"{schedule} was fired or edited by somebody else first"


def _about_a_document(event: Event) -> str:
    data = event.data
    document = f"document {one_line(data.get('document_id'))} of {data.get('queue')}"
    match event.name:
        case "document.failed":
            failures = counted(int(data.get("failures") or 0), "time")
            return f"{document} has failed {failures} and is tried again: {one_line(_first_line(data.get('error')))}"
        case "document.ended":
            return f"{document} was due after its end and did not run"
        case _:
            return f"{document} ended here too late: {data.get('reason')}; nothing was written"


def _about_an_alert(event: Event) -> str:
    data = event.data
    alert = f"alert {data.get('alert_id')} of rule {data.get('rule')}"
    match event.name:
        case "alert.raised":
            return f"{alert} was raised: {one_line(data.get('text'))}"
        case "alert.recovered":
            return f"{alert} has ended: {one_line(data.get('text'))}"
        case _:
            rest = "it is given up" if data.get("is_given_up") else "it is sent again"
            channel, error = data.get("channel"), one_line(data.get("error"))
            return f"{alert}: channel {channel} did not take the message, and {rest}: {error}"


def _about_the_store(event: Event) -> str:
    service, error = event.data.get("service"), event.data.get("error")
    match event.name:
        case "store.unavailable":
            return f"{service} waits for the store: {error}"
        case "store.moved":
            return f"{service} gets no more work: {error}"
        case "store.clock_set":
            return f"{_clock_step(event)}; check the clock of the store's host"
        case "store.clock_repaired":
            data = event.data
            moved = f"{counted(data.get('schedules') or 0, 'schedule')} and {counted(data.get('jobs') or 0, 'job')}"
            return f"{moved} were ahead of the store's clock and were moved back"
        case _:
            return f"{service} reaches the store again"


def _clock_step(event: Event) -> str:
    return ClockStep(was=int(event.data["was"]), at=event.at).words


def one_line(value: object) -> str:
    """A value from outside in a log line: it can neither begin a line of its own nor control a terminal."""
    text = str(value).encode(errors="backslashreplace").decode()
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def _first_line(error: object) -> str:
    return str(error or "").partition("\n")[0]
