"""rota documents: queues of rota.yaml run, listed, checked and explained."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
from contextlib import closing
from urllib.request import urlopen

import pytest

from processes import wait_until

SHOP = """
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rota import App
from rota.documents import DocumentQueue, MemorySource

app = App()
now = datetime.now(UTC)
orders = MemorySource([
    {"_id": 1, "sleepUntil": now + timedelta(days=1), "interval": "0 9 * * *"},
    {"_id": "two", "sleepUntil": now - timedelta(seconds=5)},
    {"_id": 3, "sleepUntil": None},
], name="orders")
odd = MemorySource([{"_id": 9, "sleepUntil": "tomorrow"}])
nothing = 5

def remind(document):
    Path("reminded.txt").write_text(str(document["_id"]))

@app.task
def bill(document): ...

bills = DocumentQueue(MemorySource([], name="bills"), print, app=app)
"""
YAML = "app: shop.py\ndocuments:\n  reminders: {source: 'shop:orders', handler: 'shop:remind'}\n"


@pytest.fixture
def shop(folder):
    (folder / "shop.py").write_text(SHOP)
    (folder / "rota.yaml").write_text(YAML)
    return folder


def test_queues_are_listed_with_their_documents_by_state(rota, shop):
    bills, reminders = rota.data("documents", "list")
    assert reminders == {
        "name": "reminders",
        "source": "shop:orders",
        "handler": "shop:remind",
        "origin": "rota.yaml:3",
        "states": {"waiting": 1, "due": 1, "running": 0, "retrying": 0, "done": 1},
        "more": [],
        "is_whole": True,
        "error": "",
    }
    assert (bills["name"], bills["origin"], bills["handler"]) == ("bills", "code", "builtins:print")
    assert "reminders" in rota("documents", "list").stdout
    assert not (shop / ".rota").exists()  # no store is made for it


@pytest.mark.usefixtures("shop")
def test_documents_of_a_queue_are_listed_by_state(rota):
    (due,) = rota.data("documents", "list", "reminders", "--state", "due")
    assert (due["id"], due["state"], due["failures"]) == ("two", "due", 0)
    lines = rota("documents", "list", "reminders").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["two", "due"], ["1", "waiting"], ["3", "done"]]
    assert (
        "no queue of documents is named 'x'; there are bills, reminders"
        in rota("documents", "list", "x", code=5).stderr
    )


@pytest.mark.usefixtures("shop")
def test_why_says_what_a_document_waits_for(rota):
    answer = rota("documents", "why", "reminders", "two").stdout
    assert "waits for a free slot" in answer
    assert "what to do: If no process runs the queue, start one: rota documents run reminders" in answer
    assert rota.data("documents", "why", "reminders", "1")["code"] == "waiting"
    assert "no document with the id '7'" in rota("documents", "why", "reminders", "7", code=5).stderr


def test_a_check_ends_with_1_if_documents_cannot_run(rota, shop):
    assert rota("documents", "check", "reminders", "--fix").stdout == "nothing is wrong with reminders\n"
    (shop / "rota.yaml").write_text(f"{YAML}  odd: {{source: 'shop:odd', handler: bill}}\n")
    assert "problem  odd: sleepUntil of 9 is 'tomorrow'" in rota("documents", "check", code=1).stdout


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("source: 'shop:orders', handler: nobody", "documents.d.handler: no task is named 'nobody'"),
        ("source: 'shop:orders', handler: 'shop:nobody'", "documents.d.handler: the module shop has no 'nobody'"),
        ("source: 'shop:orders', handler: 'shop:nothing'", "documents.d.handler: shop:nothing is 5, which is not a"),
        ("source: 'nowhere:x', handler: bill", "documents.d.source: nowhere cannot be imported: ModuleNotFoundError"),
        ("source: 'shop:nothing', handler: bill", "documents.d.source: shop:nothing is 5; wanted a source of docum"),
        ("source: 'ftp://x', collection: c, handler: bill", "documents.d.source: no source of documents has the schem"),
        (
            "source: 'mongodb://localhost', collection: c, handler: bill",
            "documents.d.source: mongodb://localhost names no database",
        ),
        (
            "source: 'mongodb://localhost/x', collection: c, fields: {interval: sleepUntil}, handler: bill",
            "documents.d.fields: two fields share the path 'sleepUntil'",
        ),
        ("source: 'shop:orders', handler: bill, lock_for: 0s", "documents.d.lock_for: got '0s'"),
    ],
)
def test_a_slip_is_one_error_with_its_line_and_key(rota, shop, said, words):
    (shop / "rota.yaml").write_text(f"app: shop.py\ndocuments:\n  d: {{{said}}}\n")
    assert f"rota.yaml:3: {words}" in rota("documents", "run", code=2).stderr


def test_a_project_without_queues_is_told_how_to_declare_one(rota):
    assert "`documents:` in rota.yaml declares them" in rota("documents", "run", code=2).stderr
    assert "`documents:` in rota.yaml declares them" in rota("documents", "list").stderr


def test_run_works_on_due_documents_until_a_signal(started, shop):
    process = started("documents", "run", "reminders")
    process.wait_for("document two of reminders is done")
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    assert (shop / "reminded.txt").read_text() == "two"


@pytest.mark.parametrize("command", [["run", "--processes", "0"], ["dev", "--port", "0"]], ids=["run", "dev"])
def test_run_and_dev_also_run_the_queues_of_the_project(started, shop, command):
    process = started(*command)
    assert "bills, reminders" in process.wait_for("documents ")
    wait_until(lambda: (shop / "reminded.txt").exists() and (shop / "reminded.txt").read_text() == "two")
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_run_leaves_them_out_on_a_word(started, shop):
    process = started("run", "--processes", "0", "--no-documents")
    process.wait_for("started:")
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    assert "bills" not in process.stderr
    assert not (shop / "reminded.txt").exists()


def test_a_queue_that_cannot_start_leaves_the_node_running(started, shop):
    (shop / "rota.yaml").write_text(YAML + "  bad: {source: 'shop:orders', handler: 'shop:nobody'}\n")
    process = started("run", "--processes", "0")
    assert "rota.yaml:4: documents.bad.handler: the module shop has no 'nobody'" in process.wait_for("bad does not run")
    wait_until((shop / "reminded.txt").exists)
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_run_serves_metrics_of_the_documents_it_ran(started, shop):
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    process = started("documents", "run", "reminders", "--metrics-port", str(port))
    process.wait_for("document two of reminders is done")
    process.wait_for("metrics are served at")

    def read(path):
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as reply:
            return reply.read().decode()

    wait_until(lambda: 'rota_documents_total{outcome="done",queue="reminders"} 1' in read("/metrics"))
    assert '"status":"ok"' in read("/live")
    assert '"loops":"ok"' in read("/ready")
    assert not (shop / ".rota").exists()  # no store is made for it
    process.signal(signal.SIGTERM)
    assert process.end() == 0


@pytest.mark.usefixtures("shop")
def test_one_document_is_shown(rota):
    assert rota.data("documents", "show", "reminders", "two")["state"] == "due"
    lines = rota("documents", "show", "reminders", "1").stdout.split()
    assert lines[:3] == ["1", "state", "waiting"]
    assert "0 9 * * *" in " ".join(lines)


def test_a_check_tells_what_cannot_be_loaded_or_reached_and_lint_what_cannot_be_loaded(rota, shop):
    (shop / "rota.yaml").write_text(
        YAML + "  bad: {source: 'nowhere:x', handler: 'shop:nobody'}\n"
        "  away: {source: 'sqlite:///none.db', collection: c, handler: bill}\n"
    )
    told = rota("documents", "check", "--fix", code=1).stdout
    assert "problem  bad: rota.yaml:4: documents.bad.source: nowhere cannot be imported" in told
    assert "problem  bad: rota.yaml:4: documents.bad.handler: the module shop has no 'nobody'" in told
    assert "→ name a function as module:name, or a task of the app" in told
    assert "problem  away: sqlite:///none.db c cannot be read" in told
    linted = [
        (one["about"], one["finding"])
        for one in json.loads(rota("lint", "-o", "json", code=1).stdout)
        if one["verdict"] == "problem"
    ]
    assert [about for about, _ in linted] == ["documents", "documents"]
    assert "documents.bad.handler: the module shop has no 'nobody'" in linted[1][1]
    assert not (shop / "none.db").exists()
    assert "cannot be read" in rota("documents", "list").stderr


def test_a_table_of_sqlite_is_a_queue_by_its_url(rota, folder):
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.execute(
            "CREATE TABLE orders (no INTEGER PRIMARY KEY, state TEXT, sleepUntil, interval, repeatUntil, autoRemove, "
            "lockedUntil, lockedBy)"
        )
        database.execute("INSERT INTO orders (no, state, sleepUntil) VALUES (7, 'open', '2020-01-01 09:00:00')")
        database.execute("INSERT INTO orders (no, state, sleepUntil) VALUES (8, 'paid', '2020-01-01 09:00:00')")
        database.commit()
    (folder / "shop.py").write_text("def remind(order): ...\n")
    (folder / "rota.yaml").write_text(
        "documents:\n  reminders: {source: 'sqlite:///shop.db', collection: orders, key: 'no',\n"
        "    handler: 'shop:remind', condition: {state: open}}\n"
    )
    assert [one["id"] for one in rota.data("documents", "list", "reminders")] == ["7"]
    rota("documents", "check", "--fix")
    assert rota.data("documents", "why", "reminders", "7")["code"] == "due"


IDLE = SHOP.replace("@app.task\n", "").replace("bills = DocumentQueue", "# ")


@pytest.mark.parametrize("command", [["run", "--processes", "0"], ["dev", "--port", "0"]], ids=["run", "dev"])
def test_an_app_without_a_task_runs_the_queues_of_the_project(started, shop, command):
    (shop / "shop.py").write_text(IDLE)
    process = started(*command)
    wait_until(lambda: (shop / "reminded.txt").exists() and (shop / "reminded.txt").read_text() == "two")
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_an_app_without_a_task_has_nothing_to_run_if_documents_are_left_out(rota, shop):
    (shop / "shop.py").write_text(IDLE)
    assert "has no task, so there is nothing to run" in rota("run", "--no-documents", code=3).stderr
    assert "nothing to run" not in rota("lint").stdout
