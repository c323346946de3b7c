"""run, worker and scheduler as real processes: they start, work, and end as they are told to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from cli.processes import environment
from rota.model.jobs.job import State


def test_run_says_what_it_will_do_and_works_until_sigterm(rota, started):
    process = started("run", "jobs.py")
    process.wait_for("node ")
    with_wait = started("enqueue", "greet", "world", "times=2", "--wait", env={"ROTA_APP": "jobs.py"})
    assert with_wait.end() == 0
    assert with_wait.stdout == '"WORLDWORLD"\n'
    process.wait_for("(jobs.greet) succeeded in")
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    said = process.stderr
    assert f"store  sqlite file {rota.folder}/.rota/rota.db" in said
    assert "tasks  jobs.divide, jobs.greet, jobs.hold, jobs.report, jobs.send, jobs.tick" in said
    assert "works on queues default and mail, 16 jobs at once; fires schedules" in said
    assert "report  At 09:00 on Monday through Friday, America/New_York time  next 20" in said
    assert "SIGTERM: stopping" in said
    assert "\x1b" not in said
    assert process.stdout == ""


def test_sigterm_waits_for_what_runs(rota, started, store):
    job_id = rota.enqueue("hold", "gate")
    process = started("worker", "jobs.py")
    process.wait_for("holding")
    process.signal(signal.SIGTERM)
    process.wait_for("SIGTERM: waiting up to 25 s for 1 running; once more stops at once")
    (rota.folder / "gate").touch()
    assert process.end() == 0
    assert store.get_jobs([job_id])[0].state is State.SUCCEEDED


def test_a_second_sigterm_hands_back_what_runs_at_once(rota, started, store):
    job_id = rota.enqueue("hold", "gate")
    process = started("worker", "jobs.py")
    process.wait_for("holding")
    process.signal(signal.SIGTERM)
    process.wait_for("waiting up to")
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    assert "second stop signal received; returning running jobs to their queues" in process.stderr
    assert store.get_jobs([job_id])[0].state is State.QUEUED


def test_a_drain_ends_when_its_time_is_over(rota, started, store):
    job_id = rota.enqueue("hold", "gate")
    process = started("worker", "jobs.py", "--drain", "1s")
    process.wait_for("holding")
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    assert "still running after 1 s; returning them to their queues" in process.stderr
    assert store.get_jobs([job_id])[0].state is State.QUEUED


def test_ctrl_c_ends_with_130(started):
    process = started("run", "jobs.py")
    process.wait_for("node ")
    process.signal(signal.SIGINT)
    assert process.end() == 130
    assert "SIGINT: stopping" in process.stderr
    assert "Traceback" not in process.stderr


def test_until_empty_does_what_is_ready_and_ends(rota, started, store):
    ready = [rota.enqueue("greet", name) for name in ("ann", "bob")]
    later = rota.enqueue("greet", "cid", "--in", "1h")
    process = started("worker", "jobs.py", "--until-empty", "-c", "1")
    assert process.end() == 0
    assert [job.state for job in store.get_jobs(ready)] == [State.SUCCEEDED, State.SUCCEEDED]
    assert store.get_jobs([later])[0].state is State.SCHEDULED
    assert "nothing is ready and nothing runs: stopping" in process.stderr


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2>&- >&- <&-", "2>&1"])
def test_a_worker_whose_stderr_accepts_nothing_runs_jobs_all_the_same(rota, store, redirection):
    job_id = rota.enqueue("greet", "ann")
    reader, writer = os.pipe()
    os.close(reader)
    words = ["sh", "-c", f"{sys.executable} -m rota worker jobs.py --until-empty {redirection}"]
    assert subprocess.run(words, check=False, stdout=writer, env=environment()).returncode == 0
    os.close(writer)
    assert store.get_jobs([job_id])[0].state is State.SUCCEEDED


def test_a_worker_takes_only_the_queues_that_it_is_given(rota, started, store):
    mail, other = rota.enqueue("send", "ann"), rota.enqueue("greet", "bob")
    process = started("worker", "jobs.py", "-q", "mail,sync", "-q", "extra", "--until-empty")
    assert process.end() == 0
    assert "works on queues mail, sync and extra" in process.stderr
    assert [job.state for job in store.get_jobs([mail, other])] == [State.SUCCEEDED, State.QUEUED]


def test_a_scheduler_makes_jobs_and_leaves_them_to_workers(rota, started):
    rota.sync()
    rota("schedules", "enable", "tick")
    process = started("scheduler", "jobs.py")
    process.wait_for("schedule tick fired jobs.tick as job ")
    assert re.search(r"schedule tick fired jobs\.tick as job [0-9a-f]+; next at 20\d\d-", process.stderr)
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    assert "does   fires schedules" in process.stderr
    assert {job["state"] for job in rota.data("jobs", "list", "--where", "schedule:tick")} == {"queued"}


def test_a_failing_job_is_logged_with_its_own_traceback(rota, started):
    rota.enqueue("divide", "1", "0")
    process = started("worker", "jobs.py", "--until-empty")
    assert process.end() == 0
    assert "(jobs.divide) failed for good" in process.stderr
    assert 'jobs.py", line ' in process.stderr
    assert "rota/engine" not in process.stderr


def test_only_what_the_level_lets_through_is_logged(rota, started):
    rota.enqueue("greet", "ann")
    process = started("worker", "jobs.py", "--until-empty", "--log-level", "warning")
    assert process.end() == 0
    assert "INFO" not in process.stderr


def test_an_app_that_sets_logging_up_itself_keeps_its_own(rota, started):
    own = "import logging\nlogging.basicConfig(format='OWN %(message)s')\n"
    (rota.folder / "jobs.py").write_text(own + (rota.folder / "jobs.py").read_text())
    process = started("worker", "jobs.py", "--until-empty")
    assert process.end() == 0
    assert "OWN node" in process.stderr
    assert " INFO " not in process.stderr


def test_the_app_and_the_store_may_come_from_the_environment(rota, started):
    env = {"ROTA_APP": "jobs.py", "ROTA_STORE": "sqlite:///elsewhere.db"}
    process = started("worker", "--until-empty", env=env)
    assert process.end() == 0
    assert f"sqlite file {rota.folder}/elsewhere.db" in process.stderr
    assert not (rota.folder / ".rota").exists()


def test_a_wait_that_is_interrupted_ends_with_130(started):
    process = started("enqueue", "greet", "ann", "--wait", "--app", "jobs.py")
    process.wait_for("no worker takes queue default")
    process.signal(signal.SIGINT)
    assert process.end() == 130
    assert process.stderr.splitlines()[-1] == "error: interrupted"


def test_a_reader_that_has_seen_enough_is_no_error(started):
    process = started("next", "* * * * *", "-n", "10000")
    process.process.stdout.readline()
    process.process.stdout.close()
    assert process.end() == 0
    assert process.stderr == ""


def test_the_app_may_be_named_by_an_option_as_everywhere_else(rota, started):
    process = started("worker", "--app", "jobs.py", "--until-empty")
    assert process.end() == 0
    assert "nothing is ready and nothing runs: stopping" in process.stderr
    said = rota("run", "jobs.py", "--app", "other.py", code=2).stderr
    assert "two apps are named, jobs.py and --app other.py; leave one of them out" in said
