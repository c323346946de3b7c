"""Logs: the engine's events as lines of the standard logging module. No arguments, no line per job that just worked."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rota.model.clock_record import ClockStep
from rota.model.schedule import PAUSED
from rota.model.slots import DISABLED, MISSED, OVERLAP, UNIQUE
from rota.model.time_words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.engine.events import Event, Events

jobs = logging.getLogger("rota.job")
schedules = logging.getLogger("rota.schedule")
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
    "store.unavailable": logging.WARNING,
    "store.back": logging.INFO,
    "store.moved": logging.ERROR,
    "store.clock_set": logging.ERROR,
    "store.clock_repaired": logging.WARNING,
}

_WHY_SKIPPED = {
    OVERLAP: "an earlier run had not ended (overlap)",
    UNIQUE: "another job held its unique key (unique)",
    PAUSED: "it was paused (paused)",
    DISABLED: "it was disabled (disabled)",
    MISSED: "its time had passed, and its catchup policy drops it (catch-up)",
    "coalesced": "its time had passed, and one later run stands for it (coalesced)",
}


def log_events(events: Events) -> None:
    """Write what an operator wants to read."""
    for name in _LEVELS:
        events.on(name, _write)


def _write(event: Event) -> None:
    logger = {"job": jobs, "schedule": schedules}.get(event.name.partition(".")[0], store)
    level = logging.ERROR if _is_error(event) else _LEVELS[event.name]
    if logger.isEnabledFor(level):
        logger.log(level, "%s", sentence(event), extra={"rota": {"event": event.name, **event.data}})


def _is_error(event: Event) -> bool:
    """Whether schedules are not fired in time: that is an error, whatever the event usually is."""
    is_outage = event.name == "store.unavailable" and event.data.get("service") == "scheduler"
    return is_outage or bool(event.data.get("is_fault"))


def sentence(event: Event) -> str:
    """An event in words."""
    data = event.data
    job = f"job {data.get('job_id')} ({data.get('task')})"
    match event.name:
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
            return f"schedule {data.get('schedule_id')} skipped {skipped}: {_reasons(data.get('reasons') or {})}"
        case "schedule.refused":
            return _about_a_refusal(event)
        case _:
            return _about_the_store(event)


def _reasons(reasons: Mapping[str, int]) -> str:
    """Why occurrences were skipped; how many for which reason, where there are several."""
    words = [(number, _WHY_SKIPPED.get(reason, reason)) for reason, number in reasons.items()]
    if len(words) == 1:
        return words[0][1]
    return ", ".join(f"{number} because {why}" for number, why in words) or "no reason is known"


def _about_a_refusal(event: Event) -> str:
    schedule = f"schedule {event.data.get('schedule_id')}"
    if event.data.get("is_fault"):
        task, error = event.data.get("task"), event.data.get("error")
        return f"{schedule} ({task}) is due and could not be fired; it is tried again: {error}"
    return f"{schedule} was fired or edited by somebody else first"


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
            moved = f"{event.data.get('schedules')} schedules and {event.data.get('jobs')} jobs"
            return f"{moved} were ahead of the store's clock and were moved back"
        case _:
            return f"{service} reaches the store again"


def _clock_step(event: Event) -> str:
    return ClockStep(was=int(event.data["was"]), at=event.at).words


def _first_line(error: object) -> str:
    return str(error or "").partition("\n")[0]
