"""rota copy: what it says, how it ends, and what it leaves."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sqlite3
from contextlib import closing

import pytest

from cli.processes import wait_until
from every_store import SERVED, fresh_place
from rota.cli.copy import CopyFacts, _lines
from rota.cli.copy_progress import Lines, words
from rota.errors import StoreUnavailable
from rota.model.entry import EntryEdit
from rota.model.secrets.masking import masked
from rota.operations.copy import Step, move
from rota.store.contract import Seal
from rota.store.sqlite import SqliteStore

FROM, TO = "sqlite:///.rota/rota.db", "sqlite:///new.db"
BOTH = ("--from", FROM, "--to", TO)
SURE = (*BOTH, "--yes")  # nobody can be asked in a test


@pytest.fixture
def full(rota):
    """A project with schedules, jobs that ended and one that waits."""
    rota.sync()
    for name in ("ann", "bob"):
        rota.enqueue("greet", name)
    rota.work()
    rota.enqueue("greet", "carl")
    return rota


@pytest.fixture
def new(folder):
    """The store that is copied to."""
    store = SqliteStore(folder / "new.db")
    yield store
    store.close()


def test_everything_is_in_the_new_store(full, store):
    before = full.data("jobs", "list")
    said = full("copy", *SURE)
    assert "moved 2 schedules, 3 jobs" in said.stdout
    assert f"restart everything with the URL sqlite:///{full.folder}/new.db, and namespace rota\n" in said.stdout
    old = full.folder / ".rota" / "rota.db"
    assert "is sealed. It holds nothing but what Rota made. Once everything uses the new store, you may " in said.stdout
    assert f"you may delete {old}, and rota.db-wal, rota.db-shm and rota.db-notify beside it" in said.stdout
    assert full.data("jobs", "list", "--store", TO) == before
    assert store.sealed().is_done


def test_a_pipe_gets_plain_lines_on_stderr(full):
    said = full("copy", *SURE)
    lines = said.stderr.splitlines()
    assert lines[0] == "nothing runs any more"
    assert "copying jobs: 3 of 3" in lines
    assert "checking jobs: 3 of 3" in lines
    assert "\x1b" not in said.stderr


def test_the_summary_is_data(full, store, new):
    facts = full.data("copy", *SURE)
    assert (facts["done"], facts["jobs"], facts["schedules"], facts["queues"]) == (True, 3, 2, 1)
    assert (facts["source"], facts["target"]) == (store.describe(), new.describe())
    assert facts["given_back"] == 0


def test_where_nobody_can_be_asked_it_needs_yes(full, store):
    said = full("copy", *BOTH, code=2).stderr
    assert "takes no more work once it is moved to sqlite file" in said
    assert "nobody can be asked here whether to move it; add --yes, or look first with --dry-run" in said
    assert store.sealed() is None
    assert not (full.folder / "new.db").exists()
    full("copy", *BOTH, "-y")
    assert store.sealed().is_done


def test_a_dry_run_changes_and_makes_nothing(full, store):
    said = full("copy", *BOTH, "--dry-run")
    assert "would move 2 schedules, 3 jobs and 1 queue" in said.stdout
    assert "nothing was done" in said.stdout
    assert not (full.folder / "new.db").exists()
    assert store.sealed() is None
    assert full.data("copy", *BOTH, "--dry-run")["done"] is False


def test_a_dry_run_refuses_what_a_copy_would_refuse(full):
    full("migrate", "--store", TO)
    full("enqueue", "greet", "dora", "--app", "jobs.py", "--store", TO)
    assert "already holds something of its own" in full("copy", *BOTH, "--dry-run", code=6).stderr


def test_the_old_store_says_where_everything_went(full):
    full("copy", *SURE)
    for words_ in (("enqueue", "greet", "x", "--app", "jobs.py"), ("queues", "pause", "mail"), ("prune", "--defaults")):
        assert "new.db; restart with the URL of that store" in full(*words_, code=4).stderr
    unhealthy = full("health", "--store", FROM, code=1).stdout
    assert "unhealthy: all that sqlite file" in unhealthy
    found = full("doctor", "--store", FROM, code=1).stdout
    assert "problem  store" in found
    assert "→ restart with the URL of that store" in found


def test_a_second_copy_says_where_everything_went(full):
    full("copy", *SURE)
    assert "was copied to sqlite file" in full("copy", *SURE, code=6).stderr


@pytest.mark.parametrize("options", [("--yes",), ("--dry-run",)])
@pytest.mark.parametrize(
    "seal",
    [
        Seal(target="elsewhere", id="x", is_done=True),
        Seal(target="elsewhere", id="x"),
        Seal(target="here", source="elsewhere", id="x"),
    ],
    ids=["moved", "being moved", "being filled"],
)
def test_a_copy_that_is_refused_leaves_no_target(full, store, seal, options):
    store.seal(seal)
    full("copy", *BOTH, *options, code=6)
    assert not list(full.folder.glob("new.db*"))


@pytest.mark.parametrize("options", [("--yes",), ("--dry-run",)])
@pytest.mark.parametrize("place", ["jobs.py/new.db", "/proc/none/new.db"])
def test_a_target_that_cannot_be_made_is_refused(full, store, place, options):
    said = full("copy", "--from", FROM, "--to", f"sqlite:///{place}", *options, code=4).stderr
    assert "cannot make" in said
    assert place in said
    assert store.sealed() is None


def test_a_path_that_can_be_made_is_fine_for_a_dry_run_and_is_not_made(full):
    full("copy", "--from", FROM, "--to", "sqlite:///deep/down/new.db", "--dry-run")
    assert not (full.folder / "deep").exists()


def test_undo_opens_a_store_whose_copy_has_not_ended(full, store):
    store.seal(Seal(target="elsewhere", id="x"))
    said = full("copy", *SURE, code=6).stderr
    assert "is being copied to elsewhere" in said
    advised = re.search("`rota (copy --undo .*?)`", said)[1]
    assert "takes work again" in full(*shlex.split(advised)).stderr
    full.enqueue("greet", "dora")
    assert "there is nothing to undo" in full("copy", "--undo", "--from", FROM, code=6).stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--from", FROM), 2, "say where to copy: --to URL"),
        (("--to", TO), 2, "missing option '--from'"),
        (("--undo", *BOTH), 2, "--undo takes --from alone"),
        (("--from", "sqlite:///none.db", "--to", TO), 4, "there is no store at"),
        (("--from", FROM, "--to", "memory://"), 4, "lives and ends with one process"),
        (("--from", FROM, "--to", "floppy://a"), 4, "names no store"),
        ((*BOTH, "--wait", "soon"), 2, "soon"),
        (("--from", FROM, "--to", FROM, "-y"), 6, "both sides are the same store"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(full, store, options, code, said):
    assert said in full("copy", *options, code=code).stderr
    assert store.sealed() is None
    assert not (full.folder / "none.db").exists()


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_namespace_that_is_not_there_is_refused_and_not_made(full, store, options):
    said = full("copy", *SURE, "--namespace", "prod", *options, code=6).stderr
    assert said.count("namespace prod") == 1
    assert "namespace prod holds nothing to copy" in said
    assert "holds nothing to copy. The other namespaces there are: rota. Name one of them with --namespace" in said
    assert store.namespaces() == ["rota"]
    assert not (full.folder / "new.db").exists()
    full.enqueue("greet", "dora")


def test_an_empty_namespace_is_refused_and_stays_open(full, store, monkeypatch):
    monkeypatch.setenv("ROTA_NAMESPACE", "prod")
    full("migrate")
    assert "The other namespaces there are: rota" in full("copy", *SURE, code=6).stderr
    assert store.namespaces() == ["prod", "rota"]
    full.enqueue("greet", "dora")


def test_what_is_left_in_the_source_is_told_until_all_is_copied(full, monkeypatch):
    monkeypatch.setenv("ROTA_NAMESPACE", "prod")
    full.enqueue("greet", "dora")
    monkeypatch.delenv("ROTA_NAMESPACE")
    said = full("copy", *SURE, "--namespace", "prod").stdout
    assert "moved 1 job and 1 queue" in said
    assert "and namespace prod\n" in said
    assert "The store still holds namespace rota: keep it until you have copied them, too" in said
    facts = full.data("copy", *SURE)
    assert (facts["jobs"], facts["still_in_source"]) == (3, [])


def test_a_file_with_tables_of_its_user_is_not_to_be_deleted(full):
    with closing(sqlite3.connect(full.folder / ".rota" / "rota.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    said = full("copy", *SURE).stdout
    assert "is sealed. To remove what Rota made there, and nothing else, once everything uses the new store:" in said
    assert "drop the tables rota_audit, rota_count, " in said
    assert "delete" not in said
    assert "orders" not in said


def test_tenants_and_alert_rules_are_counted(full, store):
    data = json.dumps({})
    kinds = {"tenant": "acme", "alert_rule": "late", "token": "abc"}
    store.edit_entries([EntryEdit(kind=kind, name=name, expect_version=0, data=data) for kind, name in kinds.items()])
    assert ", 1 queue, 1 tenant and 1 alert rule from" in full("copy", *BOTH, "--dry-run").stdout
    said = full("copy", *SURE).stdout
    assert "1 tenant, 1 alert rule, 1 other named record" in said


@pytest.mark.skipif("redis" not in SERVED, reason="redis is not among the chosen stores")
def test_a_target_without_shared_transactions_is_warned_about(full, tmp_path):
    target = fresh_place("redis", tmp_path)
    words = ("copy", "--from", FROM, "--to", target.url, "--to-namespace", target.namespace)
    warning = "has no transactions that your code could share: each call with tx= fails there"
    assert warning in full(*words, "--dry-run").stdout
    assert warning in full(*words, "--yes").stderr


def test_a_target_with_shared_transactions_is_not_warned_about(full):
    assert "tx=" not in full("copy", *BOTH, "--dry-run").stdout
    assert "tx=" not in full("copy", *SURE).stderr


def test_a_password_is_not_shown_in_the_url_to_restart_with():
    facts = CopyFacts(source="a", target="b", done=True, target_url=masked("mongodb://ann:secret@db.example/news"))
    said = list(_lines(facts, "prod"))
    assert "restart everything with the URL mongodb://ann:***@db.example/news, and namespace prod" in said


def test_a_namespace_may_get_another_name(full):
    facts = full.data("copy", *SURE, "--to-namespace", "prod")
    assert facts["target"].endswith("new.db, namespace prod")
    assert SqliteStore(full.folder / "new.db").namespaces() == ["prod"]


def test_a_finished_copy_is_told_although_the_source_cannot_be_read_any_more(full, monkeypatch):
    def gone(_store):
        raise StoreUnavailable("the server has gone away")

    def move_and_go(*stores, **options):
        moved = move(*stores, **options)
        monkeypatch.setattr(SqliteStore, "namespaces", gone)
        return moved

    monkeypatch.setattr("rota.cli.copy.move", move_and_go)
    facts = full.data("copy", *SURE)
    assert (facts["jobs"], facts["still_in_source"], facts["removal"]) == (3, [], None)


def test_an_interrupted_copy_says_how_to_go_on(full, started, store):
    gate = full.folder / "gate"
    full.enqueue("hold", str(gate))
    worker = started("worker", "jobs.py")
    worker.wait_for("holding")
    copy = started("copy", *SURE, "--wait", "1h")
    copy.wait_for("waiting for 1 running job")
    copy.signal(signal.SIGINT)
    assert copy.end() == 130
    assert "both stores stay sealed. Start it again with the same words" in copy.stderr
    assert f"`rota copy --undo --from {FROM} --namespace rota` opens" in copy.stderr
    assert not store.sealed().is_done
    gate.touch()
    wait_until(lambda: _nothing_runs(store))
    again = started("copy", *SURE, "-o", "json")
    assert again.end() == 0
    facts = json.loads(again.stdout)
    assert (facts["jobs"], facts["given_back"]) == (4, 0)
    assert "worker gets no more work" in worker.wait_for("gets no more work")


def test_what_outlives_the_wait_is_told(full, started, store):
    gate = full.folder / "gate"
    job = full.enqueue("hold", str(gate))
    started("worker", "jobs.py").wait_for("holding")
    said = full("copy", *SURE, "--wait", "1s")
    gate.touch()
    assert "1 job still ran after the wait and will start again there" in said.stdout
    assert full.data("jobs", "show", job, "--store", TO)["state"] == "queued"
    assert store.sealed().is_done


def _nothing_runs(store) -> bool:
    return not any(queue.counts.get("running") for queue in store.list_queues())


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Step("wait", "jobs", 2), "waiting for 2 running jobs"),
        (Step("wait", "jobs", 0), "nothing runs any more"),
        (Step("copy", "jobs", 1500, 20_000), "copying jobs: 1,500 of 20,000"),
        (Step("copy", "logs", 3), "copying logs: 3"),
        (Step("check", "locks", 3, 3), "checking locks: 3 of 3"),
    ],
)
def test_steps_in_words(step, text):
    assert words(step) == text


def test_a_part_ends_with_a_line_that_shows_all_of_it(capsys):
    lines = Lines()
    for done in (0, 1_000, 2_000):
        lines(Step("copy", "jobs", done, 2_000))
    lines(Step("copy", "logs", 0))
    lines(Step("copy", "logs", 3))
    lines.finish()
    said = capsys.readouterr()
    assert (said.out + said.err).splitlines() == [
        "copying jobs: 0 of 2,000",
        "copying jobs: 2,000 of 2,000",
        "copying logs: 0",
        "copying logs: 3",
    ]
