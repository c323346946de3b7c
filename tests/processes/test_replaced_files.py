"""A SQLite file that is replaced, deleted or set back under the processes that use it: nothing is accepted and lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from kill_harness import wait_until

from rota import App
from rota.errors import StoreReplaced, StoreUnavailable
from rota.store.sqlite import SqliteStore, file_identity, schema
from rota.store.sqlite.clock import parse_offset
from rota.testing.store_suite.builders import a_job
from rota.testing.store_suite.steps import all_jobs, ids


@pytest.fixture(autouse=True)
def _renewed_in_every_transaction(monkeypatch):
    monkeypatch.setattr(file_identity, "RENEW", 0.0)
    monkeypatch.setattr(file_identity, "LOOK", 0.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rota.db"


@pytest.fixture
def open_store(path):
    opened = []

    def make():
        store = SqliteStore(path)
        store.open()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    """A store that has taken the job "before"; a backup has it; and a job "after", which no backup has."""
    return with_backup(open_store())


def with_backup(store):
    add(store, "before")
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("VACUUM INTO ?", (str(backup_of(store)),))
    add(store, "after")
    return store


def backup_of(store):
    return store.path.with_name("backup.db")


def add(store, *names):
    store.add_jobs([a_job(id=name) for name in names])


def checkpoint(store):
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def renamed(store):
    os.replace(backup_of(store), store.path)  # noqa: PTH105 - as mv does


def deleted_and_copied(store):
    store.path.unlink()
    shutil.copyfile(backup_of(store), store.path)


def all_deleted_and_copied(store):
    for name in ("rota.db", "rota.db-wal", "rota.db-shm"):
        store.path.with_name(name).unlink()
    shutil.copyfile(backup_of(store), store.path)


def restored_by_sqlite(store):
    with closing(sqlite3.connect(backup_of(store))) as backup, closing(sqlite3.connect(store.path)) as target:
        backup.backup(target)


WAYS = [renamed, deleted_and_copied, all_deleted_and_copied, restored_by_sqlite]


@pytest.mark.parametrize("way", WAYS)
def test_a_writer_notices_and_goes_on_in_the_new_file(store, open_store, caplog, way):
    way(store)
    with pytest.raises(StoreReplaced, match=r"rota\.db (was replaced|went back)"):
        add(store, "lost")
    assert "while it was in use" in caplog.text
    add(store, "kept")
    assert ids(all_jobs(store)) == ids(all_jobs(open_store())) == ["kept", "before"]


@pytest.mark.parametrize("way", [way for way in WAYS if way is not restored_by_sqlite])
def test_a_reader_notices_and_reads_the_new_file(store, way):
    assert ids(all_jobs(store)) == ["after", "before"]
    way(store)
    with pytest.raises(StoreReplaced):
        all_jobs(store)
    assert ids(all_jobs(store)) == ["before"]


@pytest.fixture
def seldom_renewed(monkeypatch):
    """As in a handle's first second, and in one that only reads."""
    monkeypatch.setattr(file_identity, "RENEW", 600.0)


@pytest.mark.usefixtures("seldom_renewed")
class TestTheOldWalFile:
    """It is not applied to the new file: SQLite itself does not know to which of them it belongs."""

    @pytest.mark.parametrize("way", [renamed, deleted_and_copied])
    def test_by_a_handle_in_its_first_second(self, open_store, way):
        store = with_backup(open_store())
        way(store)
        with pytest.raises(StoreReplaced):
            add(store, "lost")
        add(store, "kept")
        assert ids(all_jobs(store)) == ids(all_jobs(open_store())) == ["kept", "before"]

    @pytest.mark.parametrize("way", [renamed, deleted_and_copied])
    def test_by_a_handle_that_only_reads(self, open_store, way):
        store, reader = with_backup(open_store()), open_store()
        assert ids(all_jobs(reader)) == ["after", "before"]
        way(store)
        with pytest.raises(StoreReplaced):
            all_jobs(reader)
        assert ids(all_jobs(reader)) == ["before"]

    def test_by_a_handle_that_was_only_opened(self, open_store):
        store, idle = with_backup(open_store()), open_store()
        renamed(store)
        with pytest.raises(StoreReplaced):
            all_jobs(idle)
        assert ids(all_jobs(idle)) == ["before"]


def test_a_backup_that_holds_the_handles_own_row(store):
    """The numbers that the handle writes after it begin again, and are no sign of a file that was written over."""
    for number in range(5):
        add(store, f"job-{number}")
    backup_of(store).unlink()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("VACUUM INTO ?", (str(backup_of(store)),))
    add(store, "not in the backup")
    restored_by_sqlite(store)
    checkpoint(store)
    with pytest.raises(StoreReplaced):
        add(store, "refused")
    for number in range(2):
        add(store, f"kept-{number}")
    checkpoint(store)
    add(store, "kept-2")
    assert ids(all_jobs(store))[:3] == ["kept-2", "kept-1", "kept-0"]


