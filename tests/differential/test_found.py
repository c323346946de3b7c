"""What the comparison found: each difference as the few steps that show it, on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from every_store import DURABLE, fresh_place
from rota.errors import StoreSealed
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Returned, Succeeded
from rota.model.jobs.settle import cancel, retry_by_hand, settle
from rota.model.schedules.edit import pause, resume
from rota.store.contract import Added, Exchange, JobFilter, Refusal, Seal
from rota.testing.store_suite.builders import MINUTE, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    ledger,
    planned,
    read,
    read_schedule,
    settle_job,
    succeed,
)


@pytest.fixture(params=["memory", *DURABLE])
def store(request, tmp_path):
    with fresh_place(request.param, tmp_path).opened() as store:
        yield store
        check_store(store)


def occurrences(store):
    """The jobs that the schedule made, oldest first."""
    return all_jobs(store, JobFilter(schedule_id="tick"))[::-1]


def cancel_by_hand(store, job, now):
    assert store.change_jobs([cancel(job, now, "by hand")], now=now) == []


def test_a_job_that_ran_and_went_back_into_the_line_is_no_skipped_link_of_a_chain(store):
    """Cancelled then, it lets the next one go, whatever became of the one that it had once waited for."""
    add_schedule(store, overlap="queue")
    fire(store, now=T0 + MINUTE)
    fire(store, now=T0 + 2 * MINUTE)
    first, second = occurrences(store)
    now = T0 + 2 * MINUTE
    cancel_by_hand(store, first, now)
    assert store.change_jobs([retry_by_hand(read(store, first.id), now, "by hand")], now=now) == []
    _, second = claim(store, 2, now=now)
    settle_job(store, second, Returned(), now=now)
    now = T0 + 3 * MINUTE
    fire(store, now=now)
    third = occurrences(store)[-1]
    assert (third.state, third.waits_for) == (State.HELD, second.id)
    cancel_by_hand(store, read(store, second.id), now)
    assert read(store, third.id).state is State.QUEUED


def test_a_held_job_cancelled_on_an_old_view_still_hands_on_what_it_waits_for(store):
    """Its predecessor was cancelled after the look: who waits behind it must wait for the one that is live."""
    add_schedule(store, overlap="queue", catchup="all", catchup_limit=4)
    now = T0 + 4 * MINUTE + 1
    fire(store, now=now)
    live, second, third, last = occurrences(store)
    assert [job.waits_for for job in (second, third, last)] == [live.id, second.id, third.id]
    cancel_by_hand(store, second, now)
    assert store.delete_jobs([second.id], now=now) == [second.id]
    cancel_by_hand(store, third, now)  # as it was before its predecessor was cancelled
    kept = read(store, last.id)
    assert (kept.state, kept.waits_for) == (State.HELD, live.id)


@pytest.mark.parametrize("is_occurrence", [False, True])
def test_a_report_told_twice_in_one_call_counts_once_though_others_wait_for_the_job(store, is_occurrence):
    if is_occurrence:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
    else:
        add_job(store)
    job = claim_one(store, now=T0 + MINUTE)
    waiting = add_job(store, waits_for=job.id)
    report = settle(job, Succeeded(b"1"), a_policy(), T0 + MINUTE, 0.0)
    reply = store.exchange(Exchange(holder=WORKER, settled=[report, report]), now=T0 + MINUTE)
    assert reply.refused == [Refusal(job.id, "lease")]
    assert (read(store, job.id).state, read(store, waiting).state) == (State.SUCCEEDED, State.QUEUED)


def test_two_edits_of_one_version_in_one_call_make_one(store):
    add_schedule(store)
    now = T0 + MINUTE
    fire(store, now=now)  # a waiting job, which the first of them revokes
    schedule = read_schedule(store)
    edits = [pause(schedule, now, reason=reason, by="ann", until=None) for reason in ("first", "second")]
    assert store.edit_schedules(edits, now=now) == [schedule.id]
    kept = read_schedule(store)
    assert (kept.version, kept.pause.reason) == (schedule.version + 1, "first")


def test_a_job_given_twice_in_one_call_is_made_once(store):
    job = a_job()
    assert store.add_jobs([job, job], now=T0) == [Added(job.id), Added(job.id, existed=True)]


def test_a_dump_in_small_pages_gives_the_lines_of_every_schedule(store):
    names = [f"s{number}" for number in range(6)]
    for name in names:
        add_schedule(store, name, catchup="skip")
        fire(store, name, now=T0 + 3 * MINUTE)  # two were missed, which is one line
    lines, cursor = [], None
    while cursor is not None or not lines:
        page = store.dump("occurrences", cursor=cursor, limit=2)
        lines += page.items
        cursor = page.cursor
    assert [line.schedule_id for line in lines] == names


def test_what_a_pause_revokes_is_not_the_last_run(store):
    """The last run is what a worker made of it; nobody has started what is revoked."""
    add_schedule(store)
    fire(store, now=T0 + MINUTE)
    succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
    fire(store, now=T0 + 2 * MINUTE)
    now = T0 + 2 * MINUTE + 1
    paused = change_schedule(store, pause(read_schedule(store), now, reason="rest", by="ann", until=None), now=now)
    assert [job.state for job in occurrences(store)] == [State.SUCCEEDED, State.CANCELLED]
    assert (paused.last.status, paused.last.finished_at) == ("succeeded", T0 + MINUTE)


def test_jobs_of_one_call_of_fire_stand_in_the_order_given(store):
    """As those of one call of add_jobs do, whatever each of the schedules needs."""
    add_schedule(store, "many", overlap="cancel", grace=5 * MINUTE)
    add_schedule(store, "one", overlap="cancel", grace=0)
    now = T0 + 2 * MINUTE
    firings = [planned(store, name, now=now) for name in ("many", "one")]
    made = [job for fired in store.fire(firings, now=now) for job in fired.jobs]
    assert [job.id for job in all_jobs(store)][::-1] == made


def test_a_sealed_store_refuses_to_delete_even_what_is_not_there(store):
    store.seal(Seal(target="another"))
    with pytest.raises(StoreSealed):
        store.delete_jobs(["nobody"], now=T0)
    store.seal(None)


def test_no_job_is_claimed_before_it_was_made(store):
    """Workers that settle and claim while others enqueue: what they take last was made after their calls began."""
    callers, workers, number = 3, 4, 100
    claimed = []

    def enqueue():
        for _ in range(number):
            store.add_jobs([a_job()])

    def work(holder):
        last = []
        while len(claimed) < callers * number:
            reports = [settle(job, Succeeded(), a_policy(), store.now(), 0.0) for job in last]
            last = store.exchange(Exchange(holder=holder, settled=reports, want=5)).claimed
            claimed.extend(last)

    with ThreadPoolExecutor(callers + workers) as pool:
        doing = [pool.submit(enqueue) for _ in range(callers)] + [pool.submit(work, f"w{n}") for n in range(workers)]
    assert [future.exception() for future in doing] == [None] * len(doing)
    assert [(job.created_at, job.started_at) for job in claimed if job.started_at < job.created_at] == []


def test_a_job_cancelled_ahead_of_its_time_stays_in_the_ledger_beside_the_skips_of_that_time(store):
    """The schedule is paused after it, so that a range of skips covers the time of the job."""
    add_schedule(store, lookahead=10 * MINUTE)
    fire(store, now=T0)
    chosen = occurrences(store)[2]
    cancel_by_hand(store, chosen, T0 + 1)
    change_schedule(store, pause(read_schedule(store), T0 + 2, reason="rest", by="", until=None), now=T0 + 2)
    now = T0 + 20 * MINUTE
    change_schedule(store, resume(read_schedule(store), now), now=now)
    shown = [entry.outcome for entry in ledger(store) if entry.through_at == chosen.fire_at]
    assert shown == ["cancelled"]
    assert max(entry.through_at for entry in ledger(store)) > chosen.fire_at
    assert store.delete_jobs([chosen.id], now=now) == [chosen.id]
    assert [entry.outcome for entry in ledger(store) if entry.through_at == chosen.fire_at] == ["cancelled"]
