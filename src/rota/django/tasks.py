"""Provides a backend for Django's tasks: `TASKS = {"default": {"BACKEND": "rota.django.tasks.RotaBackend"}}`.

Django has tasks from 6.0 on. Before, the package django-tasks has them, with the same names. Each task of Django runs
as a job of one task of Rota, which gets the path of the function. OPTIONS takes `retries` and `timeout`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone
from django.utils.module_loading import import_string

from rota.app import internals
from rota.django.current import database_of_store, get_app
from rota.django.task_results import NAME, Call, end_result, result_of, running_result
from rota.engine.executors.run import current_job
from rota.errors import JobNotFound, RotaError

if TYPE_CHECKING:
    from rota.tasks.task import Task as RotaTask

PACKAGE = "django.tasks" if find_spec("django.tasks") else "django_tasks"  # where Django's tasks are
OPTIONS = ("retries", "timeout")

_base = import_module(f"{PACKAGE}.backends.base")
_values = import_module(f"{PACKAGE}.base")
_exceptions = import_module(f"{PACKAGE}.exceptions")
_signals = import_module(f"{PACKAGE}.signals")


class RotaBackend(_base.BaseTaskBackend):  # type: ignore[name-defined]  # of either package
    """Django's tasks as jobs of the project's app."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        unknown = sorted(set(self.options) - set(OPTIONS))
        if unknown:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]['OPTIONS'] has {', '.join(unknown)}; RotaBackend takes {', '.join(OPTIONS)}"
            )
        try:
            runner().using(**self.options)
        except RotaError as err:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]['OPTIONS']: {err}") from err

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Make a job of the call. In an atomic block on the store's own database, it is part of the transaction."""
        self.validate_task(task)
        options: dict[str, Any] = {"queue": task.queue_name, "priority": task.priority, **self.options}
        if task.run_after is not None:
            after = task.run_after
            options["at"] = after if timezone.is_aware(after) else timezone.make_aware(after)
        if (transaction := open_transaction()) is not None:
            options["tx"] = transaction
        call = Call(task.module_path, list(args), dict(kwargs), self.alias)
        job = runner().using(**options).enqueue(*call)
        found = result_of(_values, task, call, job_id=job.id, enqueued_at=timezone.now())
        _signals.task_enqueued.send(type(self), task_result=found)
        return found

    def get_result(self, result_id: str) -> Any:
        """How a job stands; TaskResultDoesNotExist if it is none of Django's tasks."""
        jobs = get_app().jobs
        try:
            job = jobs.get(result_id)
        except JobNotFound as err:
            raise _exceptions.TaskResultDoesNotExist(result_id) from err
        call = Call.read(job.args) if job.task == NAME else None
        if call is None or call.backend != self.alias:
            raise _exceptions.TaskResultDoesNotExist(result_id)
        task = import_string(call.path).using(priority=job.priority, queue_name=job.queue)
        return result_of(_values, task, call, job=job, history=jobs.history(result_id))


def runner() -> RotaTask[Any, Any]:
    """The task of Rota that runs those of Django."""
    found = internals(get_app()).registry.find(NAME)
    if found is None:
        found = get_app().task(name=NAME, retries=0)(run_django_task)
    return found


def run_django_task(path: str, args: list[Any], kwargs: dict[str, Any], backend: str) -> Any:
    """Run a task of Django in a worker."""
    task = import_string(path)
    found = running_result(_values, task, Call(path, args, kwargs, backend), current_job.id, current_job.attempt)
    _signals.task_started.send(RotaBackend, task_result=found)
    first = [_values.TaskContext(task_result=found)] if task.takes_context else []
    status = "FAILED"
    try:
        value = task.call(*first, *args, **kwargs)
        status = "SUCCESSFUL"
    finally:
        end_result(_values, found, status)
        _signals.task_finished.send(RotaBackend, task_result=found)
    return value


def open_transaction() -> Any:
    """Django's connection to the store's own database, if it is in an atomic block; else None."""
    alias = database_of_store()
    if alias is None or not connections[alias].in_atomic_block:
        return None
    store = internals(get_app()).store.find()
    return connections[alias] if store.features.enqueues_in_transactions else None