def of_an_older_version(path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(schema, "_missing", lambda *_: [])  # it knew none of this version's scripts
        store = SqliteStore(path)
        store.open()
        store.close()


def of_a_newer_version(path, monkeypatch):  # noqa: ARG001 - as the others
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE rota_meta SET value = '99' WHERE name = 'version'")
        connection.commit()


def of_another_program(path, monkeypatch):  # noqa: ARG001 - as the others
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")


@pytest.mark.parametrize("made", [of_an_older_version, of_a_newer_version, of_another_program])
def test_content_that_was_set_back_to_a_schema_that_does_not_fit(store, monkeypatch, made):
    if made is of_an_older_version:
        backup_of(store).unlink()
    whole = store.path.with_name("whole.db")
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("VACUUM INTO ?", (str(whole),))
    made(backup_of(store), monkeypatch)
    restored_by_sqlite(store)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match=r"holds no store of this version|schema version 99"):
            add(store, "refused")
    with pytest.raises(StoreUnavailable, match=r"holds no store of this version|schema version 99"):
        all_jobs(store)
    whole.replace(backup_of(store))
    restored_by_sqlite(store)
    add(store, "kept")
    assert ids(all_jobs(store)) == ["kept", "after", "before"]


def test_content_of_an_older_schema_is_used_once_it_is_migrated(store, open_store, monkeypatch):
    backup_of(store).unlink()
    of_an_older_version(backup_of(store), monkeypatch)
    restored_by_sqlite(store)
    with pytest.raises(StoreUnavailable, match="rota migrate"):
        add(store, "refused")
    migrated = open_store()
    add(store, "kept")
    assert ids(all_jobs(store)) == ids(all_jobs(migrated)) == ["kept"]


def test_every_handle_notices(store, open_store):
    others = [open_store(), open_store()]
    for number, other in enumerate(others):
        add(other, f"other-{number}")
    renamed(store)
    for number, handle in enumerate((store, *others)):
        with pytest.raises(StoreReplaced):
            add(handle, "lost")
        add(handle, f"kept-{number}")
    assert ids(all_jobs(store)) == ["kept-2", "kept-1", "kept-0", "before"]


def test_a_handle_that_closes_late_leaves_the_new_file_alone(store, open_store):
    """The last one on the old file would delete the -wal file of the new one, which has the same name."""
    all_deleted_and_copied(store)
    new = open_store()
    add(new, "kept")
    store.close()
    add(new, "kept too")
    assert new.path.with_name("rota.db-wal").exists()
    assert ids(all_jobs(open_store())) == ["kept too", "kept", "before"]


def test_a_deleted_file_is_not_made_again(store):
    store.path.unlink()
    with pytest.raises(StoreReplaced):
        add(store, "lost")
    with pytest.raises(StoreUnavailable, match="was deleted or moved away; put the file back"):
        add(store, "refused")
    with pytest.raises(StoreUnavailable, match="was deleted"):
        all_jobs(store)
    assert not store.path.exists()
    renamed(store)
    add(store, "kept")
    assert ids(all_jobs(store)) == ["kept", "before"]


def test_a_file_that_was_moved_away_and_back_has_lost_nothing(store):
    away = store.path.with_name("away.db")
    store.path.rename(away)
    with pytest.raises(StoreReplaced):
        add(store, "refused")
    away.rename(store.path)
    add(store, "kept")
    assert ids(all_jobs(store)) == ["kept", "after", "before"]


def test_a_file_that_was_moved_away_is_not_made_anew_by_another_process(store, open_store):
    away, wal = store.path.with_name("away.db"), store.path.with_name("rota.db-wal")
    store.path.rename(away)
    size = wal.stat().st_size
    assert size > 0
    with pytest.raises(StoreUnavailable, match="is missing, but its -wal file is there: the file was moved away"):
        open_store()
    assert (store.path.exists(), wal.stat().st_size) == (False, size)
    away.rename(store.path)
    assert ids(all_jobs(open_store())) == ids(all_jobs(store)) == ["after", "before"]


def test_the_wal_file_of_a_link_lies_beside_the_file_that_it_names(store, tmp_path):
    link = SqliteStore(tmp_path / "link.db")
    link.path.symlink_to(store.path)
    store.path.rename(store.path.with_name("away.db"))
    with pytest.raises(StoreUnavailable, match=r"link\.db is missing, but its -wal file is there"):
        link.open()
    assert not store.path.exists()


