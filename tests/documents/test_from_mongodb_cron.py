"""The behaviours that users of mongodb-cron rely on, and those that they wish for. A null time is the one difference:
there it means "now", here "done"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from mongo_stage import MongoStage, aware

from rota.documents import DocumentQueue, Fields, MongoSource
from rota.testing.document_suite.stage import wait_for


@pytest.fixture
def jobs():
    return MongoStage("mongo", "jobs").collection


@pytest.fixture(params=[Fields(), Fields.four()], ids=["lock-fields", "four-fields"])
def fields(request):
    return request.param


def now():
    return datetime.now(UTC)


def run(source, fact, on_document=lambda _document: None, **options):
    with DocumentQueue(source, on_document, **options) as queue:
        queue.wake()
        wait_for(lambda: fact() and queue.is_idle)


def test_documents_with_a_time_are_processed(jobs, fields):
    jobs.insert_many([{"sleepUntil": now()} for _ in range(3)] + [{"other": 1}])
    run(MongoSource(jobs, fields=fields), lambda: jobs.count_documents({"sleepUntil": {"$type": "date"}}) == 0)
    assert jobs.count_documents({"sleepUntil": {"$exists": False}}) == 1


def test_a_condition_filters_what_is_locked(jobs, fields):
    jobs.insert_many([{"_id": 1, "handle": True, "sleepUntil": now()}, {"_id": 2, "sleepUntil": now()}])
    seen = []
    source = MongoSource(jobs, fields=fields, condition={"handle": True})
    run(source, lambda: seen, lambda one: seen.append(one["_id"]))
    assert seen == [1]


def test_a_deferred_document_runs_at_its_time_and_not_before(jobs, fields):
    due = now() + timedelta(milliseconds=1500)
    ran = []
    jobs.insert_one({"sleepUntil": due})
    run(MongoSource(jobs, fields=fields), lambda: ran, lambda _one: ran.append(now()))
    assert ran[0] >= due - timedelta(milliseconds=2)  # a date of MongoDB has milliseconds


def test_a_recurring_document_repeats_and_ends_at_repeat_until(jobs, fields):
    end = (now() + timedelta(seconds=3)).replace(microsecond=0)
    ran = []
    jobs.insert_one({"sleepUntil": now(), "interval": "* * * * * *", "repeatUntil": end})
    source = MongoSource(jobs, fields=fields)
    run(source, lambda: jobs.count_documents({"sleepUntil": None}) == 1, lambda _one: ran.append(source.now()))
    assert ran
    assert all(at <= end.timestamp() * 1e6 for at in ran)


def test_a_document_that_removes_itself_is_deleted(jobs, fields):
    jobs.insert_one({"sleepUntil": now(), "autoRemove": True})
    run(MongoSource(jobs, fields=fields), lambda: jobs.count_documents({}) == 0)


def test_a_recurring_document_without_a_time_waits_for_its_first_one(jobs, fields):
    later = (now() + timedelta(hours=1)).replace(microsecond=0)
    jobs.insert_one({"interval": f"{later.second} {later.minute} {later.hour} * * *"})
    ran = []
    run(MongoSource(jobs, fields=fields), lambda: "sleepUntil" in jobs.find_one(), ran.append)
    assert ran == []
    assert aware(jobs.find_one()["sleepUntil"]) == later


def test_a_document_returns_to_its_rhythm(jobs, fields):
    due = now().replace(microsecond=0)
    rule = f"{due.second} {due.minute} {due.hour} {due.day} {due.month} *"
    ran = []
    jobs.insert_one({"sleepUntil": due, "interval": rule})
    run(MongoSource(jobs, fields=fields), lambda: ran, ran.append)
    assert len(ran) == 1
    assert aware(jobs.find_one()["sleepUntil"]) == due.replace(year=due.year + 1)


def test_the_handler_sees_the_time_for_which_it_runs(jobs, fields):
    due = (now() - timedelta(hours=1)).replace(microsecond=0)
    seen = []
    jobs.insert_one({"sleepUntil": due})
    run(MongoSource(jobs, fields=fields), lambda: seen, lambda one: seen.append(aware(one["sleepUntil"])))
    assert seen == [due]
