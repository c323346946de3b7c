"""Django's own TestCase with the kit."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.test import TestCase

from rota.django import enqueue_on_commit
from rota.django.testing import RotaTests
from with_django.shop import jobs, tasks
from with_django.shop.models import Order


class TestCollected(RotaTests, TestCase):
    """Jobs wait until the test runs them."""

    def test_jobs_see_the_rows_of_the_test(self) -> None:
        order = Order.objects.create(name="chair")
        job = jobs.receipt.enqueue(order.pk)
        assert job.state == "queued"
        self.kit.run_due()
        assert job.result() == "chair"

    def test_each_test_begins_without_jobs(self) -> None:
        assert self.kit.jobs == []

    def test_what_is_enqueued_on_commit_is_there_once_the_callbacks_ran(self) -> None:
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            enqueue_on_commit(jobs.receipt, 7)
            assert self.kit.jobs == []
        assert len(callbacks) == 1
        assert [job.args for job in self.kit.jobs] == [[7]]

    def test_djangos_tasks_are_collected_too(self) -> None:
        with transaction.atomic():
            result = tasks.add.enqueue(1, 2)
        self.kit.run_due()
        result.refresh()
        assert result.return_value == 3

    def test_an_error_of_a_task_is_an_error_of_the_test(self) -> None:
        jobs.receipt.enqueue(0)
        with pytest.raises(Order.DoesNotExist):
            self.kit.run_due()


class TestInline(RotaTests, TestCase):
    """Jobs run when they are enqueued."""

    rota_inline = True

    def test_a_job_runs_at_once(self) -> None:
        order = Order.objects.create(name="table")
        assert jobs.receipt.enqueue(order.pk).result() == "table"
