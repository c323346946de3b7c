"""B1-B20: what a task of a collection is, in which order tasks run, what they write, and how they are found again."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from rota import BadName, BadOption, SourceNotFound
from rota.app import internals
from rota.model.jobs.settle import settle
from rota.operations.collections import read_sources
from sources.stage import EVER, PATIENCE, stop


def test_b1_a_task_is_one_call_with_the_source_and_the_collection(stage):
    stage.run("orders")
    stage.work()
    assert stage.calls == [("shop", "orders")]


def test_b2_b4_a_task_is_json_with_its_source_and_collection(stage):
    task = stage.run("orders")
    said = stage.get(f"/tasks/{task.id}").json()
    assert (said["id"], said["source"], said["collection"]) == (task.id, "shop", "orders")
    assert set(said) == {
        *("id", "source", "collection", "priority", "created_at", "started_at", "finished_at", "status"),
        *("attempts", "error"),
    }


def test_b3_ids_are_the_names_and_a_uuid_whoever_starts_the_task(stage):
    by_hand = stage.run("customers")
    stage.tick()
    made = {task.id: task for task in stage.app.sources.tasks("shop").items}
    assert len(made) == 2
    for task in made.values():
        head, _, uuid = task.id.rpartition("_")
        assert head == f"shop_{task.collection}"
        assert str(UUID(uuid)) == uuid
    assert not made[by_hand.id].record.fire_at


def test_b5_a_priority_is_a_whole_number_from_1_and_1_where_none_is_said(stage):
    assert (stage.run("orders").priority, stage.run("customers").priority) == (5, 1)
    task = internals(stage.app).registry.get("sync")
    for wrong in (0, -1, 51, 1.5, True, "high", None):
        with pytest.raises(BadOption, match="priority"):
            stage.app.sources.declare("other", [{"name": "all", "priority": wrong}])(task)


def test_b6_b7_b8_times_are_there_once_they_have_come(stage, gate):
    stage.act = lambda *_: gate.wait(PATIENCE)
    before = datetime.now(UTC) - timedelta(minutes=5)  # a server's clock need not be ours
    task = stage.run()
    assert before < task.created_at
    said = stage.get(f"/tasks/{task.id}").json()
    assert (said["started_at"], said["finished_at"]) == ("", "")
    gate.set()
    stage.work()
    done = stage.task(task.id)
    assert done.created_at <= done.started_at <= done.finished_at


def test_b9_a_task_is_scheduled_then_running_then_a_success(stage):
    task = stage.run()
    assert task.status == "SCHEDULED"
    (job,) = stage.claim()
    assert (job.id, stage.task(task.id).status) == (task.id, "RUNNING")
    other = stage.run("customers")
    stage.work()
    assert stage.task(other.id).status == "SUCCESS"


def test_b9_what_fails_or_is_cancelled_has_failed_and_says_why(stage):
    stage.act = lambda *_: 1 / 0
    failed, cancelled = stage.run("orders"), stage.run("customers")
    stage.app.sources.cancel(cancelled.id, by="ann")
    stage.work()
    assert [stage.task(task.id).status for task in (failed, cancelled)] == ["FAILED", "FAILED"]
    assert stage.task(failed.id).error.startswith("ZeroDivisionError")
    assert stage.task(failed.id).attempts == 1
    assert stage.task(cancelled.id).error == "cancelled by ann"


def test_b9_a_task_that_waits_for_its_next_attempt_is_scheduled_and_keeps_its_collection(stage):
    stage.declare(["all"], "other", retries=2)
    stage.act = lambda *_: 1 / 0
    task = stage.run("all", "other")
    stage.work()
    assert (stage.task(task.id).status, stage.task(task.id).attempts) == ("SCHEDULED", 1)
    assert stage.run("all", "other").id == task.id


def test_b10_times_are_iso_in_utc(stage):
    task = stage.run()
    stage.work()
    said = stage.get(f"/tasks/{task.id}").json()
    for name in ("created_at", "started_at", "finished_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", said[name])
        assert datetime.fromisoformat(said[name]) == getattr(stage.task(task.id), name)


def test_b11_b12_the_higher_priority_is_first_and_what_is_started_by_hand_is_before_all_else(stage):
    stage.declare([{"name": name, "priority": level} for name, level in (("a", 1), ("b", 50), ("c", 1))], "other")
    at = stage.tick()  # orders (5) and customers (1), by their schedules
    for name in ("a", "b", "c"):
        stage.run(name, "other")
    order = [job.id.rpartition("_")[0] for job in stage.claim(at=at)]
    assert order == ["other_b", "other_a", "other_c", "shop_orders", "shop_customers"]


def test_b12_tasks_of_one_priority_run_in_the_order_of_their_making(stage):
    names = [f"c{number}" for number in range(30)]
    stage.declare(names, "other")
    shuffled = sorted(names, key=lambda name: hash(name) % 1009)
    for name in shuffled:
        stage.run(name, "other")
    assert [job.id.rpartition("_")[0] for job in stage.claim()] == [f"other_{name}" for name in shuffled]


def test_b13_b15_sixteen_tasks_run_at_once_each_in_a_thread(stage):
    names = [f"c{number}" for number in range(16)]
    stage.declare(names, "other")
    all_here, threads = threading.Barrier(16), set()

    def act(*_):
        all_here.wait(PATIENCE)
        threads.add(threading.get_ident())

    stage.act = act
    tasks = [stage.run(name, "other") for name in names]
    stage.work()
    assert {stage.task(task.id).status for task in tasks} == {"SUCCESS"}
    assert len(threads) == 16
    assert threading.get_ident() not in threads


def test_b14_whoever_pulls_a_task_has_it_running_in_the_same_step(stage):
    task = stage.run()
    assert [job.id for job in stage.claim()] == [task.id]
    found = stage.task(task.id)
    assert (found.status, found.started_at is not None) == ("RUNNING", True)
    assert stage.claim() == []


def test_b16_what_a_task_prints_and_logs_is_its_log(stage):
    def act(*_):
        print("to stdout")  # noqa: T201
        print("to stderr", file=sys.stderr)  # noqa: T201
        logging.getLogger("shop").warning("by logging")
        logging.getLogger("shop").error("an error")

    stage.act = act
    task = stage.run()
    stage.work()
    lines = [(line["message"], line["level"]) for line in stage.get(f"/tasks/{task.id}/logs").json()["logs"]]
    assert lines == [
        ("to stdout", "info"),
        ("to stderr", "error"),
        ("by logging", "warning"),
        ("an error", "error"),
    ]


def test_b17_lines_are_kept_in_order_and_identical_ones_are_all_there(stage):
    stage.act = lambda *_: [print(f"line {number // 2}") for number in range(450)]  # noqa: T201
    task, other = stage.run("orders"), stage.run("customers")
    stage.work()
    for one in (task, other):
        lines = stage.app.sources.logs(one.id)
        assert [line.text for line in lines] == [f"line {number // 2}" for number in range(450)]
        assert [line.at for line in lines] == sorted(line.at for line in lines)


def test_b17_logs_are_asked_for_by_time_both_ends_included(stage):
    gates = [threading.Event() for _ in range(2)]

    def act(*_):
        for number in range(3):
            print(number)  # noqa: T201
            gates[0].wait(0.002)  # so that each has a time of its own

    stage.act = act
    task = stage.run()
    stage.work()
    first, second, third = (line.at for line in stage.app.sources.logs(task.id))
    assert [line.text for line in stage.app.sources.logs(task.id, start=second, end=third)] == ["1", "2"]
    assert [line.text for line in stage.app.sources.logs(task.id, start=first, end=first)] == ["0"]
    said = stage.client.get(f"/tasks/{task.id}/logs", params={"start": second.isoformat()}).json()["logs"]
    assert [line["message"] for line in said] == ["1", "2"]


def test_b18_history_is_by_source_and_collection_newest_first_and_bounded_by_creation(stage):
    stage.declare(["orders"], "other")
    tasks = []
    for collection, source in (("orders", "shop"), ("customers", "shop"), ("orders", "other"), ("orders", "shop")):
        tasks.append(stage.run(collection, source))
        stage.work()
    ids = [task.id for task in tasks]
    listed = stage.app.sources.tasks
    assert [task.id for task in listed("shop").items] == [ids[3], ids[1], ids[0]]
    assert [task.id for task in listed("shop", "orders").items] == [ids[3], ids[0]]
    assert [task.id for task in listed("other").items] == [ids[2]]
    between = listed("shop", start=tasks[0].created_at, end=tasks[1].created_at)
    assert [task.id for task in between.items] == [ids[1], ids[0]]
    first = listed("shop", limit=2)
    assert [task.id for task in first.items] == [ids[3], ids[1]]
    assert [task.id for task in listed("shop", limit=2, cursor=first.cursor).items] == [ids[0]]
    with pytest.raises(SourceNotFound):
        listed("nowhere")


def test_b19_a_task_is_found_by_its_id_in_one_read(stage, monkeypatch):
    task, store, calls = stage.run(), stage.app.open(), []
    for name in ("get_jobs", "list_jobs", "list_schedules", "get_schedules", "list_entries"):
        monkeypatch.setattr(store, name, _counted(name, getattr(store, name), calls))
    assert stage.task(task.id).id == task.id
    assert calls == ["get_jobs"]


def test_b20_all_of_it_is_in_the_store(stage, make_app):
    task = stage.run()
    elsewhere = make_app()  # which declares nothing
    assert elsewhere.sources.task(task.id).status == "SCHEDULED"
    assert elsewhere.sources.run("shop", "orders").id == task.id
    assert [one.name for one in elsewhere.sources.get("shop").collections] == ["customers", "orders"]
    assert [source.name for source in elsewhere.sources.list()] == ["shop"]


def test_a_task_that_asks_to_be_cancelled_frees_its_collection(stage):
    stage.act = lambda *_: stop("nothing to do")
    task = stage.run()
    stage.work()
    assert (stage.task(task.id).status, stage.task(task.id).error) == ("FAILED", "nothing to do")
    assert not stage.run().existed


def test_a_running_task_is_cancelled_and_its_collection_is_free_again(stage):
    task = stage.run()
    (job,) = stage.claim()
    assert stage.app.sources.cancel(task.id, by="ann").status == "RUNNING"
    assert stage.run().id == task.id
    _end_as_asked(stage, job)
    assert stage.task(task.id).status == "FAILED"
    assert not stage.run().existed


def _end_as_asked(stage, job) -> None:
    from rota.model.jobs.outcome import Stopped  # noqa: PLC0415
    from rota.model.jobs.retry import RetryPolicy  # noqa: PLC0415
    from rota.store.contract import Exchange  # noqa: PLC0415

    store = stage.app.open()
    asked = store.get_jobs([job.id])[0]
    change = settle(asked, Stopped("cancelled by ann"), RetryPolicy(), store.now(), 0.5)
    assert not store.exchange(Exchange(holder="w", settled=[change])).refused


@pytest.mark.parametrize("name", ["", "a b", "a/b", "__", "a__b", "_a", "a_", "-a", "a.", "ä", "a" * 101, 5, None])
def test_names_that_no_id_can_be_made_of_are_refused(stage, name):
    task = internals(stage.app).registry.get("sync")
    with pytest.raises(BadName):
        stage.app.sources.declare(name, ["all"])(task)
    with pytest.raises((BadName, BadOption)):
        stage.app.sources.declare("fine", [name])(task)


def test_names_with_dots_dashes_and_underscores_stay_apart(stage):
    pairs = [("a_b", "c"), ("a", "b_c"), ("a.b", "c"), ("a", "b.c"), ("a-b", "c"), ("a", "b-c"), ("a", "b--c")]
    for source in {source for source, _ in pairs}:
        stage.declare([collection for other, collection in pairs if other == source], source)
    tasks = {pair: stage.run(pair[1], pair[0]) for pair in pairs}
    assert len({task.id for task in tasks.values()}) == len(pairs)
    for pair, task in tasks.items():
        assert not task.existed
        assert (stage.task(task.id).source, stage.task(task.id).collection) == pair
        assert [one.id for one in stage.app.sources.tasks(*pair).items] == [task.id]


def test_only_words_that_are_known_are_taken(stage):
    task = internals(stage.app).registry.get("sync")
    for collections, options in (
        (["all"], {"colections": 1}),
        ([{"name": "all", "shedule": "@hourly"}], {}),
        ([{"schedule": "@hourly"}], {}),
        ([], {}),
        ("all", {}),
        (["all", "all"], {}),
        ([{"name": "all", "schedule": 5}], {}),
        ([{"name": "all", "schedule": "not cron"}], {}),
        ([{"name": "all", "dialect": "quartz"}], {}),
        (["all"], {"keep": 0}),
        (["all"], {"retries": -1}),
    ):
        with pytest.raises(ValueError):
            stage.app.sources.declare("other", collections, **options)(task)
    for wrong in ({"other": {}}, {"other": {"task": 5}}, {"other": []}, {"other": {"task": "sync"}}):
        with pytest.raises(BadOption, match="other"):
            read_sources(wrong, internals(stage.app).registry)
    assert stage.get(f"/tasks?source=other&{EVER}").status_code == 404


def test_coroutines_have_the_same_verbs(stage):
    async def ask():
        sources = stage.app.aio.sources
        task = await sources.run("shop", "orders")
        assert (await sources.task(task.id)).id == task.id
        assert [one.id for one in (await sources.tasks("shop")).items] == [task.id]
        return await sources.cancel(task.id)

    assert asyncio.run(ask()).status == "FAILED"


def _counted(name, function, calls):
    def call(*args, **options):
        calls.append(name)
        return function(*args, **options)

    return call
