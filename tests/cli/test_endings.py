"""Exit codes, and how errors read. 0 and 130 of running services are in test_run."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from cli.processes import environment
from rota.cli import next as next_command


def test_0_all_is_well(rota):
    assert rota("--version").stdout.startswith("rota 0.")


def test_1_a_fault_of_ours_is_told_without_a_traceback(rota, monkeypatch):
    def fail(*_args, **_options):
        raise RuntimeError("oops")

    monkeypatch.setattr(next_command, "cron", fail)
    said = rota("next", "* * * * *", code=1).stderr
    assert said.startswith("error: Rota itself failed: RuntimeError: oops\nhint: this is a bug")
    assert "Traceback" not in said
    assert "Traceback" in rota("next", "* * * * *", code=1, env={"ROTA_DEBUG": "1"}).stderr


def test_1_a_person_is_asked_and_may_say_no(rota):
    job_id = rota.enqueue("greet", "ann")
    words = [sys.executable, "-m", "rota", "jobs", "cancel", "--where", "queue:default"]
    for answer, code, state in ((b"n\n", 1, "queued"), (b"y\n", 0, "cancelled")):
        master, slave = pty.openpty()
        os.write(master, answer)
        done = subprocess.run(words, check=False, stdin=slave, stderr=slave, env=environment())
        os.close(slave)
        said = os.read(master, 4096)
        assert done.returncode == code, said
        assert b"cancel 1 job? [y/N]: " in said
        os.close(master)
        assert rota.data("jobs", "show", job_id)["state"] == state


def test_2_usage(rota):
    said = rota("jobs", "list", "--limit", "0", code=2).stderr
    assert said.startswith("error: invalid value for '-n' / '--limit'")
    assert said.splitlines()[-1] == "hint: `rota jobs list --help` shows how it is used"
    assert "error: minute field '61'" in rota("next", "61 * * * *", code=2).stderr


def test_2_a_form_of_output_that_is_written_as_an_option_is_corrected(rota):
    assert rota("jobs", "list", "--json", code=2).stderr.splitlines()[-1] == "hint: `-o json` writes that form"
    assert "writes that form" not in rota("migrate", "--json", code=2).stderr


def test_2_an_unknown_command_is_answered_with_the_one_that_was_meant(rota):
    assert "rota has no command 'jbos'; did you mean 'jobs'?" in rota("jbos", code=2).stderr
    assert "rota jobs has no command 'lst'; did you mean 'list'?" in rota("jobs", "lst", code=2).stderr
    assert "rota nodes has no command 'xyz'; there are list" in rota("nodes", "xyz", code=2).stderr


def test_2_a_number_that_looks_like_an_option_is_explained(rota):
    said = rota("enqueue", "divide", "-5", "1", "--app", "jobs.py", code=2).stderr
    assert "put -- before arguments that begin with a dash" in said


def test_3_the_target(rota):
    assert rota("run", "nothing.py", code=3).stderr.startswith("error: there is no file nothing.py")


def test_4_the_store(rota):
    assert "names no store that this Rota has" in rota("jobs", "list", "--store", "what://x", code=4).stderr
    (rota.folder / "text.db").write_text("no database, though long enough to be looked at" * 50)
    assert "is not a SQLite database" in rota("jobs", "list", "--store", "sqlite:///text.db", code=4).stderr
    assert "Not a directory" in rota("run", "jobs.py", "--store", "sqlite:///text.db/x/y.db", code=4).stderr


def test_4_looking_into_a_store_that_is_not_there_makes_none(rota):
    said = rota("jobs", "list", "--store", "sqlite:///typo.db", code=4).stderr
    assert f"there is no store at {rota.folder}/typo.db" in said
    assert not (rota.folder / "typo.db").exists()


def test_4_a_store_of_another_process_cannot_be_seen(rota):
    assert "lives and ends with one process" in rota("jobs", "list", "--store", "memory://", code=4).stderr


def test_5_not_found(rota):
    rota("migrate")
    said = rota("jobs", "show", "nope", code=5).stderr
    assert said == (
        "error: no job has the id 'nope', and no id begins with it; it may have been pruned\n"
        "hint: `rota jobs list` shows the jobs that are kept\n"
    )
    assert "`rota schedules list` shows those that exist" in rota("schedules", "show", "nope", code=5).stderr
    assert (
        "no task is named 'nope'; known are jobs.divide" in rota("enqueue", "nope", "--app", "jobs.py", code=5).stderr
    )


def test_6_refused(rota):
    job_id = rota.enqueue("greet", "ann")
    said = rota("jobs", "retry", job_id, code=6).stderr
    assert said.startswith(f"error: job {job_id} is queued, and only failed or cancelled jobs can be retried")


def test_7_the_job_failed(rota, started):
    worker = started("worker", "jobs.py")
    worker.wait_for("node ")
    result = rota("enqueue", "divide", "1", "0", "--wait", "--app", "jobs.py", code=7)
    assert result.stdout == ""
    assert "failed: ZeroDivisionError: division by zero. `rota jobs show" in result.stderr


def test_8_timed_out(rota):
    result = rota("enqueue", "greet", "ann", "--wait", "--timeout", "1s", "--app", "jobs.py", code=8)
    assert "no worker takes queue default at the moment" in result.stderr
    job_id = rota.data("jobs", "list")[0]["id"]
    assert f"is still queued after 1s; it goes on\nhint: `rota jobs show {job_id}` shows" in result.stderr


def test_help_is_in_sections_and_short(rota):
    text = rota("--help").stdout
    sections = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert sections == ["Options:", "Run:", "Jobs:", "Schedules:", "Operate:", "Move:"]
    assert "..." not in text.partition("Options")[2]


def test_help_needs_no_rich():
    code = "import sys, rota.cli.main; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_group_alone_shows_what_it_has(rota):
    assert "Commands:\n  list" in rota("jobs", code=2).stderr


def test_a_terminal_gets_colours_and_a_pipe_does_not(rota):
    def stderr_of(**options):
        words = [sys.executable, "-m", "rota", "jobs", "show", "x"]
        return subprocess.run(words, check=False, **options)

    rota("migrate")
    env = environment(TERM="xterm")
    del env["NO_COLOR"]
    assert b"\x1b[" not in stderr_of(capture_output=True, env=env).stderr
    master, slave = pty.openpty()
    stderr_of(stderr=slave, env=env)
    os.close(slave)
    assert b"\x1b[31m" in os.read(master, 4096)
    os.close(master)
    master, slave = pty.openpty()
    stderr_of(stderr=slave, env={**env, "NO_COLOR": "1"})
    os.close(slave)
    assert b"\x1b[" not in os.read(master, 4096)
    os.close(master)


MIDDLEWARE = """
from rota import App, Middleware, every


class Tenants(Middleware):
    def create(self, jobs, call_next):
        raise LookupError("no tenant")


app = App()
app.use(Tenants())


@app.task
def greet(name): ...
"""


def test_1_what_a_middleware_raises_is_told_with_its_own_traceback_and_not_as_a_bug(rota):
    (rota.folder / "jobs.py").write_text(MIDDLEWARE)
    said = rota("enqueue", "greet", "ann", "--app", "jobs.py", code=1).stderr
    assert 'raise LookupError("no tenant")' in said
    assert "error: the middleware Tenants raised LookupError: no tenant" in said
    assert "a job of task jobs.greet" in said
    assert "bug" not in said


def test_1_a_start_names_the_schedule_whose_template_a_middleware_did_not_take(rota):
    (rota.folder / "jobs.py").write_text(f'{MIDDLEWARE}\n@app.schedule(every("1h"))\ndef tick(): ...\n')
    said = rota("run", "jobs.py", code=1).stderr
    assert "error: the middleware Tenants raised LookupError: no tenant" in said
    assert "the template of schedule 'tick' (task jobs.tick)" in said
    assert "bug" not in said
