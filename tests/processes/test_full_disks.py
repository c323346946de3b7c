"""A disk without space: a clear error, nothing half-written, and work goes on when there is space again."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import pytest
from kill_checks import check_all
from kill_harness import Ground, wait_until

from every_store import fresh_place
from rota import StoreUnavailable
from rota.app import internals
from rota.testing.store_suite.checks import check_store

SIZE = 8 * 1024 * 1024


class Tmpfs:
    """A small file system of its own, filled by a file."""

    stops_every_write = True

    def __init__(self, folder):
        self._folder = folder
        self._filler = folder / "filler"

    def mount(self):
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(self._folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def unmount(self):
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)  # noqa: S607

    def fill(self, _store):
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT)
        for size in (65_536, 4_096):
            with suppress(OSError):
                while True:
                    os.write(descriptor, b"\0" * size)
        os.close(descriptor)

    def free(self, _store):
        self._filler.unlink()


class FewPages:
    """Where nothing can be mounted, and beside it: a database that may not grow, and can still change what it has."""

    stops_every_write = False

    def unmount(self):
        pass

    def fill(self, store):
        store._database._writer.execute("PRAGMA max_page_count = 1").fetchall()  # as large as it is now

    def free(self, store):
        store._database._writer.execute("PRAGMA max_page_count = 1000000").fetchall()


@pytest.fixture(params=["tmpfs", "few pages"])
def disk(request, tmp_path):
    tmpfs = Tmpfs(tmp_path)
    small = tmpfs if request.param == "tmpfs" and tmpfs.mount() else FewPages()
    yield small
    small.unmount()


@pytest.fixture
def ground(disk, tmp_path):  # noqa: ARG001 - mounted before it is used
    ground = Ground(tmp_path, fresh_place("sqlite", tmp_path), lease="2s")
    yield ground
    ground.close()


def enqueue_until_full(ground):
    """The jobs of the batches that were accepted, until one is not."""
    accepted = []
    quick = internals(ground.app).registry.find("quick")

    def enqueue_for_ever():
        while True:
            accepted.extend(job.id for job in ground.app.enqueue_many([quick.job() for _ in range(50)]))

    with pytest.raises(StoreUnavailable, match=r"no space is left for .*; nothing was written"):
        enqueue_for_ever()
    return accepted


def test_a_full_disk_is_told_and_leaves_nothing_half_written(ground, disk):
    before = ground.enqueue("quick", count=5)
    disk.fill(ground.store)
    accepted = enqueue_until_full(ground)
    jobs = check_store(ground.store)
    assert {job.id for job in jobs} == {*before, *accepted}
    disk.free(ground.store)
    after = ground.enqueue("quick", count=5)
    assert {job.id for job in check_store(ground.store)} == {*before, *accepted, *after}


def test_work_goes_on_when_space_returns(ground, disk):
    gated = ground.enqueue("gated", "gate", count=3)
    ground.open_gate("ran")  # the notes have their place before the disk is full
    told = []
    for name in ("store.*", "service.failed"):
        ground.app.on(name, lambda event: told.append(event.name))
    with ground.app.running(scheduler=False, concurrency=4):
        wait_until(lambda: len(ground.runs()) == 3, "running jobs")
        disk.fill(ground.store)
        accepted = enqueue_until_full(ground)
        wait_until(lambda: "store.unavailable" in told or not disk.stops_every_write, "word of the outage")
        disk.free(ground.store)
        ground.open_gate()
        wait_until(lambda: set(ground.states([*gated, *accepted])) == {"succeeded"}, "the end of all work")
        wait_until(lambda: "store.back" in told or "store.unavailable" not in told, "word of its end")
    assert "service.failed" not in told
    check_all(ground)
