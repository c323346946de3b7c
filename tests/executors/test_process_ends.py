"""However a child ends, its slot comes back and the job's outcome says what happened."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from executors import deeds
from executors.bench import Bench, exists, is_alive, pid_in, until
from rota.engine.executors.processes import Recycling
from rota.model.jobs.outcome import Died, Failed, Returned, Stopped, Succeeded


def works(bench: Bench) -> bool:
    return bench.do(deeds.add.job(2, 2)) == Succeeded(b"4")


def test_a_timeout_kills_the_child_and_frees_the_slot(bench, tmp_path):
    doing = bench.begin(deeds.ignores_sigterm.using(timeout="1s").job(str(tmp_path / "word")))
    assert doing.outcome() == Failed(
        "TimeoutError: executors.deeds.ignores_sigterm ran longer than its timeout of 1 s; its process was killed"
    )
    assert doing.lines() == [("info", "hanging")]
    assert not exists(pid_in(tmp_path / "word"))
    assert works(bench)
    assert bench.executor.stuck == 0


def test_what_a_killed_task_has_started_is_killed_with_it(bench, tmp_path):
    doing = bench.begin(deeds.starts_another.using(timeout="1s").job(str(tmp_path / "word")))
    other = pid_in(tmp_path / "word")
    assert doing.outcome().error.startswith("TimeoutError")
    until(lambda: not is_alive(other))


def test_a_task_over_its_memory_cap_is_killed(bench, tmp_path):
    outcome = bench.do(deeds.eats.job(str(tmp_path / "word")))
    assert isinstance(outcome, Failed)
    assert outcome.may_retry
    assert outcome.error.startswith("MemoryError: used ")
    assert outcome.error.endswith(" MB, more than its cap of 150 MB")
    assert int(outcome.error.split()[2]) >= 150  # whole megabytes: one byte more than the cap is 150 of them
    assert works(bench)


def test_a_cancelled_task_that_looks_and_returns_ends_as_cancelled(bench, tmp_path):
    doing = bench.begin(deeds.looks_whether_cancelled.job(str(tmp_path / "word")))
    pid_in(tmp_path / "word")
    doing.run.stop("not wanted")
    assert doing.outcome() == Stopped("not wanted")


def test_a_cancelled_task_that_does_not_look_is_interrupted_and_cleans_up(bench, tmp_path):
    doing = bench.begin(deeds.cleans_up.job(str(tmp_path / "word")))
    child = pid_in(tmp_path / "word")
    doing.run.stop("not wanted")
    assert doing.outcome() == Stopped("not wanted")
    assert (tmp_path / "word.clean").exists()
    assert bench.result(deeds.who.job()) == str(child).encode()  # it was interrupted, not killed


def test_a_cancelled_task_that_ignores_sigterm_is_killed(bench, tmp_path):
    doing = bench.begin(deeds.ignores_sigterm.job(str(tmp_path / "word")))
    child = pid_in(tmp_path / "word")
    began = time.monotonic()
    doing.run.stop("not wanted")
    assert doing.outcome() == Stopped("not wanted")
    assert time.monotonic() >= began + 1.9
    assert not exists(child)
    assert works(bench)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_child_that_dies_by_a_signal_is_a_death(bench, number):
    outcome = bench.do(deeds.dies_by.job(int(number)))
    assert isinstance(outcome, Died)
    assert f"was ended by {number.name} (exit code -{int(number)}), last seen with " in outcome.reason
    assert works(bench)


def test_a_child_that_exits_is_a_death_and_its_last_words_are_kept(bench):
    doing = bench.begin(deeds.exits.job(3))
    outcome = doing.outcome()
    assert isinstance(outcome, Died)
    assert "exited by itself with exit code 3" in outcome.reason
    assert doing.lines() == [("info", "about to go")]


def test_a_child_that_closes_its_socket_is_a_death(bench):
    assert isinstance(bench.do(deeds.closes_everything.job()), Died)
    assert works(bench)


def test_a_child_that_died_while_idle_is_replaced_and_costs_no_job(bench):
    pid = int(bench.result(deeds.who.job()))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid))
    assert works(bench)
    assert not exists(pid)


def test_a_run_whose_lease_is_lost_is_killed(bench, tmp_path):
    doing = bench.begin(deeds.hangs.job(str(tmp_path / "word")))
    child = pid_in(tmp_path / "word")
    doing.run.is_over = True
    doing.run.lose()
    until(lambda: not exists(child))
    assert works(bench)


def test_a_process_that_cannot_be_started_fails_the_attempt(bench, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        outcome = bench.do(deeds.add.job(1, 1))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("no process could run it: FileNotFoundError")
    assert works(bench)


# Replacing.


def test_a_child_is_replaced_after_its_jobs():
    bench = Bench(1, recycling=Recycling(jobs=2))
    pids = [bench.result(deeds.who.job()) for _ in range(4)]
    bench.stop()
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert not any(exists(int(pid)) for pid in pids)


@pytest.mark.parametrize("recycling", [Recycling(age=0.0), Recycling(memory=90 * 1024**2)], ids=["age", "memory"])
def test_a_child_is_replaced_when_it_is_old_or_has_grown(recycling):
    bench = Bench(1, recycling=recycling)
    pids = {bench.result(deeds.grows.job()) for _ in range(2)}
    bench.stop()
    assert len(pids) == 2


def test_a_grown_child_is_not_given_a_job_with_a_small_cap(bench):
    grown = bench.result(deeds.grows.job())
    assert bench.result(deeds.who.job()) == grown
    bench.do(deeds.eats.job("/nowhere/word"))
    assert not exists(int(grown))


# Stopping.


def test_stopping_ends_all_children_and_leaves_no_zombies(tmp_path):
    bench = Bench(2)
    idle = int(bench.result(deeds.who.job()))
    doing = bench.begin(deeds.ignores_sigterm.job(str(tmp_path / "word")))
    busy = pid_in(tmp_path / "word")
    bench.stop()
    assert doing.outcome() == Returned()
    assert not exists(idle)
    assert not exists(busy)
