"""Gives Django's tests the project's app on a store of their own, with jobs that are collected, or run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rota.django.current import database_of_store, get_app
from rota.django.test_runs import store_in_database
from rota.testing import Kit

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class _Case(Protocol):
    """What the mixin needs of unittest's TestCase."""

    def enterContext(self, context: AbstractContextManager[Any]) -> Any: ...  # noqa: N802 - its own name


class RotaTests:
    """A mixin: `class TestShop(RotaTests, TestCase)`. `self.kit` has the jobs, and `run_due()` runs them.

    Jobs are kept in memory, apart from Django's databases. Those of transaction.on_commit() are enqueued inside
    `with self.captureOnCommitCallbacks(execute=True)`, because Django's TestCase never commits.
    """

    rota_inline = False  # True: a job runs when it is enqueued
    rota_raise_errors = True  # what a task raises is raised inside the test
    rota_on_database = False  # True: no kit; jobs are kept in the test database, for a TransactionTestCase
    kit: Kit

    def setUp(self: Any) -> None:
        """Give the test a kit of its own. The store of the test before is closed."""
        super().setUp()  # type: ignore[misc]  # of the TestCase beside it
        case: _Case = self
        get_app().close()
        if self.rota_on_database:
            case.enterContext(store_in_database(get_app(), database_of_store()))
            return
        kit = Kit(get_app(), inline=self.rota_inline, raise_errors=self.rota_raise_errors)
        self.kit = case.enterContext(kit)
