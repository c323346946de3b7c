"""The parent process: workers that die, hang or leak are replaced, and signals reach all of them once."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from kill_harness import HERE, Child, children_of, fresh_python, wait_until

from rota import App
from rota.model.jobs.job import history_of
from rota.testing.store_suite.checks import check_store

APP = "supervised_app"
TASKS = ("work", "gated", "deadly", "hog", "leak", "endless")
SMALL = 25 * 1024  # kilobytes that a parent may use


def stand_in(*args) -> None: ...


class Site:
    """One folder with the app, its store, and a command that runs workers under a parent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(HERE / f"{APP}.py", folder)
        self._app = App(f"sqlite:///{folder}/rota.db", name="outside")  # it enqueues, whatever becomes of the real one
        self._tasks = {task: self._app.task(name=f"{APP}.{task}")(stand_in) for task in TASKS}
        self.store = self._app.open()
        self.parents: list[Child] = []

    def start(self, *words: str, command: str = "worker") -> Child:
        command_line = ["-m", "rota", command, f"{APP}.py", *words]
        parent = Child(command_line, self.folder, "60s", start=fresh_python)
        self.parents.append(parent)
        return parent

    def enqueue(self, task: str, *args: object) -> str:
        return self._tasks[task].enqueue(*args).id

    def job(self, job_id: str):
        (job,) = self.store.get_jobs([job_id])
        return job

    def wait_for_end(self, job_id: str, state: str = "succeeded") -> None:
        wait_until(lambda: self.job(job_id).state == state, f"job {job_id} to be {state}")

    def reasons(self, job_id: str) -> list[str]:
        return [line.reason for line in history_of(self.job(job_id))]

    def pids(self, name: str) -> list[int]:
        """The processes that have left a note of that name."""
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def wait_for_notes(self, name: str, count: int = 1) -> list[int]:
        wait_until(lambda: len(self.pids(name)) >= count, f"{count} notes {name}")
        return self.pids(name)

    def wait_for_workers(self, parent: Child, count: int) -> list[int]:
        """Until so many are up; their pids."""
        wait_until(lambda: len(up(parent)) >= count or not parent.is_alive, f"{count} workers")
        assert parent.is_alive, parent.output
        return up(parent)

    def close(self) -> None:
        for parent in self.parents:
            parent.close()
        self._app.close()


def up(parent: Child) -> list[int]:
    """The workers that have said so, have sent a heartbeat, and are still there."""
    there = children_of(parent.pid)
    started = [pid for pid in there if any(f"-{pid}-" in line and "started:" in line for line in list(parent.lines))]
    return [pid for pid in started if has_sent_a_heartbeat(pid)]


def has_sent_a_heartbeat(pid: int) -> bool:
    """A worker handles SIGUSR2 after its first heartbeat."""
    try:
        facts = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    (handled,) = (line.split()[1] for line in facts.splitlines() if line.startswith("SigCgt:"))
    return bool(int(handled, 16) >> (signal.SIGUSR2 - 1) & 1)


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    check_store(site.store)
    site.close()


# Workers that die.


