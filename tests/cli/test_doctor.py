"""doctor: each thing that may be wrong is found, with what to do about it."""

from __future__ import annotations

import json
import sqlite3

import msgspec
import pytest

from cli.processes import wait_until
from rota.store.contract import Node
from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.builders import a_job
from rota.testing.store_suite.steps import new_schedule


@pytest.fixture
def found(rota):
    """Examines, and answers the findings of one kind."""

    def examine(about: str, *words: str, code: int) -> list[tuple[str, str]]:
        rota("doctor", *words, code=code)
        checks = json.loads(rota("doctor", *words, "-o", "json", code=code).stdout)
        assert all(check["todo"] for check in checks if check["verdict"] != "ok")
        return [(check["verdict"], check["finding"]) for check in checks if check["about"] == about]

    return examine


def record_heartbeat(store, **more) -> None:
    facts = {"id": "n", "host": "h", "pid": 1, "roles": ("worker", "scheduler"), "queues": ("default",), "app": "app"}
    store.record_heartbeat(Node(**{**facts, **more}))


def test_all_is_well_where_a_node_runs(rota, started, store, monkeypatch):
    monkeypatch.setattr("rota.cli.checks.file_system_of", lambda _folder: "ext4")  # wherever the tests' files lie
    started("run", "jobs.py")
    wait_until(store.list_nodes)
    lines = rota("doctor", "--app", "jobs.py").stdout.splitlines()
    assert lines[-1] == "all is well"
    assert {line.split()[0] for line in lines[:-2]} == {"ok"}
    assert [line.split()[1] for line in lines[:-2]] == [
        "store", "file", "counters", "clock", "nodes", "queues", "tasks", "arguments",
        "schedules",
    ]  # fmt: skip


def test_a_store_that_is_not_there_is_a_problem(found, rota):
    ((verdict, finding),) = found("store", code=1)
    assert (verdict, "there is no store at" in finding) == ("problem", True)
    assert not (rota.folder / ".rota").exists()


def test_a_file_in_memory_is_a_warning(found, rota, monkeypatch):
    rota("migrate", "--store", "sqlite:///fleeting.db")
    monkeypatch.setattr("rota.cli.checks.file_system_of", lambda _folder: "tmpfs")
    checks = found("file", "--store", "sqlite:///fleeting.db", code=0)
    assert ("warning", f"{rota.folder}/fleeting.db is on tmpfs, which a restart empties") in checks


def test_a_file_that_others_may_open_is_a_warning(found, rota):
    rota("migrate", "--store", "sqlite:///open.db")
    rota.folder.chmod(0o755)
    (rota.folder / "open.db").chmod(0o644)
    checks = found("file", "--store", "sqlite:///open.db", code=0)
    assert ("warning", f"others than its owner may open {rota.folder}/open.db") in checks


def test_counters_that_are_off_are_a_problem(found, rota, store):
    rota.enqueue("greet", "ann")
    record_heartbeat(store, tasks=("jobs.greet",))
    assert found("counters", code=0) == [("ok", "they equal a fresh count")]
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE rota_count SET n = n + 2 WHERE name = 'queued'")
    connection.close()
    assert found("counters", code=1) == [("problem", "default/queued is off by +2")]


def test_counters_that_change_during_the_count_are_no_problem(found, rota, store, monkeypatch):
    rota.enqueue("greet", "ann")
    record_heartbeat(store, tasks=("jobs.greet",))
    recount = SqliteStore.recount

    def recount_beside_a_producer(self):
        counted = recount(self)
        self.add_jobs([a_job(task="jobs.greet")])
        return {"default/queued": -1, **counted}  # as a count that goes page by page and missed the new job

    monkeypatch.setattr(SqliteStore, "recount", recount_beside_a_producer)
    ((verdict, finding),) = found("counters", code=0)
    assert (verdict, finding.partition(";")[0]) == (
        "warning",
        "not compared: jobs were added or ended during each fresh count",
    )


def test_many_jobs_are_counted_only_when_it_is_asked_for(found, rota, store, monkeypatch):
    monkeypatch.setattr("rota.cli.checks.MOST_RECOUNTED", 1)
    for name in ("ann", "bob"):
        rota.enqueue("greet", name)
    record_heartbeat(store, tasks=("jobs.greet",))
    ((verdict, finding),) = found("counters", code=0)
    assert (verdict, finding.partition(";")[0]) == ("ok", "not compared: a fresh count would read all 2 jobs")
    assert found("counters", "--recount", code=0) == [("ok", "they equal a fresh count")]


