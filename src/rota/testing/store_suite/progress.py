"""Tests the progress of a running job, which only its owner writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.testing.store_suite.builders import HOUR, T0, WORKER
from rota.testing.store_suite.steps import claim_one, read, rescue_expired, running_job, succeed

if TYPE_CHECKING:
    from rota.store.contract import Store


class TestProgress:
    def test_the_last_word_is_kept(self, store: Store) -> None:
        job = running_job(store)
        store.record_progress(WORKER, [(job.id, job.lease_no, "1/3")])
        store.record_progress(WORKER, [(job.id, job.lease_no, "2/3")])
        assert read(store, job.id).progress == "2/3"

    def test_of_words_that_come_together_the_last_is_kept(self, store: Store) -> None:
        jobs = [running_job(store), running_job(store)]
        store.record_progress(WORKER, [(job.id, job.lease_no, f"{n}/9") for n in range(10) for job in jobs])
        assert [read(store, job.id).progress for job in jobs] == ["9/9", "9/9"]

    def test_it_outlives_the_attempt(self, store: Store) -> None:
        job = running_job(store)
        store.record_progress(WORKER, [(job.id, job.lease_no, "3/3")])
        succeed(store, job)
        assert read(store, job.id).progress == "3/3"

    def test_another_holder_says_nothing(self, store: Store) -> None:
        job = running_job(store)
        store.record_progress("other", [(job.id, job.lease_no, "1/3")])
        assert read(store, job.id).progress is None

    def test_an_old_lease_writes_nothing_and_a_new_one_starts_without_progress(self, store: Store) -> None:
        job = running_job(store)
        store.record_progress(WORKER, [(job.id, job.lease_no, "2/3")])
        rescue_expired(store, now=T0 + HOUR)
        again = claim_one(store, now=T0 + HOUR)
        assert again.progress is None
        store.record_progress(WORKER, [(job.id, job.lease_no, "3/3")])
        assert read(store, job.id).progress is None
