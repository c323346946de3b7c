"""Django's tasks on Rota: of django.tasks if Django has it, else of the package django-tasks."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import django
import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone

from rota.django import app
from rota.django.task_results import class_path
from rota.django.tasks import PACKAGE, RotaBackend
from rota.testing import Kit
from with_django.shop import jobs, tasks

exceptions, signals = (import_module(f"{PACKAGE}.{name}") for name in ("exceptions", "signals"))
INVALID = exceptions.InvalidTask if PACKAGE == "django.tasks" else exceptions.InvalidTaskError  # renamed in Django


@pytest.fixture
def kit():
    app.close()
    with Kit(app) as found:
        yield found


def test_the_tasks_are_djangos_own_from_django_6_on():
    assert ("django.tasks" if django.VERSION >= (6, 0) else "django_tasks") == PACKAGE


def test_a_task_runs_and_its_result_is_read(kit):
    result = tasks.add.enqueue(1, other=2)
    assert (str(result.status), result.enqueued_at is not None, result.started_at) == ("READY", True, None)
    kit.run_due()
    result.refresh()
    assert (str(result.status), result.return_value, result.is_finished) == ("SUCCESSFUL", 3, True)
    assert (result.args, result.kwargs, result.attempts) == ([1], {"other": 2}, 1)
    assert tasks.add.get_result(result.id).finished_at is not None


def test_a_failure_has_its_class_and_traceback(kit):
    result = tasks.fail.enqueue("no luck")
    assert [(job.queue, job.priority) for job in kit.jobs] == [("mail", 5)]
    kit.run_due()
    result.refresh()
    assert str(result.status) == "FAILED"
    assert result.errors[0].exception_class is LookupError
    assert "no luck" in result.errors[0].traceback
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018


def test_a_task_may_take_its_context(kit):
    result = tasks.who.enqueue()
    kit.run_due()
    result.refresh()
    assert result.return_value == [1, "RUNNING"]


def test_a_task_may_wait_and_change_its_queue_and_priority(kit):
    later = tasks.add.using(run_after=kit.clock.now + timedelta(hours=1), queue_name="slow", priority=-3)
    result = later.enqueue(1, 1)
    kit.run_due()
    assert str(tasks.add.get_result(result.id).status) == "READY"
    kit.travel("1h")
    found = tasks.add.get_result(result.id)
    assert (found.return_value, found.task.queue_name, found.task.priority) == (2, "slow", -3)


def test_coroutines_enqueue_and_read_results(kit):
    result = async_to_sync(tasks.add.aenqueue)(2, 2)
    kit.run_due()
    async_to_sync(result.arefresh)()
    assert result.return_value == 4


@pytest.mark.usefixtures("kit")
def test_results_that_are_none_of_djangos_tasks_do_not_exist():
    for result_id in (jobs.receipt.enqueue(1).id, "nothing"):
        with pytest.raises(exceptions.TaskResultDoesNotExist):
            tasks.add.get_backend().get_result(result_id)
    with pytest.raises(exceptions.TaskResultMismatch):
        tasks.add.get_result(tasks.who.enqueue().id)


def test_djangos_signals_tell_how_an_attempt_ended(kit):
    seen = []

    def note(task_result, **_):
        seen.append(str(task_result.status))

    for name in ("task_enqueued", "task_started", "task_finished"):
        getattr(signals, name).connect(note)
    tasks.add.enqueue(1, 1)
    kit.run_due()
    tasks.fail.enqueue("no")
    kit.run_due()
    assert seen == ["READY", "RUNNING", "SUCCESSFUL", "READY", "RUNNING", "FAILED"]


def test_in_an_atomic_block_a_task_is_part_of_the_transaction():
    app.open()
    with transaction.atomic():
        kept = tasks.add.enqueue(1, 1)
    with transaction.atomic():
        dropped = tasks.add.enqueue(2, 2)
        transaction.set_rollback(True)
    assert str(tasks.add.get_result(kept.id).status) == "READY"
    with pytest.raises(exceptions.TaskResultDoesNotExist):
        tasks.add.get_result(dropped.id)
    app.jobs.cancel(kept.id)
    assert str(tasks.add.get_result(kept.id).status) == "FAILED"
    app.close()


@pytest.mark.parametrize("options", [{"retrys": 1}, {"retries": -1}, {"timeout": "soon"}])
def test_options_that_cannot_be_meant_are_refused(options):
    with pytest.raises(ImproperlyConfigured, match="OPTIONS"):
        RotaBackend("default", {"OPTIONS": options})


def test_a_naive_time_is_refused_as_django_does():
    with pytest.raises(INVALID, match="aware"):
        tasks.add.using(run_after=timezone.now().replace(tzinfo=None))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("ValueError: no\nTraceback\n  x\nValueError: no", "builtins.ValueError"),
        ("Nope\nshop.errors.Nope", "shop.errors.Nope"),
        ("…", "builtins.Exception"),
    ],
)
def test_the_class_of_an_error_is_read_from_its_traceback(text, path):
    assert class_path(text) == path
