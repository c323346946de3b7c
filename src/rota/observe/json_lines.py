"""Writes log records as one JSON object each, with the known fields of the job or schedule in question."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import msgspec

from rota.engine.executors.run import current_run
from rota.model.micros import datetime_of
from rota.observe.secrets import without_secrets

_COMPONENTS = {"schedule": "scheduler", "job": "worker"}  # the component of a record, if its logger has another name
_NAMES = {"task": "job_name"}
_COME_BACK = ("job.retried", "job.snoozed")
_LEFT_OUT = {"jobs", "next_at", "run_at", "started_at", "is_fault"}  # lists, and times that other fields show

_TRACE = ("trace_id", "span_id")  # of the span that the record was made in, if OpenTelemetry is in use


class JsonLines(logging.Formatter):
    """{"time":"2026-10-14T09:00:00.123Z","level":"info","logger":"rota.schedule","msg":"…","component":"scheduler",…}"""

    def format(self, record: logging.LogRecord) -> str:
        known = _known(record)
        text = record.getMessage().rstrip()
        fields = {
            "time": time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": text.partition("\n")[0] if "error" in known else text,
            "component": component_of(record.name),
            **known,
            **{name: vars(record)[name] for name in _TRACE if name in vars(record)},
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        run = current_run()
        if run is not None:  # the text is the job's own
            fields = {name: run.hide(value) if isinstance(value, str) else value for name, value in fields.items()}
        return msgspec.json.encode({name: _shown(value) for name, value in fields.items()}).decode()


def time_of(record: logging.LogRecord) -> str:
    return _iso(datetime.fromtimestamp(record.created, UTC))


def component_of(logger: str) -> str:
    first, _, rest = logger.partition(".")
    part = rest.partition(".")[0]
    return _COMPONENTS.get(part, part or "rota") if first == "rota" else "app"


def _known(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of an event; for another record, the job that it was written in."""
    said = getattr(record, "rota", None)
    if not isinstance(said, dict):
        return _of_current_job()
    fields = {_NAMES.get(str(name), str(name)): value for name, value in said.items() if name not in _LEFT_OUT}
    next_at = said.get("run_at") if said.get("event") in _COME_BACK else said.get("next_at")
    if next_at:
        fields["next_run"] = _iso(datetime_of(next_at))
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _of_current_job() -> dict[str, Any]:
    run = current_run()
    if run is None:
        return {}
    job = run.job
    known = {"job_name": job.task, "job_id": job.id, "priority": job.priority}
    return known if job.schedule_id is None else {"schedule_id": job.schedule_id, **known}


def _iso(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _shown(value: object) -> object:
    """The value as JSON can keep it; text without secrets."""
    if isinstance(value, str):
        return without_secrets(value.encode("utf-8", "backslashreplace").decode())
    if isinstance(value, dict):
        return {str(key): _shown(item) for key, item in value.items()}
    return value if isinstance(value, (int, float, bool, type(None))) else _shown(repr(value))
