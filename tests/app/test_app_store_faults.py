"""A database file that is missing, foreign, newer, locked, full or out of reach: told clearly, and nothing is lost."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.steps import PATIENCE, work
from rota import App, SchemaMismatch, StoreError, StoreUnavailable, every
from rota.app import internals
from rota.engine import service
from rota.store.sqlite import SqliteStore, connection


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "rota.db"


@pytest.fixture
def made(path):
    """An app on a file that has one job."""
    app = an_app(path)
    internals(app).registry.get("keep").enqueue(1)
    yield app
    app.close()


def an_app(path: Path, **options) -> App:
    app = App(f"sqlite:///{path}", **options)

    @app.task(name="keep")
    def keep(value: object = None) -> object:
        return value

    return app


def states(app: App) -> list[str]:
    return [job.state for job in app.jobs.list(limit=200).items]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_a_missing_file_is_made_with_its_folders_for_this_user_alone(tmp_path):
    path = tmp_path / "deep" / "down" / "rota.db"
    with umask(0o022):
        app = an_app(path)
        internals(app).registry.get("keep").enqueue()
        work(app)
    for folder in (path.parent, path.parent.parent, path.with_name("rota.db-notify")):
        assert mode(folder) == 0o700
    files = [file for file in path.parent.iterdir() if file.is_file()]
    assert path in files
    assert {mode(file) for file in files} == {0o600}
    app.close()
    assert mode(path) == 0o600


def test_a_file_that_was_there_keeps_its_permissions(path):
    path.touch(mode=0o640)
    path.chmod(0o640)
    an_app(path).open().close()
    assert mode(path) == 0o640


def test_the_default_is_a_file_beside_the_caller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = App()
    assert list(tmp_path.iterdir()) == []
    app.open()
    assert (tmp_path / ".rota" / "rota.db").exists()
    assert mode(tmp_path / ".rota") == 0o700
    assert app.open().describe() == f"sqlite file {tmp_path}/.rota/rota.db"
    app.close()


def test_what_was_accepted_is_there_after_a_restart(path):
    app = an_app(path)
    job = internals(app).registry.get("keep").using(key="k", priority=5).enqueue({"a": 1})
    app.schedules.put("soon", internals(app).registry.get("keep").job(), every("1h"), description="kept")
    before = app.schedules.get("soon").record
    app.close()
    again = an_app(path)
    found = again.jobs.get(job.id)
    assert (found.args, found.key, found.priority, found.state) == ([{"a": 1}], "k", 5, "queued")
    assert again.schedules.get("soon").record == before
    work(again)
    assert found.refresh().state == "succeeded"
    again.close()


def test_a_path_below_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises(StoreUnavailable, match=r"cannot use .*/file/rota.db: Not a directory"):
        an_app(tmp_path / "file" / "rota.db").open()
    assert (tmp_path / "file").read_text() == "a file"


def test_a_folder_in_place_of_the_file_is_told(path):
    path.mkdir()
    with pytest.raises(StoreUnavailable, match=r"cannot write .*rota.db: .*permissions of the file and its folder"):
        an_app(path).open()


@pytest.mark.parametrize("content", [b"dear diary, " * 500, b"SQLite format 3\x00" + b"\xff" * 5000, b"\x00" * 8192])
def test_a_file_of_another_kind_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(SchemaMismatch, match="is not a SQLite database"):
        an_app(path).open()
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_shared_and_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE customer (name TEXT)")
        other.execute("INSERT INTO customer VALUES ('ann')")
    app = an_app(path)
    internals(app).registry.get("keep").enqueue()
    assert other.execute("SELECT name FROM customer").fetchall() == [("ann",)]
    other.close()
    app.close()


def test_tables_of_the_same_name_that_are_not_ours_are_refused(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE rota_job (title TEXT)")
        other.execute("INSERT INTO rota_job VALUES ('plumber')")
    with pytest.raises(SchemaMismatch, match="a table rota_job that Rota did not make; choose another namespace"):
        an_app(path).open()
    assert other.execute("SELECT * FROM rota_job").fetchall() == [("plumber",)]
    other.close()
    shop = an_app(path, namespace="shop")
    internals(shop).registry.get("keep").enqueue()
    assert states(shop) == ["queued"]
    shop.close()


@pytest.mark.parametrize("version", ["newest", "", "1.5"])
def test_a_version_that_is_no_number_is_refused(made, path, version):
    made.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE rota_meta SET value = ? WHERE name = 'version'", (version,))
    connection.close()
    with pytest.raises(StoreError):
        an_app(path).open()


def test_a_file_of_a_newer_rota_is_refused_and_left_alone(made, path):
    made.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE rota_meta SET value = '99' WHERE name = 'version'")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaMismatch, match=r"schema version 99, this Rota knows up to \d+; install the newer Rota"):
        an_app(path).open()
    assert path.read_bytes() == before


def test_namespaces_of_one_file_do_not_see_each_other(path):
    one, two = an_app(path, namespace="one"), an_app(path, namespace="two")
    internals(one).registry.get("keep").using(key="k").enqueue()
    assert not internals(two).registry.get("keep").using(key="k").enqueue().existed
    work(one)
    assert (states(one), states(two)) == (["succeeded"], ["queued"])
    one.close()
    two.close()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("rota.store.sqlite.connection.LOCK_PATIENCE", 0.05)


@contextmanager
def locked(path: Path):
    """Another program keeps a transaction open."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.usefixtures("impatient")
