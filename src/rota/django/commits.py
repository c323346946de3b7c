"""Enqueues a job when the transaction of the caller has committed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec

from django.db import transaction

if TYPE_CHECKING:
    from rota.tasks.task import Task

P = ParamSpec("P")


def enqueue_on_commit(task: Task[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
    """Enqueue after the commit of the default database; at once without a transaction, never after a rollback.

    The arguments are checked now. It works with every store. If the process dies between the commit and the enqueue,
    the job is missing: on SQLite and PostgreSQL, `task.using(tx=connection).enqueue(…)` closes that gap.
    """
    request = task.job(*args, **kwargs)
    transaction.on_commit(partial(task.sender.send, [request]))
