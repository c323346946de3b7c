"""stats, health and prune."""

from __future__ import annotations

import sqlite3

from rota.model.audit_record import AuditRecord
from rota.model.micros import SECOND
from rota.store.contract import Node


def test_stats_count_jobs_nodes_and_schedules(rota, store):
    rota.sync()
    rota.enqueue("divide", "1", "0")
    rota.work()
    rota.enqueue("send", "ann")
    rota.enqueue("send", "bob", "--in", "1h")
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), concurrency=4, running=1))
    store.record_heartbeat(Node(id="old", host="h", pid=1, roles=("worker",)), now=store.now() - 60 * SECOND)
    facts = rota.data("stats")
    assert facts["jobs"] == {
        "queued": 1, "running": 0, "scheduled": 1, "held": 0, "succeeded": 0, "failed": 1, "cancelled": 0
    }  # fmt: skip
    assert facts["totals"] == {"succeeded": 0, "failed": 1, "cancelled": 0}
    assert {queue["name"]: queue["counts"].get("queued", 0) for queue in facts["queues"]} == {"default": 0, "mail": 1}
    assert facts["nodes"] == {"alive": 1, "silent": 1}
    assert facts["schedules"] == {"on": 1, "paused": 0, "disabled": 1, "retired": 0, "finished": 0, "broken": 0}
    assert facts["oldest_queue"] == "mail"
    text = rota("stats").stdout
    assert "all           1        0          1          0       1          0" in text
    assert "1 alive and 1 silent; running 1 of at most 4 jobs" in text
    assert "1 on and 1 disabled" in text
    assert ", in queue mail" in text


def test_stats_of_a_new_store(rota):
    rota("migrate")
    text = rota("stats").stdout
    assert "nothing waits" in text
    assert "none; `rota run TARGET` starts one" in text


def test_a_store_that_answers_is_healthy(rota):
    rota("migrate")
    assert rota("health").stdout == f"healthy: sqlite file {rota.folder}/.rota/rota.db answers\n"
    assert rota.data("health")["status"] == "ok"


def test_health_with_live_wants_a_fresh_beat(rota, store):
    assert "no node is running" in rota("health", "--live", code=1).stdout
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",)), now=store.now() - 30 * SECOND)
    assert "no node was heard of since 30 s ago" in rota("health", "--live", code=1).stdout
    store.record_heartbeat(Node(id="m", host="h", pid=1, roles=("scheduler",)))
    assert "healthy: 1 node alive" in rota("health", "--live").stdout


def test_health_says_why_not_and_changes_nothing(rota):
    assert "there is no store at" in rota("health", code=1).stdout
    assert not (rota.folder / ".rota").exists()
    sqlite3.connect("empty.db").execute("CREATE TABLE t (x)").connection.close()
    assert "`rota migrate` brings" in rota("health", "--store", "sqlite:///empty.db", code=1).stdout
    (rota.folder / "text.db").write_text("no database" * 100)
    assert "not a SQLite database" in rota("health", "--store", "sqlite:///text.db", code=1).stdout
    assert "one process" in rota("health", "--store", "memory://", code=1).stdout


def test_prune_removes_all_that_was_kept_long_enough(rota, store):
    rota.enqueue("greet", "ann")
    rota.enqueue("divide", "1", "0")
    rota.work()
    short = "from rota.store.contract import Retention\n" + (rota.folder / "jobs.py").read_text()
    (rota.folder / "jobs.py").write_text(short.replace("App()", "App(retention=Retention(succeeded_for=0))"))
    store.record_heartbeat(Node(id="old", host="h", pid=1, roles=("worker",)), now=store.now() - 7200 * SECOND)
    old = store.now() - 500 * 86_400 * SECOND
    store.add_audit_records(
        [AuditRecord(id=f"a{n}", at=old + n, by="ann", verb="paused", subject="x") for n in range(3)]
    )
    assert rota("prune", "--defaults").stdout == "removed 1 silent node and 3 audit records\n"
    assert rota("prune", "--app", "jobs.py").stdout == "removed 1 job\n"
    assert [job["task"] for job in rota.data("jobs", "list")] == ["jobs.divide"]
    assert rota.data("prune", "--app", "jobs.py") == {"jobs": 0, "occurrences": 0, "nodes": 0, "audit_records": 0}
    assert "nothing was kept long enough" in rota("prune", "--defaults").stdout


def test_prune_does_not_guess_how_long_things_are_kept(rota):
    rota("migrate")
    (rota.folder / "rota.yaml").write_text("lease: 20s\n")
    said = rota("prune", code=2).stderr
    assert "--app or ROTA_APP, write `retention` into rota.yaml, or take what App() keeps with --defaults" in said


def test_prune_needs_no_app_where_the_settings_say_how_long_things_are_kept(rota):
    rota.enqueue("greet", "ann")
    rota.work()  # the older of the two, whichever thread is quicker
    rota.enqueue("divide", "1", "0")
    rota.work()
    (rota.folder / "rota.yaml").write_text("retention:\n  most_finished: 1\n")
    assert rota("prune").stdout == "removed 1 job\n"
    assert [job["task"] for job in rota.data("jobs", "list")] == ["jobs.divide"]
    assert "nothing was kept long enough" in rota("prune", env={"ROTA_RETENTION_MOST_FINISHED": "5"}).stdout


def test_ready_wants_a_worker_for_each_queue_that_waits_and_a_scheduler_for_schedules(rota, store):
    assert "no node is running" in rota("health", "--ready", code=1).stdout
    rota.sync()
    rota.enqueue("send", "ann")
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), queues=("default",)))
    assert rota("health", "--live").stdout.startswith("healthy: 1 node alive")
    said = rota("health", "--ready", code=1).stdout
    assert "no live worker takes queue mail and no live node fires schedules; `rota nodes list`" in said
    store.record_heartbeat(Node(id="s", host="h", pid=1, roles=("scheduler",)))
    assert "fires schedules" not in rota("health", "--ready", code=1).stdout
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), queues=("default", "mail")))
    assert rota("health", "--ready").stdout == "healthy: 2 nodes alive, heard of now, ready\n"


def test_a_paused_queue_keeps_nobody_from_being_ready(rota, store):
    rota.enqueue("send", "ann")
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), queues=("default",)))
    rota("health", "--ready", code=1)
    rota("queues", "pause", "mail")
    assert rota.data("health", "--ready")["checks"] == dict.fromkeys(["store", "nodes", "queues", "schedules"], "ok")
