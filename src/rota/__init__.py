"""Rota: a job scheduler and background-job system for Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # names for type checkers; at run time, _PUBLIC has the same
    from rota.app import App as App
    from rota.engine.events import Event as Event
    from rota.engine.executors.run import current_job as current_job
    from rota.errors import *  # noqa: F403 - every error is public
    from rota.model.alerts.message import Alert as Alert
    from rota.model.jobs.retry import backoff as backoff
    from rota.model.secrets.redaction import Secret as Secret
    from rota.store.shared.paging import walk as walk
    from rota.tasks.job import Job as Job
    from rota.tasks.middleware import JobAttempt as JobAttempt
    from rota.tasks.middleware import JobDraft as JobDraft
    from rota.tasks.middleware import Middleware as Middleware
    from rota.tasks.signals import Cancel as Cancel
    from rota.tasks.signals import Retry as Retry
    from rota.tasks.signals import Snooze as Snooze
    from rota.tasks.task import Task as Task
    from rota.triggers import Caveat as Caveat
    from rota.triggers import Trigger as Trigger
    from rota.triggers import calendar as calendar
    from rota.triggers import cron as cron
    from rota.triggers import every as every
    from rota.triggers import once as once
    from rota.triggers import trigger_from_text as trigger_from_text

__version__ = "0.1.0"

_PUBLIC = {  # module -> its names; loaded when first used, so that a command handles signals before it imports much
    "rota.app": "App",
    "rota.engine.events": "Event",
    "rota.engine.executors.run": "current_job",
    "rota.model.alerts.message": "Alert",
    "rota.model.secrets.redaction": "Secret",
    "rota.model.jobs.retry": "backoff",
    "rota.store.shared.paging": "walk",
    "rota.tasks.job": "Job",
    "rota.tasks.middleware": "JobAttempt JobDraft Middleware",
    "rota.tasks.signals": "Cancel Retry Snooze",
    "rota.tasks.task": "Task",
    "rota.triggers": "Caveat Trigger calendar cron every once trigger_from_text",
}
_WHERE = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_MODULES = {"errors", *(module.split(".")[1] for module in _PUBLIC)}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"rota.{name}")
    if name == "__all__":
        value: Any = sorted({*_WHERE, *_errors()})
    elif name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    elif name in (errors := _errors()):
        value = errors[name]
    else:
        raise AttributeError(f"module 'rota' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_errors()})


def _errors() -> dict[str, type]:
    """Every error that Rota raises on purpose."""
    errors = import_module("rota.errors")
    return {name: kind for name, kind in vars(errors).items() if getattr(kind, "__module__", None) == "rota.errors"}