def test_a_file_that_is_still_being_copied_is_left_alone(store):
    whole = backup_of(store).read_bytes()
    store.path.unlink()
    for part in (b"", whole[:4096], whole[: len(whole) // 2]):
        store.path.write_bytes(part)
        with pytest.raises(StoreUnavailable):
            add(store, "refused")
        with pytest.raises(StoreUnavailable):
            add(store, "refused")
        assert store.path.read_bytes() == part
    store.path.unlink()
    store.path.write_bytes(whole)
    add(store, "kept")
    assert ids(all_jobs(store)) == ["kept", "before"]


def test_a_file_that_is_no_store_is_not_made_one(store):
    store.path.unlink()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    for said in ("was replaced, deleted or moved", "holds no store of this version", "holds no store"):
        with pytest.raises(StoreUnavailable, match=said):
            add(store, "refused")


def test_a_file_that_is_written_over_is_used_no_more(store):
    """The same inode, and a -wal file that belongs to what was there before: only a restart helps."""
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    add(store, "after the checkpoint")
    shutil.copyfile(backup_of(store), store.path)
    for _ in range(2):
        with pytest.raises(StoreReplaced, match=r"was written over by another program.*delete its -wal and -shm files"):
            add(store, "refused")
    with pytest.raises(StoreReplaced):
        all_jobs(store)


def test_what_was_committed_outlives_a_deleted_wal_file(store, open_store):
    store.path.with_name("rota.db-wal").unlink()
    store.path.with_name("rota.db-shm").unlink()
    for _ in range(2):
        with pytest.raises(StoreReplaced, match=r"-wal or -shm file of .* was deleted or replaced"):
            add(store, "refused")
    store.close()
    assert ids(all_jobs(open_store())) == ["after", "before"]


def test_a_checkpoint_is_no_replacement(store, open_store):
    other = open_store()
    for number in range(20):
        add(store, f"job-{number}")
        checkpoint(store)
        add(other, f"other-{number}")
    assert len(all_jobs(store)) == 42


def test_a_handle_that_lives_for_less_than_a_second_leaves_no_row(open_store, monkeypatch):
    monkeypatch.setattr(file_identity, "RENEW", 600.0)
    store = open_store()
    add(store, "job")
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT name FROM rota_meta WHERE name LIKE 'epoch:%'").fetchall() == []


def test_rows_of_handles_that_are_gone_go_after_a_week(store, open_store, monkeypatch):
    monkeypatch.setattr(file_identity, "KEPT", -1.0)
    add(open_store(), "another")
    with closing(sqlite3.connect(store.path)) as connection:
        rows = connection.execute("SELECT count(*) FROM rota_meta WHERE name LIKE 'epoch:%'").fetchone()
    assert rows == (1,)
    add(store, "a handle that was idle for as long is not deceived")


def test_a_node_goes_on_in_the_restored_file(path, store, caplog):
    ran = []
    app = App(f"sqlite:///{path}")
    task = app.task(name="note")(ran.append)
    with app.running():
        task.enqueue("old").result("30s")
        renamed(store)
        wait_until(lambda: "while it was in use" in caplog.text, "the node to notice")
        wait_until(lambda: _enqueued(task, "new"), "the node's app to be back")
        wait_until(lambda: "new" in ran, "the job in the restored file")
    app.close()


def _enqueued(task, name):
    try:
        task.enqueue(name)
    except StoreUnavailable:
        return False
    return True


# Containers with a boot clock of their own.

LEASE = """
import sys
from rota.store.sqlite.clock import lease_now
print(*lease_now(None))
"""


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("monotonic           0         0\nboottime            0         0\n", 0),
        ("monotonic  172800  0\nboottime  604800  500000000\n", 604_800_500_000),
        ("boottime  -7  250000000\n", -6_750_000),
        ("", 0),
    ],
)
def test_offsets_of_a_time_namespace(text, offset):
    assert parse_offset(text) == offset


@pytest.mark.parametrize("by", [86_400, -1])
def test_leases_mean_the_same_in_every_time_namespace(by):
    unshare = ["unshare", "--time", "--fork", f"--boottime={by}"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody make a time namespace (it needs Linux 5.6 and root)")
    here, there = (
        subprocess.run(
            [*before, sys.executable, "-c", LEASE], check=True, capture_output=True, text=True
        ).stdout.split()
        for before in ((), unshare)
    )
    assert here[1] == there[1]
    assert 0 <= int(there[0]) - int(here[0]) < 600_000_000