def test_a_locked_file_is_told_and_nothing_is_lost(path):
    app = an_app(path)
    keep = internals(app).registry.get("keep")
    keep.enqueue(1)
    with locked(path):
        with pytest.raises(StoreUnavailable, match=r"locked by another process for .* nothing was written"):
            keep.enqueue(2)
        with pytest.raises(StoreUnavailable, match="End the program that keeps a transaction open"):
            app.schedules.put("soon", keep.job(), every("1h"))
        assert states(app) == ["queued"]  # reading goes on
    keep.enqueue(3)
    assert [job.args for job in app.jobs.list().items] == [[3], [1]]
    work(app)
    assert states(app) == ["succeeded"] * 2
    app.close()


@pytest.mark.usefixtures("impatient")
def test_a_locked_file_cannot_be_made_a_store_and_can_be_afterwards(path):
    sqlite3.connect(path).close()
    with locked(path), pytest.raises(StoreUnavailable, match="locked by another process"):
        an_app(path).open()
    app = an_app(path)
    internals(app).registry.get("keep").enqueue()
    app.close()


@pytest.mark.usefixtures("impatient")
def test_a_worker_waits_for_a_locked_file_and_goes_on(path):
    app = an_app(path)
    away, back = threading.Event(), threading.Event()
    app.on("store.unavailable", lambda _event: away.set())
    app.on("store.back", lambda _event: back.set())
    job = internals(app).registry.get("keep").enqueue("kept")
    with locked(path):
        app.start(scheduler=False)
        assert away.wait(PATIENCE)
    assert job.result("10s") == "kept"
    assert back.wait(PATIENCE)
    assert job.refresh().attempts == 1
    app.close()


@contextmanager
def full(app: App):
    """No page more than there are now."""
    with app.open()._database.write() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    writer = app.open()._database._writer
    most = writer.execute("PRAGMA max_page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    yield
    writer.execute(f"PRAGMA max_page_count = {most}")


def fill(app: App) -> int:
    """Enqueue until there is no room; how many were accepted."""
    for accepted in range(1000):
        try:
            internals(app).registry.get("keep").enqueue("x" * 10_000)
        except StoreUnavailable as err:
            assert re.match(r"no space is left for .*rota.db; nothing was written", str(err))  # noqa: PT017
            return accepted
    pytest.fail("the file never filled")


def test_a_full_file_is_told_and_nothing_is_lost(made):
    with full(made):
        accepted = fill(made)
        assert len(states(made)) == accepted + 1
        with pytest.raises(StoreUnavailable):
            made.enqueue_many([internals(made).registry.get("keep").job("x" * 10_000) for _ in range(5)])
        assert len(states(made)) == accepted + 1
    internals(made).registry.get("keep").enqueue("x" * 10_000)
    assert made.open().recount() == {}
    work(made)
    assert states(made) == ["succeeded"] * (accepted + 2)


def test_a_worker_waits_for_room_and_goes_on(made):
    away = threading.Event()
    made.on("store.unavailable", lambda _event: away.set())

    @made.task
    def large() -> str:
        return "x" * 100_000

    with full(made):
        job = large.enqueue()
        made.start(scheduler=False)
        assert away.wait(PATIENCE)
    assert job.result("10s") == "x" * 100_000
    made.stop()
    assert job.refresh().attempts == 1
    assert made.open().recount() == {}


def test_a_closed_store_says_so_and_an_app_opens_it_anew(made):
    store = made.open()
    made.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        store.get_jobs(["x"])
    assert states(made) == ["queued"]
    made.close()
    made.close()


def test_a_damaged_file_is_told(made, path):
    made.close()
    content = bytearray(path.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"rota\.db"):
        states(an_app(path))


def chattr(flag: str, path: Path) -> bool:
    """Permissions do not bind root, a flag of the file system does, if there is one."""
    command = shutil.which("chattr")
    return command is not None and subprocess.run([command, flag, path], check=False).returncode == 0


@contextmanager
def read_only(path: Path):
    """Keep this user from writing; yields whether that could be done."""
    if os.geteuid() == 0:
        yield chattr("+i", path)
        chattr("-i", path)
        return
    before = mode(path)
    path.chmod(before & ~0o222)
    yield True
    path.chmod(before)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    folder = tmp_path / "fixed"
    folder.mkdir()
    with read_only(folder) as is_fixed:
        path = (folder if is_fixed else Path("/proc")) / "rota.db"  # nobody makes files in /proc
        with pytest.raises(StoreUnavailable, match=r"cannot use .*rota\.db: "):
            an_app(path).open()
    assert list(folder.iterdir()) == []


def test_opening_an_open_store_again_takes_nothing_more(tmp_path):
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    gc.collect()  # what earlier tests left behind would go in between
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        store.open()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    store.close()


def test_a_thread_waits_no_longer_for_its_neighbour_than_for_another_process(tmp_path, monkeypatch):
    """Loops that queue up behind one that waits would look stuck to the parent process."""
    monkeypatch.setattr("rota.store.sqlite.connection.LOCK_PATIENCE", 0.05)
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    ends = []

    def write() -> None:
        try:
            store.pause_queue("mail", paused=True)
        except StoreUnavailable as err:
            ends.append(str(err))

    with store._database.write():  # a transaction of this process that does not end
        neighbour = threading.Thread(target=write, daemon=True)
        neighbour.start()
        neighbour.join(PATIENCE)
    assert "has been locked by another process" in ends[0]
    store.close()


def test_a_write_gives_up_before_its_loop_counts_as_stuck():
    assert connection.LOCK_PATIENCE < service.STUCK_AFTER
