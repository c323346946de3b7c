"""The tests of that project."""

from __future__ import annotations

import unittest

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

from rota.django import app
from rota.django.testing import RotaTests
from with_django.shop import jobs, tasks
from with_django.shop.models import Order

DATABASE = settings.DATABASES["default"]
IS_IN_MEMORY = "sqlite" in DATABASE["ENGINE"] and not DATABASE["TEST"]["NAME"]  # as Django's test runner decides


class TestInKit(RotaTests, TestCase):
    """Jobs in memory, run by the test, in the transaction of the test."""

    def test_plain_functions_and_coroutines_see_the_rows_of_the_test(self) -> None:
        Order.objects.create(name="chair")
        for task in (jobs.count_orders, jobs.acount_orders):
            task.using(tx=connection).enqueue()
        ended = self.kit.run_due()
        assert [job.result() for job in ended] == [1, 1]

    def test_what_a_coroutine_writes_is_seen_by_the_test(self) -> None:
        order = Order.objects.create(name="chair")
        jobs.rename.enqueue(order.pk, "table")
        self.kit.run_due()
        order.refresh_from_db()
        assert order.name == "table"

    async def test_a_test_may_be_a_coroutine(self) -> None:
        job = await jobs.acount_orders.aenqueue()
        self.kit.run_due()
        assert job.result() == 0


class TestWithoutKit(TestCase):
    """Code under test may enqueue in tests that know nothing of Rota."""

    def test_jobs_are_kept_in_memory(self) -> None:
        tasks.add.enqueue(1, 2)
        jobs.count_orders.enqueue()
        with transaction.atomic():
            jobs.count_orders.using(tx=connection).enqueue()
        assert app.open().describe().startswith("memory")
        assert len(app.jobs.list()) == 3


@unittest.skipIf(IS_IN_MEMORY, "no store can be there")
class TestOnDatabase(RotaTests, TransactionTestCase):
    """Jobs in the test database."""

    rota_on_database = True

    def test_a_job_exists_if_its_transaction_commits(self) -> None:
        with transaction.atomic():
            Order.objects.create(name="chair")
            job = jobs.count_orders.using(tx=connection).enqueue()
        with transaction.atomic():
            jobs.count_orders.using(tx=connection).enqueue()
            transaction.set_rollback(True)
        assert [one.id for one in app.jobs.list()] == [job.id]
        with app.running(scheduler=False):
            assert job.result("60s") == 1

    def test_each_test_begins_without_jobs(self) -> None:
        assert len(app.jobs.list()) == 0


@unittest.skipUnless(IS_IN_MEMORY, "a store can be there")
class TestOnDatabaseInMemory(TransactionTestCase):
    """The mixin says what is missing."""

    def test_a_database_in_memory_is_refused(self) -> None:
        case = TestOnDatabase("test_each_test_begins_without_jobs")
        with self.assertRaisesRegex(ImproperlyConfigured, "in memory; set DATABASES.'default'..'TEST'"):  # noqa: PT027
            case.setUp()
