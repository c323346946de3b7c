"""Tests adding jobs: what a store makes of a request, in which order, and that a call adds all of its jobs or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.jobs.job import NewJob, State, accept, history_of
from rota.model.micros import SECOND
from rota.store.contract import LARGEST_BATCH, Added
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_job, fresh_id
from rota.testing.store_suite.steps import (
    add,
    add_job,
    all_jobs,
    claim,
    ids,
    queue_info,
    read,
    running_job,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

FULL = NewJob(
    id="0123456789abcdef0123456789ab",
    task="shop.tasks:mail.send-it",
    payload=b'[["a"],{"b":1}]',
    queue="mail",
    priority=-7,
    key="user-42",
    key_for=HOUR,
    run_at=T0 + MINUTE,
    delay=SECOND,
    schedule_id="tick",
    fire_at=T0,
    after_at=T0 - MINUTE,
    generation=3,
    made_by="cron",
    reason="fired",
)


class TestAddingJobs:
    def test_a_new_job_is_queued_at_once(self, store: Store) -> None:
        job = a_job()
        assert store.add_jobs([job], now=T0) == [Added(job.id)]
        assert read(store, job.id).state is State.QUEUED

    def test_a_new_job_keeps_every_field_of_its_request(self, store: Store) -> None:
        add(store, FULL)
        kept = read(store, FULL.id)
        assert kept == accept(FULL, T0, kept.seq)

    def test_a_new_job_has_one_entry_of_history(self, store: Store) -> None:
        (line,) = history_of(read(store, add_job(store, reason="enqueued by ann")))
        assert (line.state, line.at, line.reason) == (State.QUEUED, T0, "enqueued by ann")

    @pytest.mark.parametrize("payload", [b"", b"\x00\xff\xfe", bytes(range(256)) * 1024], ids=["empty", "raw", "large"])
    def test_a_payload_comes_back_byte_for_byte(self, store: Store, payload: bytes) -> None:
        assert read(store, add_job(store, payload=payload)).payload == payload

    @pytest.mark.parametrize(
        "text", ["Zürich ☕ 東京 🚲", "'; DROP TABLE jobs; --", '{"a": [1]}', "%s ? :x $1 {}", "\\n\n"]
    )
    def test_text_comes_back_as_it_went_in(self, store: Store, text: str) -> None:
        job = read(store, add_job(store, key=text, reason=text))
        assert (job.key, history_of(job)[0].reason) == (text, text)

    def test_a_delay_counts_from_the_stores_now(self, store: Store) -> None:
        job = read(store, add_job(store, delay=MINUTE, now=T0 + HOUR))
        assert (job.state, job.run_at) == (State.SCHEDULED, T0 + HOUR + MINUTE)

    def test_a_job_for_later_is_scheduled(self, store: Store) -> None:
        job = read(store, add_job(store, run_at=T0 + 1))
        assert (job.state, job.run_at) == (State.SCHEDULED, T0 + 1)

    @pytest.mark.parametrize("run_at", [T0, T0 - HOUR], ids=["now", "past"])
    def test_a_job_that_is_already_due_is_queued(self, store: Store, run_at: int) -> None:
        assert read(store, add_job(store, run_at=run_at)).state is State.QUEUED

    @pytest.mark.parametrize(("run_in", "delay"), [(MINUTE, HOUR), (HOUR, MINUTE)])
    def test_the_later_of_instant_and_delay_counts(self, store: Store, run_in: int, delay: int) -> None:
        assert read(store, add_job(store, run_at=T0 + run_in, delay=delay)).run_at == T0 + HOUR

    def test_adding_nothing_changes_nothing(self, store: Store) -> None:
        assert store.add_jobs([], now=T0) == []
        assert all_jobs(store) == []


class TestAddingMany:
    def test_jobs_of_one_call_stand_in_the_order_given(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(20)])
        assert ids(claim(store, 20)) == made

    def test_jobs_of_a_later_call_stand_behind(self, store: Store) -> None:
        made = [*add(store, a_job(), a_job()), *add(store, a_job(), now=T0 - HOUR)]
        assert ids(claim(store, 3, now=T0)) == made

    def test_answers_come_in_the_order_asked(self, store: Store) -> None:
        taken = add_job(store, key="k")
        first, last = a_job(), a_job()
        answer = store.add_jobs([first, a_job(key="k"), last], now=T0)
        assert answer == [Added(first.id), Added(taken, existed=True), Added(last.id)]

    def test_a_full_batch_is_added_in_one_call(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(LARGEST_BATCH)])
        assert ids(all_jobs(store)) == made[::-1]

    def test_one_call_may_add_to_many_queues(self, store: Store) -> None:
        add(store, a_job(queue="a"), a_job(queue="b"), a_job(queue="a", delay=MINUTE))
        assert queue_info(store, "a").counts == {"queued": 1, "scheduled": 1}
        assert queue_info(store, "b").counts == {"queued": 1}

    def test_a_position_is_never_used_twice(self, store: Store) -> None:
        """Cursors of lists depend on it: another job must not get the position of a deleted one."""
        first = read(store, succeeded_job(store))
        store.delete_jobs([first.id], now=T0)
        assert read(store, add_job(store)).seq > first.seq

    def test_a_repeated_add_of_the_same_job_changes_nothing(self, store: Store) -> None:
        """The reply to the first call may have been lost."""
        new = a_job()
        add(store, new)
        job = claim(store)[0]
        assert store.add_jobs([new], now=T0 + 1) == [Added(new.id, existed=True)]
        assert all_jobs(store) == [job]


class TestBatches:
    def test_every_field_of_each_is_what_the_model_says(self, store: Store) -> None:
        kinds = [
            NewJob(id=fresh_id(), task=f"t.{n % 2}", payload=b"[[]]", queue=f"q{n % 3}", priority=n) for n in range(9)
        ]
        store.add_jobs(kinds)
        for new in kinds:
            kept = read(store, new.id)
            assert kept == accept(new, kept.created_at, kept.seq)

    def test_jobs_of_any_kind_can_be_added_together(self, store: Store) -> None:
        taken = add_job(store, key="k")
        plain, waiting = a_job(), a_job(waits_for=taken)
        added = store.add_jobs([plain, a_job(key="k"), waiting, FULL])
        assert added == [Added(plain.id), Added(taken, existed=True), Added(waiting.id), Added(FULL.id)]

    def test_some_may_be_there_already(self, store: Store) -> None:
        """The reply to an earlier call may have been lost."""
        news = [a_job(), a_job()]
        store.add_jobs(news[:1])
        assert store.add_jobs(news) == [Added(news[0].id, existed=True), Added(news[1].id)]
        assert len(all_jobs(store)) == 2


class TestUniqueKeys:
    def test_a_taken_key_gives_the_live_jobs_id(self, store: Store) -> None:
        first = add_job(store, key="k")
        assert store.add_jobs([a_job(key="k")], now=T0) == [Added(first, existed=True)]

    def test_a_taken_key_changes_nothing(self, store: Store) -> None:
        before = read(store, add_job(store, key="k"))
        add(store, a_job(key="k", priority=9, queue="other", payload=b"2"), now=T0 + 1)
        assert all_jobs(store) == [before]

    def test_two_jobs_of_one_call_with_one_key_make_one_job(self, store: Store) -> None:
        first = a_job(key="k")
        answer = store.add_jobs([first, a_job(key="k")], now=T0)
        assert answer == [Added(first.id), Added(first.id, existed=True)]

    def test_jobs_without_a_key_never_meet(self, store: Store) -> None:
        add(store, a_job(), a_job())
        assert len(all_jobs(store)) == 2

    @pytest.mark.parametrize("other", ["K", "k ", " k", "k\u0301", "κ"])
    def test_keys_that_differ_at_all_are_different(self, store: Store, other: str) -> None:
        add(store, a_job(key="k"), a_job(key=other))
        assert len(all_jobs(store)) == 2

    def test_a_long_key_is_compared_to_its_end(self, store: Store) -> None:
        add(store, a_job(key="k" * 254 + "a"), a_job(key="k" * 254 + "b"))
        assert len(all_jobs(store)) == 2

    def test_a_scheduled_job_holds_its_key(self, store: Store) -> None:
        first = add_job(store, key="k", delay=HOUR)
        assert add_job(store, key="k") == first

    def test_a_running_job_holds_its_key(self, store: Store) -> None:
        first = running_job(store, key="k")
        assert add_job(store, key="k") == first.id

    def test_a_held_job_holds_its_key(self, store: Store) -> None:
        before = running_job(store)
        first = add_job(store, key="k", waits_for=before.id)
        assert add_job(store, key="k") == first

    def test_every_field_but_the_key_may_differ(self, store: Store) -> None:
        first = add_job(store, key="k")
        assert add(store, msgspec.structs.replace(FULL, key="k", schedule_id=None, fire_at=None)) == [first]