def test_a_killed_worker_is_replaced_and_its_job_restarts_at_once_with_the_story(site):
    job_id = site.enqueue("gated", "gate")
    parent = site.start()
    (first,) = site.wait_for_notes("at-gate")
    os.kill(first, signal.SIGKILL)
    _, second = site.wait_for_notes("at-gate", 2)  # long before the lease of a minute runs out
    (site.folder / "gate").touch()
    site.wait_for_end(job_id)
    assert (first != second, site.job(job_id).deaths) == (True, 1)
    (lost,) = [reason for reason in site.reasons(job_id) if reason.startswith("worker lost")]
    assert f"-{first}-" in lost
    assert "was killed by signal 9 (SIGKILL), with at most " in lost
    assert lost.endswith(" MB (death 1 of 3)")
    assert f"worker {first} was killed by signal 9 (SIGKILL)" in parent.output
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_a_job_that_crashes_its_worker_is_told_by_its_signal(site):
    parent = site.start()
    job_id = site.enqueue("deadly")
    site.wait_for_end(job_id)
    assert any("was killed by signal 11 (SIGSEGV)" in reason for reason in site.reasons(job_id))
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_another_worker_frees_the_jobs_of_one_that_has_died(site):
    job_id = site.enqueue("gated", "gate")
    parent = site.start("--processes", "2", "-c", "1")
    site.wait_for_workers(parent, 2)
    (holder,) = site.wait_for_notes("at-gate")
    os.kill(holder, signal.SIGKILL)
    _, second = site.wait_for_notes("at-gate", 2)
    (site.folder / "gate").touch()
    site.wait_for_end(job_id)
    assert second != holder
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_a_worker_that_is_told_to_end_by_itself_drains_and_is_replaced(site):
    parent = site.start()
    (first,) = site.wait_for_workers(parent, 1)
    os.kill(first, signal.SIGTERM)
    parent.wait_for(f"worker {first} exited with code 0")
    wait_until(lambda: up(parent) not in ([], [first]), "another worker")
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_workers_that_die_at_once_are_started_more_and_more_slowly(site):
    (site.folder / "at-import.py").write_text("os.kill(os.getpid(), 9)")
    parent = site.start()
    parent.wait_for("3 in a row ended within 10 s: the next starts in 1 s")
    parent.wait_for("4 in a row ended within 10 s: the next starts in 2 s")
    (site.folder / "at-import.py").unlink()
    site.wait_for_workers(parent, 1)
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


# Workers that cannot start.


def test_a_target_that_cannot_be_imported_ends_the_parent_with_its_code(site):
    (site.folder / "at-import.py").write_text("1 / 0")
    parent = site.start("--processes", "3")
    assert parent.end() == 3
    assert parent.output.count(": division by zero); the traceback above shows the line to mend") == 1


def test_a_store_that_cannot_be_used_ends_the_parent_with_its_code(site):
    (site.folder / "text.db").write_text("no database, though long enough to be looked at" * 50)
    parent = site.start("--store", "sqlite:///text.db")
    assert parent.end() == 4
    assert "is not a SQLite database" in parent.output


def test_a_store_of_one_process_is_refused_for_two(site):
    parent = site.start("--store", "memory://", "--processes", "2")
    assert parent.end() == 4
    assert "2 are to share it" in parent.output


def test_a_target_that_breaks_later_ends_nothing_that_runs(site):
    parent = site.start("--processes", "2")
    first, second = site.wait_for_workers(parent, 2)
    (site.folder / "at-import.py").write_text("1 / 0")
    os.kill(first, signal.SIGKILL)
    parent.wait_for("exited with code 3")
    site.wait_for_end(site.enqueue("work"))
    assert up(parent) == [second]
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


# Workers that are stuck or leak.


