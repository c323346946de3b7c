"""Stopping what runs: timeouts, cancellations, lost leases, stuck threads and draining."""

from __future__ import annotations

import asyncio
import threading

import pytest
from msgspec import structs

from amounts import PATIENCE
from rota import LeaseLost, current_job
from rota.engine.worker.capacity import PrefetchLimit
from rota.model.micros import SECOND
from rota.store.contract import Exchange


class Slow:
    """A task that says when it has begun and how it was ended."""

    def __init__(self, app, gate, *, looks=True, **options):
        self.begun = threading.Semaphore(0)
        self.ended: list[str] = []
        self.over = threading.Semaphore(0)

        @app.task(name="slow.thread", **options)
        def in_thread() -> str:
            self.begun.release()
            gate.wait(PATIENCE)
            self.ended.append("cancelled" if looks and current_job.cancelled else "returned")
            self.over.release()
            return "done"

        @app.task(name="slow.coroutine", **options)
        async def in_coroutine() -> str:
            self.begun.release()
            try:
                while not gate.is_set():  # noqa: ASYNC110 - the gate belongs to threads
                    await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                self.ended.append("interrupted")
                self.over.release()
                raise
            self.ended.append("returned")
            self.over.release()
            return "done"

        self.tasks = {"thread": in_thread, "coroutine": in_coroutine}

    def has_begun(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.begun.acquire(timeout=PATIENCE)

    def has_ended(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.over.acquire(timeout=PATIENCE)


# Timeouts.


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_a_job_that_runs_longer_than_its_timeout_has_failed(any_stage, gate, kind):
    slow = Slow(any_stage.app, gate, timeout="5s", retries=0)
    worker = any_stage.a_worker()
    keeper = any_stage.a_keeper(worker)
    job = slow.tasks[kind].enqueue()
    worker.turn()
    slow.has_begun()
    keeper.turn()
    assert job.refresh().state == "running"
    any_stage.skip(6)
    keeper.turn()
    any_stage.work_off(worker)
    assert job.refresh().state == "failed"
    assert job.error == f"TimeoutError: slow.{kind} ran longer than its timeout of 5 s"
    gate.set()
    slow.has_ended()
    assert slow.ended == ["cancelled" if kind == "thread" else "interrupted"]


def test_a_timeout_is_tried_again_like_any_failure(stage, gate):
    slow = Slow(stage.app, gate, timeout="5s")
    worker = stage.a_worker()
    job = slow.tasks["coroutine"].enqueue()
    worker.turn()
    slow.has_begun()
    stage.skip(6)
    stage.a_keeper(worker).turn()
    stage.work_off(worker)
    assert (job.refresh().state, job.record.failures) == ("scheduled", 1)


def test_a_timeout_is_final_where_the_task_gives_up_on_timeouts(stage, gate):
    slow = Slow(stage.app, gate, timeout="5s", give_up_on=(TimeoutError,))
    worker = stage.a_worker()
    job = slow.tasks["coroutine"].enqueue()
    worker.turn()
    slow.has_begun()
    stage.skip(6)
    stage.a_keeper(worker).turn()
    stage.work_off(worker)
    assert job.refresh().state == "failed"


def test_the_clock_of_a_timeout_starts_when_the_task_does(stage, gate):
    slow = Slow(stage.app, gate, timeout="5s")
    worker = stage.a_worker(concurrency=1)
    keeper = stage.a_keeper(worker)
    first = slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun()
    worker.capacity.prefetch.room = lambda held, stuck: 2 - held - stuck  # as after many short jobs
    second = slow.tasks["thread"].enqueue()
    worker.turn()
    stage.skip(4)
    keeper.turn()
    assert worker.runs[first.id].deadline is not None
    assert (worker.runs[second.id].timeout, worker.runs[second.id].deadline) == (5.0, None)


def test_one_request_may_have_a_timeout_of_its_own(stage, gate):
    slow = Slow(stage.app, gate, timeout="1h", retries=0)
    worker = stage.a_worker()
    job = slow.tasks["coroutine"].using(timeout="2s").enqueue()
    worker.turn()
    slow.has_begun()
    stage.skip(3)
    stage.a_keeper(worker).turn()
    stage.work_off(worker)
    assert job.refresh().state == "failed"


def test_what_a_task_returns_after_its_timeout_changes_nothing(stage, gate):
    slow = Slow(stage.app, gate, timeout="5s", retries=0)
    worker = stage.a_worker()
    job = slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun()
    stage.skip(6)
    stage.a_keeper(worker).turn()
    stage.work_off(worker)
    gate.set()
    slow.has_ended()
    stage.work_off(worker)
    assert (job.refresh().state, job.record.result) == ("failed", None)


# Cancelling.


def test_a_waiting_job_that_is_cancelled_never_runs(any_stage, gate):
    slow = Slow(any_stage.app, gate)
    gate.set()
    job = slow.tasks["thread"].enqueue()
    any_stage.app.jobs.cancel(job.id, reason="not wanted")
    any_stage.work_off(any_stage.a_worker())
    assert (job.refresh().state, slow.ended) == ("cancelled", [])


def test_a_running_coroutine_that_is_cancelled_is_interrupted(any_stage, gate):
    slow = Slow(any_stage.app, gate)
    worker = any_stage.a_worker()
    job = slow.tasks["coroutine"].enqueue()
    worker.turn()
    slow.has_begun()
    any_stage.app.jobs.cancel(job.id, reason="not wanted")
    any_stage.a_keeper(worker).turn()
    slow.has_ended()
    any_stage.work_off(worker)
    assert (job.refresh().state, job.record.cancel_reason, slow.ended) == ("cancelled", "not wanted", ["interrupted"])


def test_a_running_thread_that_is_cancelled_sees_it_and_may_stop(any_stage):
    begun, seen = threading.Event(), threading.Event()

    @any_stage.app.task
    def loop() -> None:
        begun.set()
        while True:
            if current_job.cancelled:
                seen.set()
            current_job.check()
            seen.wait(0.001)

    worker = any_stage.a_worker()
    job = loop.enqueue()
    worker.turn()
    assert begun.wait(PATIENCE)
    any_stage.app.jobs.cancel(job.id, reason="not wanted")
    any_stage.a_keeper(worker).turn()
    assert seen.wait(PATIENCE)
    any_stage.work_off(worker)
    assert (job.refresh().state, job.record.cancel_reason) == ("cancelled", "not wanted")


def test_a_running_thread_that_does_not_look_ends_as_it_ends(any_stage, gate):
    slow = Slow(any_stage.app, gate, looks=False)
    worker = any_stage.a_worker()
    job = slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun()
    any_stage.app.jobs.cancel(job.id)
    any_stage.a_keeper(worker).turn()
    gate.set()
    any_stage.work_off(worker)
    assert job.refresh().state == "succeeded"


def test_a_job_that_fails_after_it_was_asked_to_stop_is_cancelled_and_not_tried_again(any_stage):
    begun, go = threading.Event(), threading.Event()

    @any_stage.app.task
    def fail() -> None:
        begun.set()
        go.wait(PATIENCE)
        raise ValueError("no stamp")

    worker = any_stage.a_worker()
    job = fail.enqueue()
    worker.turn()
    assert begun.wait(PATIENCE)
    any_stage.app.jobs.cancel(job.id, reason="not wanted")  # and no lease keeper tells the worker
    go.set()
    any_stage.work_off(worker)
    assert (job.refresh().state, job.record.cancel_reason) == ("cancelled", "not wanted")


def test_a_cancellation_reaches_a_running_job_within_two_seconds(stage, gate):
    """The lease keeper looks at least once a second while anything runs, and its pause says so."""
    slow = Slow(stage.app, gate)
    worker = stage.a_worker()
    slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun()
    assert 0 < stage.a_keeper(worker).turn() <= 1.0


# Lost leases.


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_a_worker_that_lost_its_lease_stops_the_job_and_its_late_report_changes_nothing(stage, gate, kind):
    slow = Slow(stage.app, gate)
    late, other = stage.a_worker(), stage.a_worker()
    job = slow.tasks[kind].enqueue()
    late.turn()
    slow.has_begun()
    stage.skip(31)
    stage.a_rescuer().turn()
    other.turn()
    slow.has_begun()
    stage.a_keeper(late).turn()
    assert "job.lost" in stage.names()
    assert late.runs == {}
    gate.set()
    slow.has_ended(2)
    stage.work_off(late)
    stage.work_off(other)
    assert (job.refresh().state, job.record.holder, job.record.deaths) == ("succeeded", other.holder, 1)
    assert slow.ended[0] == ("interrupted" if kind == "coroutine" else slow.ended[0])


def test_a_report_under_a_lost_lease_is_refused_and_told(stage, gate):
    slow = Slow(stage.app, gate)
    late, other = stage.a_worker(), stage.a_worker()
    job = slow.tasks["thread"].enqueue()
    late.turn()
    slow.has_begun()
    stage.skip(31)
    stage.a_rescuer().turn()
    other.turn()
    slow.has_begun()
    gate.set()
    slow.has_ended(2)
    stage.work_off(late)
    assert stage.names("job.refused", "job.succeeded") == ["job.refused"]
    assert job.refresh().state == "running"
    stage.work_off(other)
    assert job.refresh().state == "succeeded"


def test_a_lease_is_renewed_as_long_as_its_job_runs(stage, gate):
    slow = Slow(stage.app, gate)
    worker = stage.a_worker()
    keeper = stage.a_keeper(worker)
    job = slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun()
    for _ in range(30):
        stage.skip(10)
        keeper.turn()
        stage.a_rescuer().turn()
        assert job.refresh().record.lease_until - stage.still.time >= 20 * SECOND
    gate.set()
    stage.work_off(worker)
    assert (job.refresh().state, job.record.deaths) == ("succeeded", 0)


def test_a_worker_cut_off_for_a_whole_lease_stops_its_jobs_by_its_own_clock(stage, gate):
    slow = Slow(stage.app, gate)
    worker = stage.a_worker()
    keeper = stage.a_keeper(worker)
    slow.tasks["coroutine"].enqueue()
    worker.turn()
    slow.has_begun()
    stage.store.fail("extend_leases", 2)
    stage.skip(20)
    keeper._guarded_turn()
    assert worker.runs
    stage.skip(11)
    keeper._guarded_turn()
    assert not worker.runs
    slow.has_ended()
    assert slow.ended == ["interrupted"]


def test_check_raises_where_the_job_is_no_longer_ours(stage):
    begun, lost = threading.Event(), threading.Event()
    raised = []

    @stage.app.task
    def loop() -> None:
        begun.set()
        lost.wait(PATIENCE)
        try:
            current_job.check()
        except LeaseLost as err:
            raised.append(str(err))
            raise

    worker = stage.a_worker()
    loop.enqueue()
    worker.turn()
    assert begun.wait(PATIENCE)
    worker.runs.lose(next(iter(worker.runs.values())))
    lost.set()
    worker.executors.threads.stop()
    worker.executors.threads._threads[0].join(PATIENCE)
    assert raised == ["the lease was lost"]


# Stuck threads.


def test_stuck_threads_shrink_the_room_and_their_return_gives_it_back(stage, gate):
    slow = Slow(stage.app, gate, timeout="5s", retries=0)
    worker = stage.a_worker(concurrency=3)
    for _ in range(2):
        slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun(2)
    stage.skip(6)
    stage.a_keeper(worker).turn()
    stage.work_off(worker)
    worker.capacity.prefetch = PrefetchLimit(3)  # which has seen no short jobs
    assert worker.executors.threads.stuck == 2
    assert worker.capacity.free() == 1
    threads = list(worker.executors.threads._threads)
    gate.set()
    slow.has_ended(2)
    worker.executors.threads.stop()
    for thread in threads:
        thread.join(PATIENCE)
    assert worker.executors.threads.stuck == 0
    assert worker.capacity.free() == 3


def test_a_worker_whose_threads_are_all_stuck_claims_nothing(stage, gate):
    slow = Slow(stage.app, gate, timeout="5s", retries=0)
    worker = stage.a_worker(concurrency=1)
    slow.tasks["thread"].enqueue()
    worker.turn()
    slow.has_begun()
    stage.skip(6)
    stage.a_keeper(worker).turn()
    stage.work_off(worker)
    waiting = slow.tasks["thread"].enqueue()
    worker.turn()
    assert waiting.refresh().state == "queued"


# Draining.


def test_draining_gives_back_what_was_not_begun_and_waits_for_what_runs(any_stage, gate):
    slow = Slow(any_stage.app, gate)
    worker = any_stage.a_worker(concurrency=1)
    worker.capacity.prefetch.room = lambda held, stuck: 4 - held - stuck  # as after many short jobs
    jobs = any_stage.app.enqueue_many([slow.tasks["thread"].job() for _ in range(4)])
    worker.turn()
    slow.has_begun()
    worker.drain()
    worker.turn()
    assert [job.refresh().state for job in jobs] == ["running", "queued", "queued", "queued"]
    assert not worker.drained.is_set()
    gate.set()
    slow.has_ended()
    any_stage.work_until(worker, worker.drained.is_set)
    assert [job.refresh().state for job in jobs] == ["succeeded", "queued", "queued", "queued"]
    assert [job.attempts for job in jobs] == [1, 0, 0, 0]
    assert slow.ended == ["returned"]


def test_a_draining_worker_claims_nothing_more(stage, gate):
    slow = Slow(stage.app, gate)
    worker = stage.a_worker()
    worker.drain()
    job = slow.tasks["thread"].enqueue()
    worker.turn()
    assert job.state == "queued"
    assert worker.drained.is_set()


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_what_is_still_running_at_the_end_is_handed_back_and_spends_nothing(any_stage, gate, kind):
    slow = Slow(any_stage.app, gate, retries=0)
    worker = any_stage.a_worker()
    job = slow.tasks[kind].enqueue()
    worker.turn()
    slow.has_begun()
    worker.drain()
    worker.return_running()
    any_stage.work_until(worker, worker.drained.is_set)
    assert (job.refresh().state, job.attempts, job.record.failures, job.record.deaths) == ("queued", 0, 0, 0)
    assert any_stage.app.jobs.history(job.id)[-1].reason == "worker shutdown"


def test_a_thread_never_begins_what_was_given_back(stage):
    """Between taking a run from the line and calling the task there is a moment; a drain may fall into it."""
    ran = threading.Event()

    @stage.app.task
    def work() -> None:
        ran.set()

    worker = stage.a_worker(concurrency=1)
    taken = threading.Event()

    class Moment(dict):
        def __setitem__(self, key, run):
            super().__setitem__(key, run)
            worker.drain()
            taken.set()

    worker.executors.threads._current = Moment()
    job = work.enqueue()
    worker.turn()
    assert taken.wait(PATIENCE)
    worker.executors.threads.stop()
    worker.executors.threads._threads[0].join(PATIENCE)
    worker.turn()
    assert (job.refresh().state, ran.is_set()) == ("queued", False)


def test_a_coroutine_never_begins_that_was_given_back(stage):
    ran, holding, go = [], threading.Event(), threading.Event()

    @stage.app.task
    async def hold() -> None:
        holding.set()
        go.wait(PATIENCE)  # keeps the loop, as a careless task may

    @stage.app.task
    async def work() -> None:
        ran.append("work")

    worker = stage.a_worker()
    hold.enqueue()
    worker.turn()
    assert holding.wait(PATIENCE)
    job = work.enqueue()
    worker.turn()
    worker.executors.loop._loop.call_soon_threadsafe(
        worker.drain
    )  # after the run was handed to the loop, before its first step
    go.set()
    stage.work_until(worker, worker.drained.is_set)
    assert (job.refresh().state, ran) == ("queued", [])


def test_a_closed_worker_leaves_no_event_loop_behind(stage):
    @stage.app.task
    async def work() -> None: ...

    worker = stage.a_worker()
    work.enqueue()
    stage.work_off(worker)
    loop = worker.executors.loop._loop
    threads = [thread for thread in threading.enumerate() if thread.name == "rota-loop"]
    worker.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert loop.is_closed()


def test_a_worker_that_drains_while_it_asks_for_jobs_asks_once_more_for_none(stage, monkeypatch):
    """The store may have noted that it is idle, and claim the next job for it."""
    worker, exchange, wanted = stage.a_worker(), stage.still.exchange, []

    def drain_meanwhile(request, **options):
        wanted.append(request.want)
        reply = exchange(request, **options)
        worker.drain()
        return reply

    monkeypatch.setattr(stage.still, "exchange", drain_meanwhile)
    stage.work_until(worker, worker.drained.is_set)
    assert wanted == [4, 0]


def test_a_job_that_no_thread_can_be_started_for_is_returned(stage, monkeypatch):
    @stage.app.task(name="noop")
    def noop() -> None: ...

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    job, worker = noop.enqueue(), stage.a_worker()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            worker.turn()
    stage.work_until(worker, lambda: job.refresh().state == "succeeded")
    assert [line.state for line in stage.app.jobs.history(job.id)][:3] == ["queued", "running", "queued"]


def test_a_job_that_was_due_by_the_stores_clock_starts_at_once(stage, gate):
    """The worker's estimate of that clock may be behind by a slow reply."""
    slow, worker = Slow(stage.app, gate), stage.a_worker()
    worker.turn()  # it knows the clock
    slow.tasks["thread"].enqueue()
    now = worker.clock.now() + 3_000
    reply = stage.still.exchange(Exchange(holder=worker.holder, queues=("default",), want=1), now=now)
    claimed = [structs.replace(job, run_at=now) for job in reply.claimed]
    worker.dispatch(claimed, are_due=True)
    slow.has_begun()
