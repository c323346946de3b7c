"""queues, nodes and migrate."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from cli.processes import wait_until
from rota.store.contract import Node


def test_queues_in_numbers(rota):
    rota.enqueue("send", "ann")
    rota.enqueue("send", "bob", "--in", "1h")
    rota.enqueue("divide", "1", "0")
    queues = {queue["name"]: queue for queue in rota.data("queues", "list")}
    counts = queues["mail"]["counts"]
    assert (counts["queued"], counts["scheduled"], counts["running"], queues["mail"]["state"]) == (1, 1, 0, "open")
    rota.work()
    queues = {queue["name"]: queue for queue in rota.data("queues", "list")}
    assert (queues["mail"]["totals"]["succeeded"], queues["default"]["totals"]["failed"]) == (1, 1)
    lines = rota("queues", "list").stdout.splitlines()
    assert lines[0].split()[:3] == ["queue", "state", "queued"]


def test_a_paused_queue_keeps_its_jobs(rota):
    rota.enqueue("send", "ann")
    assert (
        rota("queues", "pause", "mail", "new").stderr == "paused queue mail\npaused queue new\n"
        "warning: no job, worker or task has used a queue new yet; it stays paused for the first job\n"
    )
    rota.work()
    mail = next(queue for queue in rota.data("queues", "list") if queue["name"] == "mail")
    assert (mail["state"], mail["counts"]["queued"]) == ("paused", 1)
    assert rota("queues", "resume", "mail").stderr == "resumed queue mail\n"
    rota.work()
    assert rota.data("jobs", "list", "--where", "queue:mail")[0]["state"] == "succeeded"


def test_a_queue_name_is_checked(rota):
    rota("migrate")
    assert "queue name 'a b'" in rota("queues", "pause", "a b", code=2).stderr


def test_nodes_are_alive_or_silent(rota, started, store):
    started("worker", "jobs.py", "-c", "3")
    wait_until(store.list_nodes)
    store.record_heartbeat(
        Node(id="old", host="h", pid=1, roles=("scheduler",), started_at=1), now=store.now() - 60_000_000
    )
    nodes = {node["state"]: node for node in rota.data("nodes", "list")}
    assert nodes["silent"]["id"] == "old"
    assert (nodes["alive"]["concurrency"], nodes["alive"]["queues"]) == (3, ["default", "mail"])
    text = rota("nodes", "list").stdout
    assert "0 of 3" in text
    assert "60 s ago" in text


def test_a_silent_node_runs_nothing(rota, store):
    gone = Node(id="gone", host="h", pid=1, roles=("worker",), concurrency=16, running=2, started_at=1)
    store.record_heartbeat(gone, now=store.now() - 60_000_000)
    (facts,) = rota.data("nodes", "list")
    assert (facts["state"], facts["running"], facts["concurrency"]) == ("silent", 0, 16)
    assert "of 16" not in rota("nodes", "list").stdout


def test_a_draining_node_says_so_while_it_is_alive(rota, store):
    for name, ago in (("here", 0), ("gone", 60_000_000)):
        record = Node(id=name, host="h", pid=1, roles=("worker",), is_draining=True, started_at=1)
        store.record_heartbeat(record, now=store.now() - ago)
    facts = {node["id"]: (node["state"], node["is_draining"]) for node in rota.data("nodes", "list")}
    assert facts == {"here": ("alive", True), "gone": ("silent", True)}
    states = dict(line.split()[:2] for line in rota("nodes", "list").stdout.splitlines())
    assert (states["here"], states["gone"]) == ("draining", "silent")


def test_a_store_without_nodes_says_how_to_start_one(rota):
    rota("migrate")
    assert rota("nodes", "list").stderr == "no node is running; `rota run TARGET` starts one\n"


def test_migrate_makes_the_tables_once(rota):
    plan = rota("migrate", "--plan")
    assert "CREATE TABLE rota_job" in plan.stdout
    assert "nothing was changed" in plan.stderr
    assert not (rota.folder / ".rota").exists()
    assert "is up to date now: 2 steps done" in rota("migrate").stderr
    assert "there is nothing to do" in rota("migrate").stderr
    assert rota("migrate", "--plan").stdout == ""


def test_asking_what_migrate_would_do_changes_nothing_of_a_file_that_is_not_ours(rota):
    file = rota.folder / "theirs.db"
    with closing(sqlite3.connect(file)) as theirs:
        theirs.execute("CREATE TABLE note (text)")
        theirs.commit()
    before = file.read_bytes()
    assert "CREATE TABLE rota_job" in rota("migrate", "--plan", "--store", f"sqlite:///{file}").stdout
    assert file.read_bytes() == before
    assert sorted(path.name for path in rota.folder.glob("theirs*")) == ["theirs.db"]


def test_migrate_uses_the_namespace_and_the_store_of_the_app(rota):
    (rota.folder / "own.py").write_text("from rota import App\napp = App('sqlite:///own.db', namespace='shop')\n")
    assert "CREATE TABLE shop_job" in rota("migrate", "--plan", "--app", "own.py", "--store", "sqlite:///x.db").stdout
    assert "CREATE TABLE shop_job" in rota("migrate", "--plan", "--app", "own.py").stdout
    assert "is up to date now: 2 steps done" in rota("migrate", "--app", "own.py").stderr
    with sqlite3.connect(rota.folder / "own.db") as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    connection.close()
    assert "shop_job" in names


def test_a_store_of_a_newer_rota_is_left_alone(rota):
    rota("migrate")
    connection = sqlite3.connect(rota.folder / ".rota" / "rota.db")
    connection.execute("UPDATE rota_meta SET value = '99' WHERE name = 'version'")
    connection.commit()
    connection.close()
    said = rota("migrate", code=4).stderr
    assert "schema version 99" in said
    assert "install the newer Rota" in said


def test_a_misspelt_queue_is_paused_with_a_warning_that_names_the_right_one(rota, monkeypatch):
    monkeypatch.setenv("ROTA_APP", "jobs.py")
    rota("migrate")
    said = rota("queues", "pause", "mial").stderr
    assert "did you mean mail? `rota queues resume mial` takes this back" in said.replace("\n", " ")
    assert "warning" not in rota("queues", "pause", "mail").stderr  # a task names it


def test_a_queue_that_was_never_there_is_not_resumed(rota, monkeypatch):
    monkeypatch.setenv("ROTA_APP", "jobs.py")
    rota("migrate")
    said = rota("queues", "resume", "mial").stderr.replace("\n", " ")
    assert said == "warning: no job, worker or task has used a queue mial, and it is not paused; did you mean mail? "


def test_why_says_for_which_reason_a_queue_is_paused(rota):
    job_id = rota.enqueue("send", "ann")
    rota("queues", "pause", "mail", "--reason", "the relay is down.")
    assert "in the queue mail, which is paused: the relay is down. It has been" in rota.data("why", job_id)["sentence"]
    rota("queues", "resume", "mail")
    rota("queues", "pause", "mail")
    assert "in the queue mail, which is paused. It has been" in rota.data("why", job_id)["sentence"]


def test_audit_records_of_jobs_and_tokens_are_words(rota):
    job_id = rota.enqueue("divide", "1", "0")
    rota.work()
    rota("jobs", "retry", job_id, "--reason", "again")
    rota("jobs", "cancel", job_id, "--by", "ann")
    rota("jobs", "delete", job_id)
    rota("token", "create", "--name", "ci", "--ttl", "1h")
    rota("token", "revoke", rota.data("token", "list")[0]["id"])
    says = {one["verb"]: one["says"] for one in rota.data("schedules", "changes") if one["kind"] in {"job", "token"}}
    assert says["retried"] == ["state before: failed", "task: jobs.divide", "reason: again"]
    assert says["cancelled"] == ["state before: queued", "task: jobs.divide", "reason: cancelled by ann"]
    assert says["deleted"] == ["state: cancelled", "task: jobs.divide"]
    assert says["revoked"] == says["created"]
    assert any(re.fullmatch(r"expires: \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", line) for line in says["revoked"])