def test_a_worker_that_is_stopped_is_killed_and_replaced(site):
    job_id = site.enqueue("gated", "gate")
    parent = site.start("--stuck-after", "3s")
    (first,) = site.wait_for_notes("at-gate")
    site.wait_for_workers(parent, 1)
    os.kill(first, signal.SIGSTOP)
    parent.wait_for(f"worker {first} sent no heartbeat for 3 s (stopped), and is killed")
    site.wait_for_notes("at-gate", 2)
    (site.folder / "gate").touch()
    site.wait_for_end(job_id)
    assert any("sent no heartbeat for 3 s (stopped), and was killed by" in told for told in site.reasons(job_id))
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_a_worker_whose_interpreter_is_held_says_where_and_is_replaced(site):
    parent = site.start("--stuck-after", "3s")
    site.wait_for_workers(parent, 1)
    job_id = site.enqueue("hog")
    site.wait_for_end(job_id)
    assert "sent no heartbeat for 3 s" in parent.output
    assert f'{APP}.py", line' in parent.output  # the task's own frame
    assert parent.output.count(" in hog") == 1
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_a_slot_that_never_ends_has_its_worker_replaced(site):
    parent = site.start("--stuck-after", "3s")
    (first,) = site.wait_for_workers(parent, 1)
    job_id = site.enqueue("endless")
    site.wait_for_end(job_id, "failed")
    parent.wait_for(f"worker {first} has 1 slot held by a run that does not end: it drains")
    wait_until(lambda: is_gone(first), "the end of the worker")
    site.wait_for_workers(parent, 1)
    assert "was killed" not in parent.output
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_a_worker_that_has_grown_drains_and_is_replaced(site):
    held = site.enqueue("gated", "gate")
    parent = site.start("--max-memory", "200M")
    (first,) = site.wait_for_notes("at-gate")
    site.enqueue("leak", 300)
    parent.wait_for(f"worker {first} uses ")
    assert "more than 200 MB: it drains; another one replaces it" in parent.output
    wait_until(lambda: up(parent) not in ([], [first]), "another worker")
    (site.folder / "gate").touch()
    site.wait_for_end(held)
    assert (site.job(held).deaths, site.pids("at-gate")) == (0, [first])  # it could finish what it ran
    wait_until(lambda: is_gone(first), "the end of the worker")
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_a_parent_that_was_stopped_itself_blames_nobody(site):
    parent = site.start("--stuck-after", "3s")
    (first,) = site.wait_for_workers(parent, 1)
    os.kill(first, signal.SIGSTOP)
    os.kill(parent.pid, signal.SIGSTOP)
    wait_until(lambda: parent.is_stopped, "the parent to stop")
    since = time.monotonic()
    wait_until(lambda: time.monotonic() > since + 4.0, "the limit to pass")
    os.kill(first, signal.SIGCONT)
    os.kill(parent.pid, signal.SIGCONT)
    site.wait_for_end(site.enqueue("work"))
    assert up(parent) == [first]
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


# Signals.


def test_sigterm_drains_all_workers(site):
    jobs = [site.enqueue("gated", "gate") for _ in range(2)]
    parent = site.start("--processes", "2", "-c", "1")
    assert len(set(site.wait_for_notes("at-gate", 2))) == 2  # they share the work
    parent.signal(signal.SIGTERM)
    wait_until(lambda: parent.output.count("SIGTERM: waiting up to 25 s for 1 running") == 2, "both to drain")
    (site.folder / "gate").touch()
    assert parent.end() == 0
    assert {site.job(job_id).state for job_id in jobs} == {"succeeded"}


def test_a_second_sigterm_hands_back_at_once(site):
    jobs = [site.enqueue("gated", "gate") for _ in range(2)]
    parent = site.start("--processes", "2", "-c", "1")
    site.wait_for_notes("at-gate", 2)
    parent.signal(signal.SIGTERM)
    wait_until(lambda: parent.output.count("waiting up to 25 s") == 2, "both to drain")
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0
    assert {(job.state, job.attempts, job.deaths) for job in map(site.job, jobs)} == {("queued", 0, 0)}


def test_a_service_manager_that_signals_every_process_drains_once(site):
    job_id = site.enqueue("gated", "gate")
    parent = site.start()
    (worker,) = site.wait_for_notes("at-gate")
    site.wait_for_workers(parent, 1)
    parent.signal(signal.SIGTERM)
    parent.wait_for("SIGTERM: waiting up to 25 s")
    os.kill(worker, signal.SIGTERM)
    (site.folder / "gate").touch()
    assert parent.end() == 0
    assert "told again" not in parent.output
    assert (site.job(job_id).state, site.pids("at-gate")) == ("succeeded", [worker])


