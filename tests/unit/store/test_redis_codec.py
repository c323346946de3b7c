"""The codec of the Redis store: what is packed is read back, and every index that a job leaves is updated."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from rota.model.jobs.job import Job, NewJob, State, accept, can_use_fast_path
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import apply, cancel, claim, promote, settle
from rota.model.schedules.schedule import LastRun
from rota.store.redis.codec import (
    UNKNOWN_LAST,
    UNTOUCHED,
    JobSnapshot,
    Lease,
    binary,
    claimed_job,
    encode,
    job_of,
    lease_of,
    pack_last,
    pack_plain_record,
    pack_record,
    pack_standing,
    standing_of,
    to_script,
    unreadable,
)
from rota.store.redis.indexes import index_commands, indexes_of
from rota.store.redis.scripts import script
from rota.store.shared.changing import Counts

NOW = 1_767_225_600_000_000
NEW = NewJob(
    id="a" * 28,
    task="mail.send",
    payload=b"\x00\xff",
    queue="mail",
    priority=-7,
    key="k",
    schedule_id="tick",
    fire_at=NOW,
    after_at=NOW - 1,
)


def lives() -> dict[str, Job]:
    """One job in every state."""
    queued = accept(NEW, NOW, 7)
    later = accept(msgspec.structs.replace(NEW, run_at=None, delay=5), NOW, 7)
    held = accept(msgspec.structs.replace(NEW, waits_for="b" * 28), NOW, 7)
    running = claim(queued, "worker|1", NOW + 1, NOW + 9)
    policy = RetryPolicy(retries=1)
    return {
        "queued": queued,
        "scheduled": later,
        "promoted": promote(later, NOW + 5),
        "held": held,
        "running": running,
        "succeeded": apply(settle(running, Succeeded(b"1"), policy, NOW + 2, 0.0)),
        "retrying": apply(settle(running, Failed("boom"), policy, NOW + 2, 0.0)),
        "failed": apply(settle(running, Failed("boom", may_retry=False), policy, NOW + 2, 0.0)),
        "cancelled": apply(cancel(held, NOW + 2, "no")),
    }


def snapshot_of(born: Job, **parts: bytes) -> JobSnapshot:
    """A job as the store has it: its record, and these parts."""
    kept = dict.fromkeys(JobSnapshot._fields) | {"record": b"%d" % born.seq + pack_record(born)} | parts
    return JobSnapshot(**kept)


@pytest.mark.parametrize("name", ["queued", "scheduled", "held"])
def test_a_new_job_is_its_record(name: str):
    job = lives()[name]
    assert job_of(job.id, snapshot_of(job)) == job


PLAIN = NewJob(id="c" * 28, task="mail.send", payload=b"\x00", queue="mail", priority=3)


@pytest.mark.parametrize(
    "new", [PLAIN, NEW, msgspec.structs.replace(PLAIN, delay=5), msgspec.structs.replace(PLAIN, key="k")]
)
def test_a_first_claim_is_what_the_model_makes_of_a_job(new: NewJob):
    job = accept(new, NOW, 7)
    waiting = job if job.state is State.QUEUED else promote(job, NOW + 5)
    if waiting is job:
        record = b"7" + pack_record(job)
        assert claimed_job(new.id, record, "w", NOW + 6, NOW + 9) == claim(job, "w", NOW + 6, NOW + 9)
    assert job_of(new.id, snapshot_of(job)) == job


def test_a_plain_request_is_packed_as_the_job_that_it_becomes():
    assert can_use_fast_path(PLAIN)
    assert pack_plain_record(PLAIN, NOW) == pack_record(accept(PLAIN, NOW))


def test_a_bare_end_is_read_back_whole():
    running = claim(accept(PLAIN, NOW, 7), "w", NOW + 1, NOW + 9)
    change = settle(running, Succeeded(b"1"), RetryPolicy(), NOW + 2, 0.0)
    ended = snapshot_of(accept(PLAIN, NOW, 7), end=pack_standing(change, change.job, "w"))
    assert job_of(PLAIN.id, ended) == apply(change)


@pytest.mark.parametrize("name", [name for name in lives() if name != "running"])
def test_what_became_of_a_job_is_read_back_whole(name: str):
    job = lives()[name]
    part = "end" if job.state.is_final else "standing"
    assert job_of(job.id, snapshot_of(lives()["queued"], **{part: standing_of(job)})) == job


def test_a_running_job_is_a_waiting_one_under_its_lease():
    job = lives()["running"]
    lease = Lease(job.started_at or 0, job.lease_until or 0, job.lease_no, job.holder or "")
    assert job_of(job.id, snapshot_of(lives()["queued"], lease=lease.packed().encode())) == job


def test_a_promoted_job_is_a_scheduled_one_with_the_time():
    job = lives()["promoted"]
    assert job_of(job.id, snapshot_of(lives()["scheduled"], ready_at=b"%d" % (job.queued_at or 0))) == job


def test_what_a_running_job_was_told_and_tells_is_part_of_it():
    job = lives()["running"]
    lease = Lease(job.started_at or 0, job.lease_until or 0, job.lease_no, job.holder or "").packed().encode()
    seen = job_of(job.id, snapshot_of(lives()["queued"], lease=lease, cancel="genug ☕".encode(), progress=b"1/2"))
    assert seen == msgspec.structs.replace(job, cancel_reason="genug ☕", progress="1/2")


@pytest.mark.parametrize("record", [b"", b"7", b"7|0", b"7|0|", b"7|0|\xc1", b"7|0|\x90", b"x|y|z"])
def test_a_record_that_cannot_be_read_is_shown_with_the_reason(record: bytes):
    job = job_of("a", JobSnapshot(record, None, None, None, None, None))
    assert (job.id, job.state) == ("a", State.FAILED)
    assert "cannot be read" in (job.error or "")


def test_a_lease_is_read_back_whole_whatever_its_holder_is_called():
    lease = Lease(NOW, NOW + 30, 12, "a|b|c ☕")
    assert lease_of(lease.packed().encode()) == lease


@pytest.mark.parametrize(("before", "after"), list(product(lives(), repeat=2)))
def test_a_move_leaves_a_job_where_it_stands_and_nowhere_else(before: str, after: str):
    old, new = lives()[before], lives()[after]
    sets = placed(old)
    for command, key, *rest in index_commands(old.id, old, new):
        if key.startswith("priorities:"):
            continue
        if command == "ZREM":
            del sets[key]
        else:
            sets[key] = {rest[-1]: rest[-2]}
    assert sets == placed(new)


def placed(job: Job) -> dict[str, dict[str, int]]:
    """The indexes of a job, with its score in each."""
    return {key: {job.id: job.seq if score is None else score} for key, score in indexes_of(job).items()}


@pytest.mark.parametrize("name", lives())
def test_a_job_that_goes_is_taken_out_of_every_set(name: str):
    job = lives()[name]
    left = [key for _, key, _ in index_commands(job.id, job, None)]
    assert sorted(left) == sorted(indexes_of(job))


def test_an_end_is_counted_for_ever_and_a_removal_only_now():
    jobs = lives()
    counts = Counts()
    counts.change(None, jobs["running"])
    counts.change(jobs["running"], jobs["succeeded"])
    counts.change(jobs["succeeded"], None)
    assert counts.info("mail", is_paused=False, oldest_at=None).totals == {"succeeded": 1}
    assert counts.info("mail", is_paused=False, oldest_at=None).counts == {}


def test_only_what_a_rule_has_set_of_a_last_run_is_written():
    told = msgspec.structs.replace(UNKNOWN_LAST, status="failed", error=None)
    assert pack_last(told)[::2] == ["status", "error"]
    assert pack_last(UNKNOWN_LAST) == []
    assert {getattr(UNKNOWN_LAST, name) for name in LastRun.__struct_fields__} == {UNTOUCHED}


@pytest.mark.parametrize("size", [0, 1, 31, 255, 65_535, 65_536, 100_000])
def test_bytes_travel_as_text_of_their_length(size: int):
    data = b"\xff" * size
    head = encode(binary(data)).removesuffix(data)
    assert int.from_bytes(head[1:], "big") == size


def test_nothing_is_told_as_false_and_bytes_as_text_at_every_depth():
    assert to_script([None, "a", (1, None)]) == [False, "a", [1, False]]
    assert encode(to_script([[b"\xff"]])) == b"\x91\x91\xda\x00\x01\xff"


def test_a_script_is_known_by_the_digest_of_what_is_sent():
    first = script("exchange")
    assert script("exchange") is first
    assert first.source.startswith("-- What every script begins with")
    assert len({script(name).digest for name in ("add", "exchange", "commit", "read")}) == 4


def test_a_job_without_a_record_says_that_there_is_none():
    for record in (None, b""):
        job = unreadable("gone", record, AttributeError("'NoneType' object has no attribute 'split'"))
        assert job.error == "the stored job cannot be read: Redis has no record of it any more"
    assert "torn" in unreadable("torn", b"1|0|x", ValueError("torn")).error