def test_waiting_jobs_without_a_worker_are_a_problem(found, rota, store):
    rota.enqueue("send", "ann", "--in", "1h")
    record_heartbeat(store, tasks=("jobs.send",))
    assert found("queues", code=0) == [("warning", "queue mail has 1 waiting job and no live worker")]
    rota.enqueue("send", "bob")
    assert found("queues", code=1) == [("problem", "queue mail has 2 waiting jobs and no live worker")]
    record_heartbeat(store, queues=("mail",), tasks=("jobs.send",))
    rota("queues", "pause", "mail")
    assert found("queues", code=0) == [("warning", "queue mail has 2 waiting jobs and is paused")]


def test_a_task_that_no_live_worker_knows_is_a_problem(found, rota, store):
    rota.enqueue("greet", "ann")
    record_heartbeat(store, tasks=("jobs.divide",))
    assert found("tasks", code=1) == [
        ("problem", "no live worker knows jobs.greet, the task of waiting jobs"),
    ]
    record_heartbeat(store, tasks=("jobs.greet",))
    assert [verdict for verdict, _ in found("tasks", code=0)] == ["ok"]


def test_the_schedules_of_a_task_that_no_live_worker_knows_are_named(rota, store):
    rota.sync()
    for number in range(7):
        rota("schedules", "add", f"night{number}", "report", "--every", "1h", "--app", "jobs.py")
    rota("schedules", "run-now", "night0")
    record_heartbeat(store, tasks=("jobs.divide",))
    (fact,) = [one for one in json.loads(rota("doctor", "-o", "json", code=1).stdout) if one["about"] == "tasks"]
    named = "night0, schedule night1, schedule night2, schedule night3, schedule night4 and other schedules"
    assert fact["finding"] == f"no live worker knows jobs.report, the task of waiting jobs, schedule {named}"
    assert "`rota jobs cancel --where task:jobs.report`" in fact["todo"]
    assert "`rota schedules disable night0 night1 night2 night3 night4`" in fact["todo"]


def test_schedules_need_a_scheduler_and_a_rule_that_can_be_read(found, rota, store):
    rota.sync()
    assert found("schedules", code=1) == [("problem", "1 schedule on, and no live node that fires them")]
    record_heartbeat(store, tasks=("jobs.report",))
    assert found("schedules", code=0) == [("ok", "1 on, none broken")]
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE rota_schedule SET problem = 'no such zone' WHERE id = 'report'")
    connection.close()
    assert found("schedules", code=1) == [("problem", "report is broken: no such zone")]


def test_silent_nodes_and_mixed_versions_are_warnings(found, rota, store):
    rota("migrate")
    record_heartbeat(store, version="1")
    store.record_heartbeat(Node(id="old", host="h", pid=1, roles=("worker",)), now=store.now() - 60_000_000)
    assert found("nodes", code=0)[0] == ("warning", "old was heard of 60 s ago")
    record_heartbeat(store, id="m", version="2")
    assert ("warning", "app runs in versions 1 and 2 at once") in found("nodes", code=0)
    checks = found("nodes", "--app", "jobs.py", code=0)
    assert ("warning", "n runs app 1, the code here is (no version)") in checks


def test_many_schedules_are_read_in_pages_and_only_some_broken_ones_are_told(found, store):
    record_heartbeat(store, tasks=("mail.send",))
    edits = [new_schedule(f"s{number:04}", now=store.now()) for number in range(450)]
    edits = [
        msgspec.structs.replace(edit, after=msgspec.structs.replace(edit.after, problem="no such zone" * (number < 33)))
        for number, edit in enumerate(edits)
    ]
    assert store.edit_schedules(edits) == []
    checks = found("schedules", code=1)
    assert len(checks) == 21
    assert checks[0] == ("problem", "s0000 is broken: no such zone")
    assert checks[-1] == ("problem", "13 more are broken")
    assert found("tasks", code=1) == [("ok", "live workers know the task of every waiting job and schedule")]


def test_many_schedules_are_all_looked_at_only_when_it_is_asked_for(found, store, monkeypatch):
    monkeypatch.setattr("rota.cli.checks.MOST_SCHEDULES", 2)
    record_heartbeat(store, tasks=("noop",))
    store.edit_schedules([new_schedule(f"s{number}", task="noop") for number in range(3)])
    few = "2 on, none broken of the first 2; `rota doctor --recount` looks at all"
    assert found("schedules", code=0) == [("ok", few)]
    assert found("schedules", "--recount", code=0) == [("ok", "3 on, none broken")]
    record_heartbeat(store, roles=("worker",), tasks=("noop",))
    assert found("schedules", code=1) == [("problem", "at least 2 schedules on, and no live node that fires them")]