def test_a_ctrl_c_reaches_the_workers_by_their_parent_only(site):
    parent = site.start()
    (worker,) = site.wait_for_workers(parent, 1)
    assert os.getpgid(worker) != os.getpgid(parent.pid)
    parent.signal(signal.SIGINT)
    assert parent.end() == 130
    assert "SIGINT: stopping" in parent.output
    assert "Traceback" not in parent.output


def test_a_parent_that_is_told_to_end_while_its_workers_start_ends(site):
    (site.folder / "at-import.py").write_text("note('importing'); time.sleep(600)")
    parent = site.start()
    (worker,) = site.wait_for_notes("importing")
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0
    assert is_gone(worker)


def test_workers_whose_parent_is_killed_drain_by_themselves(site):
    jobs = [site.enqueue("gated", "gate") for _ in range(2)]
    parent = site.start("--processes", "2", "-c", "1")
    workers = site.wait_for_notes("at-gate", 2)
    site.wait_for_workers(parent, 2)
    parent.signal(signal.SIGKILL)
    wait_until(lambda: parent.output.count("the parent process is gone: waiting up to 25 s") == 2, "both to drain")
    (site.folder / "gate").touch()
    wait_until(lambda: all(is_gone(pid) for pid in workers), "the end of the workers")
    assert {site.job(job_id).state for job_id in jobs} == {"succeeded"}


def test_sighup_replaces_workers_one_by_one_without_a_gap(site):
    held = site.enqueue("gated", "gate")
    parent = site.start("--processes", "2", "-c", "2")
    before = site.wait_for_workers(parent, 2)
    site.wait_for_notes("at-gate")
    parent.signal(signal.SIGHUP)
    wait_until(lambda: "SIGHUP: waiting up to 25 s for 1 running" in parent.output, "the draining of the busy one")
    assert len(up(parent)) >= 2
    site.wait_for_end(site.enqueue("work"))
    (site.folder / "gate").touch()
    parent.wait_for("all workers have been replaced")
    assert not set(before) & set(up(parent))
    assert len(up(parent)) == 2
    assert (site.job(held).state, site.job(held).deaths) == ("succeeded", 0)
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


def test_sighup_with_broken_code_leaves_the_old_workers_at_work(site):
    parent = site.start("--processes", "2")
    before = site.wait_for_workers(parent, 2)
    (site.folder / "at-import.py").write_text("1 / 0")
    parent.signal(signal.SIGHUP)
    parent.wait_for("exited with code 3")
    assert "no more workers are replaced, and the old ones continue" in parent.output
    assert sorted(up(parent)) == sorted(before)
    (site.folder / "at-import.py").unlink()
    parent.signal(signal.SIGHUP)
    parent.wait_for("all workers have been replaced")
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0


# The rest.


def test_several_workers_end_when_there_is_nothing_left(site):
    jobs = [site.enqueue("work") for _ in range(3)]
    parent = site.start("--processes", "2", "--until-empty")
    assert parent.end() == 0
    assert {site.job(job_id).state for job_id in jobs} == {"succeeded"}
    assert parent.output.count("Rota 0.") == 1  # one banner


def test_each_worker_is_a_node(site):
    parent = site.start("--processes", "2", command="run")
    workers = site.wait_for_workers(parent, 2)
    wait_until(lambda: len(site.store.list_nodes()) == 2, "both nodes")
    assert {node.pid for node in site.store.list_nodes()} == set(workers)
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0
    assert site.store.list_nodes() == []


def test_without_a_parent_the_command_does_the_work_itself(site):
    process = site.start("--processes", "0")
    process.wait_for("started:")
    assert children_of(process.pid) == []
    site.wait_for_end(site.enqueue("work"))
    assert site.pids("worked") == [process.pid]
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_a_parent_is_small(site):
    parent = site.start("--processes", "2")
    site.wait_for_workers(parent, 2)
    status = Path(f"/proc/{parent.pid}/status").read_text()
    (used,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    assert used < SMALL
    parent.signal(signal.SIGTERM)
    assert parent.end() == 0
