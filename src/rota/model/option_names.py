"""Names of options that Rota does not have: what to say instead, also in the words of other job systems."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TRIGGER = "give the trigger first, as in schedule(cron('0 9 * * *')) or schedule(every('5m'))"
_OF_TASK = "that is an option of the task: put @app.task({name}=…) under @app.schedule(…)"
_ARGUMENTS = "arguments go to enqueue() or job()"
_NO_EXPIRY = "a job does not expire: let the task look at the time, or cancel the job"

FOR_TASK = {
    "max_retries": "retries",
    "retry": "retries",
    "max_attempts": "retries",
    "autoretry_for": "retry_on",
    "retry_when": "retry_on",
    "throws": "give_up_on",
    "retry_backoff": "backoff",
    "retry_delay": "backoff",
    "default_retry_delay": "backoff",
    "min_backoff": "backoff",
    "time_limit": "timeout",
    "soft_time_limit": "timeout",
    "job_timeout": "timeout",
    "queue_name": "queue",
    "actor_name": "name",
    "ignore_result": "keep",
    "store_results": "keep",
    "lock": "unique",
    "expires": _NO_EXPIRY,
}
FOR_REQUEST = {
    "countdown": "delay",
    "schedule_in": "delay",
    "enqueue_in": "delay",
    "eta": "at",
    "run_at": "at",
    "schedule_at": "at",
    "scheduled_at": "at",
    "max_retries": "retries",
    "time_limit": "timeout",
    "soft_time_limit": "timeout",
    "job_timeout": "timeout",
    "queue_name": "queue",
    "job_id": "key",
    "task_id": "key",
    "unique": "key",
    "queueing_lock": "key",
    "unique_for": "key_for",
    "connection": "tx",
    "session": "tx",
    "headers": "meta",
    "args": _ARGUMENTS,
    "kwargs": _ARGUMENTS,
    "expires": _NO_EXPIRY,
}
FOR_SCHEDULE = {
    **dict.fromkeys(("cron", "crontab", "every", "interval", "seconds", "minutes", "hours", "schedule"), _TRIGGER),
    **dict.fromkeys(("retries", "backoff", "timeout", "unique", "keep", "executor", "memory"), _OF_TASK),
    "max_retries": _OF_TASK.replace("{name}", "retries"),
    "timezone": "tz",
    "zone": "tz",
    "max_instances": "overlap",
    "coalesce": "catchup",
    "misfire_grace_time": "grace",
    "start_date": "start",
    "start_time": "start",
    "end_date": "end",
    "end_time": "end",
    "repeat": "max_runs",
    "name": "id",
    "args": "put the arguments into the call: app.schedules.put('id', task.job(…), trigger)",
    "kwargs": "put the arguments into the call: app.schedules.put('id', task.job(…), trigger)",
}
FOR_APP = {
    **dict.fromkeys(("url", "store_url", "broker", "broker_url", "backend", "redis_url", "database"), "store"),
    "timezone": "tz",
    "prefix": "namespace",
    "schema": "namespace",
}


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """BadOption for the first name that is no option of this, with the one that was probably meant."""
    options = sorted(known)
    for name in given:
        if name not in options:
            raise BadOption(f"{what} has no option {name!r}; {_advice(name, options, elsewhere)}")


def _advice(name: str, options: list[str], elsewhere: Mapping[str, str]) -> str:
    meant = elsewhere.get(name)
    if meant is None:
        close = get_close_matches(name, [*options, *elsewhere], n=1)
        meant = elsewhere.get(close[0], close[0]) if close else None
    if meant is None:
        return f"options are {', '.join(options)}"
    return f"did you mean {meant}=?" if meant.isidentifier() else meant.replace("{name}", name)
