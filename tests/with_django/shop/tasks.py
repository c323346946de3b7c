"""Tasks as Django has them."""

from __future__ import annotations

from importlib import import_module

from rota.django.tasks import PACKAGE

task = import_module(PACKAGE).task


@task
def add(one: int, other: int) -> int:
    return one + other


@task(priority=5, queue_name="mail")
async def fail(why: str) -> None:
    raise LookupError(why)


@task(takes_context=True)
def who(context) -> list:
    return [context.attempt, str(context.task_result.status)]
