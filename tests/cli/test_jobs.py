"""jobs: lists, pages, logs, and changes to one or to all that match."""

from __future__ import annotations

import csv
import io
import json
from itertools import takewhile

import click
import pytest

from rota.cli import jobs
from rota.cli.job_page import columns, page, run_words
from rota.errors import BadOption
from rota.inspector import search
from rota.inspector.search import filter_from
from rota.model.jobs.job import NewJob, State, accept
from rota.model.jobs.outcome import Died, Failed, Returned, Succeeded
from rota.model.jobs.retry import Backoff, RetryPolicy
from rota.model.jobs.settle import apply, claim, promote, rescue, settle
from rota.model.micros import datetime_of
from rota.model.secrets.redaction import DEFAULT
from rota.store.contract import LogLine, Refusal
from rota.store.sqlite import SqliteStore

HOUR = 3_600_000_000
SECOND = 1_000_000
NO_RETRY = RetryPolicy(retries=0)
ONE_RETRY = RetryPolicy(retries=1, backoff=Backoff(first=SECOND, factor=1.0))
FOUR_RETRIES = RetryPolicy(retries=4, backoff=Backoff(first=SECOND, factor=1.0))


@pytest.fixture
def worked(rota):
    """A store with one job that succeeded, one that failed, and two that wait."""
    rota.ids = {
        "good": rota.enqueue("greet", "ann"),
        "bad": rota.enqueue("divide", "1", "0"),
        "later": rota.enqueue("send", "bob", "--in", "1h"),
    }
    rota.work()
    rota.ids["ready"] = rota.enqueue("greet", "cid")
    return rota


def states(rota) -> dict[str, str]:
    found = {job["id"]: job["state"] for job in rota.data("jobs", "list")}
    return {name: found.get(job_id, "gone") for name, job_id in rota.ids.items()}


def test_a_list_in_a_pipe_is_aligned_text(worked):
    lines = worked("jobs", "list").stdout.splitlines()
    assert lines[0].split() == ["job", "state", "call", "queue", "when", "tries", "note"]
    assert [line.split()[1] for line in lines[1:]] == ["queued", "scheduled", "failed", "succeeded"]
    assert len({line.index("jobs.") for line in lines[1:]}) == 1
    assert "jobs.divide(1, 0)" in lines[3]
    assert lines[3].endswith("ZeroDivisionError: division by zero")
    assert "due in 60 m" in lines[2]
    assert "\x1b" not in "".join(lines)


def test_a_list_in_other_forms_has_all_facts(worked):
    listed = worked.data("jobs", "list")
    lines = worked("jobs", "list", "-o", "jsonl").stdout.splitlines()
    rows = list(csv.DictReader(io.StringIO(worked("jobs", "list", "-o", "csv").stdout)))
    assert [json.loads(line) for line in lines] == listed
    assert [row["id"] for row in rows] == [job["id"] for job in listed]
    good = listed[-1]
    assert (good["args"], good["result"], good["attempts"]) == (["ann"], "ANN", 1)
    assert good["created_at"].endswith("Z")
    assert rows[-1]["args"] == '["ann"]'
    assert rows[-1]["key"] == ""


def test_an_empty_list_still_is_one(rota):
    rota("migrate")
    result = rota("jobs", "list")
    assert (result.stdout, "has no jobs" in result.stderr) == ("", True)
    assert rota.data("jobs", "list") == []
    assert rota("jobs", "list", "-o", "csv").stdout.startswith("id,task,state,")
    assert rota("jobs", "list", "--where", "state:failed").stderr == "no job matches\n"
    said = rota("jobs", "list", "--where", "task:greet").stderr
    assert said == "no job matches; write the task's whole name, for example task:jobs.greet\n"


@pytest.mark.parametrize("verb", ["retry", "cancel", "delete"])
def test_a_change_that_finds_no_job_says_that_it_needs_the_whole_name(worked, verb):
    result = worked("jobs", verb, "--where", "task:divide", "--yes")
    assert result.stderr == "no job matches; write the task's whole name, for example task:jobs.divide\n"
    assert worked("jobs", verb, "--where", "task:jobs.nothing", "--yes").stderr == ""


def test_a_list_says_that_there_are_more(worked):
    result = worked("jobs", "list", "-n", "2")
    assert len(result.stdout.splitlines()) == 3
    assert "these are the newest 2; there are more" in result.stderr


def test_a_filter_narrows_a_list(worked):
    def found(where: str) -> set[str]:
        names = {job_id: name for name, job_id in worked.ids.items()}
        return {names[job["id"]] for job in worked.data("jobs", "list", "--where", where)}

    assert found("state:failed,succeeded") == {"good", "bad"}
    assert found("task:jobs.g* state:queued") == {"ready"}
    assert found("queue:mail") == {"later"}
    assert found("since:1h") == {"good", "bad", "later", "ready"}
    assert found("until:1h") == set()


def test_a_filter_reads_times_as_they_are_typed():
    now = 10 * HOUR
    assert filter_from("since:2h", now).since == 8 * HOUR
    assert filter_from("until:1970-01-01T03:00Z", now).until == 3 * HOUR
    assert filter_from("key:'a b' schedule:x", now).key == "a b"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("stat:failed", "'stat' is no field of a filter; did you mean 'state'?"),
        ("state:faild", "'faild' is no state; did you mean 'failed'?"),
        ("failed", "'failed' is no filter; write field:value"),
        ("task:*.send", "a * stands at the end only"),
        ("queue:a queue:b", "says queue: twice"),
        ("key:'a", "a quote without its partner"),
        ("since:yesterday", "'yesterday' is not a time"),
    ],
)
def test_a_filter_that_is_none_says_what_would_be(text, why):
    with pytest.raises(BadOption, match=why.replace("*", r"\*").replace("?", r"\?")):
        filter_from(text, 0)


def test_a_page_reads_from_call_to_traceback(worked):
    lines = worked("jobs", "show", worked.ids["bad"]).stdout.splitlines()
    assert lines[0] == f"job {worked.ids['bad']}  failed"
    assert lines[2] == "  jobs.divide(1, 0)"
    text = "\n".join(lines)
    assert "  attempts  started once; 1 failure counts against its retries" in text
    history = lines[lines.index("history") + 1 :]
    assert [line.split()[2] for line in history[:3]] == ["queued", "running", "failed"]
    assert "waited" in history[0]
    assert "claimed by" in history[1]
    assert f'File "{worked.folder}/jobs.py", line ' in lines[-4]
    assert lines[-1] == "  ZeroDivisionError: division by zero"


def test_a_page_of_a_success_has_its_result(worked):
    text = worked("jobs", "show", worked.ids["good"]).stdout
    assert text.endswith('result\n  "ANN"\n')
    facts = worked.data("jobs", "show", worked.ids["good"])
    assert [line["state"] for line in facts["history"]] == ["queued", "running", "succeeded"]


def test_what_a_job_says_cannot_steer_the_terminal(rota, store):
    (rota.folder / "evil.py").write_text(
        "from rota import App\napp = App()\n@app.task(retries=0)\ndef evil(text): raise ValueError('\\x1b[2J')\n"
    )
    job_id = rota("enqueue", "evil", "\x1b[2J", "--app", "evil.py").stdout.strip()
    store.append_logs([LogLine(job_id=job_id, at=0, level="info", text="a\x1b[2Jb")])
    for words in (["jobs", "show", job_id], ["jobs", "logs", job_id], ["jobs", "list"]):
        assert "\x1b" not in rota(*words).stdout


def test_logs_are_lines_and_can_be_followed_to_the_end(worked, store):
    job_id = worked.ids["good"]
    assert worked("jobs", "logs", job_id).stderr == "the job wrote nothing\n"
    store.append_logs([LogLine(job_id=job_id, at=n, level="info", text=f"line {n}") for n in range(300)])
    lines = worked("jobs", "logs", job_id).stdout.splitlines()
    assert len(lines) == 300
    assert lines[7] == "1970-01-01 00:00:00.000Z info    line 7"
    assert worked("jobs", "logs", "-f", job_id).stdout.splitlines() == lines
    assert worked.data("jobs", "logs", job_id)[299]["text"] == "line 299"
    followed = worked("jobs", "logs", "-f", job_id, "-o", "jsonl").stdout.splitlines()
    assert json.loads(followed[0])["text"] == "line 0"
    assert "--follow writes line by line" in worked("jobs", "logs", "-f", job_id, "-o", "csv", code=2).stderr


def test_one_job_is_retried_cancelled_and_deleted_by_its_id(worked):
    assert worked("jobs", "retry", worked.ids["bad"]).stdout == "retried 1 job\n"
    assert worked("jobs", "cancel", worked.ids["bad"], worked.ids["later"]).stdout == "cancelled 2 jobs\n"
    assert worked("jobs", "delete", worked.ids["bad"]).stdout == "deleted 1 job\n"
    assert states(worked) == {"good": "succeeded", "bad": "gone", "later": "cancelled", "ready": "queued"}


def test_a_reason_is_kept_in_the_history(worked):
    worked("jobs", "cancel", worked.ids["ready"], "--reason", "not needed")
    assert "not needed" in worked("jobs", "show", worked.ids["ready"]).stdout


def test_a_running_job_is_asked_to_stop(rota, started):
    job_id = rota.enqueue("hold", "gate")
    started("worker", "jobs.py").wait_for("holding")
    assert rota("jobs", "cancel", job_id).stdout == "asked 1 running job to stop\n"
    (rota.folder / "gate").touch()


def test_one_name_that_fits_nothing_changes_nothing(worked):
    said = worked("jobs", "retry", worked.ids["bad"], "nope", code=5).stderr
    assert "no job has the id 'nope', and no id begins with it; it may have been pruned. Nothing was retried" in said
    said = worked("jobs", "delete", worked.ids["bad"], worked.ids["ready"], code=6).stderr
    assert "is queued, and only succeeded, failed or cancelled jobs can be deleted; cancel a job first" in said
    assert states(worked)["bad"] == "failed"


@pytest.mark.parametrize(
    ("verb", "fits", "does_not"), [("cancel", "later", "bad"), ("retry", "bad", "good"), ("delete", "good", "later")]
)
def test_one_job_that_a_change_does_not_fit_leaves_the_others_unchanged_and_says_so(worked, verb, fits, does_not):
    before = states(worked)
    said = worked("jobs", verb, worked.ids[fits], worked.ids[does_not], code=6).stderr.replace("\n", " ")
    done = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}[verb]
    assert f"job {worked.ids[does_not]} is {before[does_not]}, and only" in said
    assert f". Nothing was {done}" in said
    assert states(worked) == before
    assert "Nothing was" not in worked("jobs", verb, worked.ids[does_not], code=6).stderr


def test_a_beginning_of_several_ids_changes_nothing(worked):
    both = zip(worked.ids["good"], worked.ids["bad"], strict=True)
    shared = "".join(one for one, _ in takewhile(lambda digits: digits[0] == digits[1], both))
    said = worked("jobs", "cancel", worked.ids["later"], shared, code=2).stderr.replace("\n", " ")
    assert f"{shared!r} begins the ids of" in said
    assert "Nothing was cancelled" in said
    assert states(worked)["later"] == "scheduled"


@pytest.mark.parametrize(
    ("verb", "name", "advice"),
    [
        ("cancel", "good", "a job that succeeded can only be deleted"),
        ("cancel", "bad", "a failed or cancelled job can be retried or deleted"),
        ("retry", "good", "to run a job that succeeded again, enqueue it again"),
        ("retry", "later", "a job that has not ended can be cancelled first, then retried"),
        ("retry", "ready", "a job that has not ended can be cancelled first, then retried"),
    ],
)
def test_a_change_that_does_not_fit_a_job_says_what_does(worked, verb, name, advice):
    assert advice in worked("jobs", verb, worked.ids[name], code=6).stderr.replace("\n", " ")


def test_states_that_a_change_does_not_fit_get_each_advice_once(worked):
    said = worked("jobs", "cancel", "--where", "state:succeeded,failed,cancelled", code=6).stderr.replace("\n", " ")
    succeeded, others = (
        "a job that succeeded can only be deleted",
        "a failed or cancelled job can be retried or deleted",
    )
    assert (said.count(succeeded), said.count(others)) == (1, 1)


def test_the_history_says_who_changed_a_job_by_hand_and_why(worked):
    job_id = worked.ids["ready"]
    worked("jobs", "cancel", job_id, "--by", "zoe", "--reason", "not needed")
    worked("jobs", "retry", job_id, "--by", "cid")
    worked("jobs", "cancel", job_id, "--by", "ann")
    reasons = [line["reason"] for line in worked.data("jobs", "show", job_id)["history"]]
    assert reasons[1:] == ["cancelled by zoe: not needed", "retried by cid", "cancelled by ann"]
    assert "cancelled by zoe: not needed" in worked("jobs", "show", job_id).stdout


def a_job_that_failed(*errors: str):
    """A job whose attempts failed with these errors; with a retry left."""
    job = accept(NewJob(id="one", task="t", payload=b"[]"), 0)
    for number, error in enumerate(errors, 1):
        now = number * 10 * SECOND
        job = claim(promote(job, now) if job.state is State.SCHEDULED else job, "w1", now, HOUR)
        job = apply(settle(job, Failed(error), FOUR_RETRIES, now + 1, 0.5))
    return job


def headings_of(job) -> list[str]:
    lines = [click.unstyle(line) for line in page(job, datetime_of(HOUR), DEFAULT)]
    return [line for line in lines if line.startswith("error")]


def test_a_page_shows_the_error_of_every_attempt():
    assert headings_of(a_job_that_failed("ValueError: a")) == ["error"]
    assert headings_of(a_job_that_failed("ValueError: a", "KeyError: b")) == [
        "error of attempt 1",
        "error of attempt 2",
    ]
    job = a_job_that_failed("ValueError: a", "ValueError: a", "KeyError: b", "ValueError: a")
    assert headings_of(job) == ["error of attempts 1 to 2", "error of attempt 3", "error of attempt 4"]
    text = click.unstyle("\n".join(page(job, datetime_of(HOUR), DEFAULT)))
    assert text.count("\n  ValueError: a") == 2
    assert text.count("\n  KeyError: b") == 1


def test_a_page_of_a_success_shows_the_errors_before_it():
    job = a_job_that_failed("ValueError: a")
    now = 100 * SECOND
    done = apply(settle(claim(promote(job, now), "w1", now, HOUR), Succeeded(), ONE_RETRY, now + 1, 0.5))
    assert headings_of(done) == ["error of attempt 1"]


def test_a_dry_run_counts_and_changes_nothing(worked):
    result = worked("jobs", "delete", "--where", "task:jobs.*", "--dry-run")
    assert result.stdout.splitlines()[-1] == "2 jobs would be deleted; nothing was changed"
    assert worked.ids["bad"] in result.stdout
    assert worked.data("jobs", "cancel", "--where", "queue:mail", "--dry-run") == {
        "action": "cancel",
        "matched": 1,
        "changed": 0,
        "left": 0,
        "dry_run": True,
    }
    assert states(worked) == {"good": "succeeded", "bad": "failed", "later": "scheduled", "ready": "queued"}


def test_all_that_match_and_fit_are_changed(worked):
    assert worked("jobs", "cancel", "--where", "since:1h", "--yes").stdout == "cancelled 2 jobs\n"
    assert worked("jobs", "retry", "--where", "state:failed", "--yes").stdout == "retried 1 job\n"
    assert worked("jobs", "delete", "--where", "task:jobs.*", "--yes").stdout == "deleted 3 jobs\n"
    assert states(worked) == {"good": "gone", "bad": "queued", "later": "gone", "ready": "gone"}
    assert worked("jobs", "retry", "--where", "state:failed", "--yes").stdout == "retried 0 jobs\n"


@pytest.mark.parametrize(
    ("verb", "where", "matched"),
    [
        ("retry", "state:failed", "1 job, and nobody can be asked here whether to retry it"),
        ("cancel", "since:1h", "2 jobs, and nobody can be asked here whether to cancel them"),
        ("delete", "task:jobs.*", "2 jobs, and nobody can be asked here whether to delete them"),
    ],
)
def test_without_a_terminal_a_change_to_all_that_match_needs_yes(worked, verb, where, matched):
    before = states(worked)
    said = worked("jobs", verb, "--where", where, code=2).stderr.replace("\n", " ")
    assert f"--where matches {matched}; add --yes, or look first with --dry-run" in said
    assert states(worked) == before


def a_running(at: int):
    job = accept(NewJob(id="one", task="t", payload=b"[]"), 0)
    return claim(job, "worker-1", at, at + HOUR)


def test_a_job_that_a_worker_returned_waits_since_then():
    job = apply(settle(a_running(10 * SECOND), Returned(), NO_RETRY, 50 * SECOND, 0.0))
    when = next(column for column in columns(datetime_of(60 * SECOND), DEFAULT) if column.title == "when")
    assert when.cell(job) == "waits 10 s"


def test_a_run_of_several_attempts_is_counted_whole():
    assert run_words(accept(NewJob(id="one", task="t", payload=b"[]"), 0)) == ""
    once = apply(settle(a_running(SECOND), Failed("Boom: it broke"), NO_RETRY, 4 * SECOND, 0.0))
    assert run_words(once) == "after 3 s"
    waits = apply(settle(a_running(SECOND), Failed("Boom: it broke"), ONE_RETRY, 4 * SECOND, 0.0))
    again = claim(promote(waits, 10 * SECOND), "worker-1", 10 * SECOND, HOUR)
    twice = apply(settle(again, Failed("Boom: it broke"), ONE_RETRY, 12 * SECOND, 0.0))
    assert run_words(twice) == "after 2 attempts in 11 s"


@pytest.mark.parametrize(
    ("die", "said"),
    [
        (lambda job: settle(job, Died("child process 7 exited"), NO_RETRY, 2, 0.0), "3 child processes died"),
        (lambda job: rescue(job, 2), "3 workers died"),
    ],
)
def test_starts_and_deaths_are_counted_as_they_were(die, said):
    job = accept(NewJob(id="one", task="t", payload=b"[]"), 0)
    for _ in range(3):
        job = apply(die(claim(job, "worker-1", 1, HOUR)))
    text = "\n".join(page(job, datetime_of(2), DEFAULT))
    assert f"started 3 times; {said} while it ran" in text
    assert "kept as failed: 3 " in text


def test_a_search_by_an_argument_says_that_older_jobs_were_not_searched(rota, monkeypatch):
    for name in ("ann", "bob", "cyd"):
        rota.enqueue("greet", name)
    whole = rota("jobs", "list", "--where", "args.0:ann")
    assert "greet('ann')" in whole.stdout
    assert whole.stderr == ""
    monkeypatch.setattr(search, "LOOKED_THROUGH", 2)
    monkeypatch.setattr(jobs, "LOOKED_THROUGH", 2)
    nothing = rota("jobs", "list", "--where", "args.0:ann").stderr.replace("\n", " ")
    assert "no job matches among the newest 2 jobs that the other terms find" in nothing
    assert "--all searches the older ones too" in nothing
    assert "--all searches the older ones too" in rota("jobs", "list", "--where", "args.0:cyd").stderr
    every = rota("jobs", "list", "--where", "args.0:ann", "--all")
    assert "greet('ann')" in every.stdout
    assert every.stderr == ""


def test_a_change_by_an_argument_says_that_older_jobs_were_not_searched(rota, monkeypatch):
    for name in ("ann", "bob", "cyd"):
        rota.enqueue("greet", name)
    assert "searched" not in rota("jobs", "cancel", "--where", "args.0:ann", "--dry-run").stderr
    monkeypatch.setattr(search, "LOOKED_THROUGH", 2)
    monkeypatch.setattr(jobs, "LOOKED_THROUGH", 2)
    cancelled = rota("jobs", "cancel", "--where", "args.0:cyd", "--yes")
    assert "cancelled 1 job" in cancelled.stdout
    assert "only the newest 2 jobs that the other terms find were searched" in cancelled.stderr.replace("\n", " ")


def test_thousands_are_changed_in_batches(rota, store):
    (rota.folder / "many.py").write_text(
        "from rota import App\napp = App()\n@app.task\ndef f(n): ...\n"
        "def fill(): app.enqueue_many([f.job(n) for n in range(2500)])\n"
    )
    from rota.cli.target import load_target  # noqa: PLC0415

    target = load_target("many.py")
    import many  # noqa: PLC0415

    many.fill()
    target.app.close()
    result = rota("jobs", "cancel", "--where", "task:many.f", "--yes")
    assert result.stdout == "cancelled 2,500 jobs\n"
    assert "cancel: 1,000 of 2,500" in result.stderr
    assert store.list_queues()[0].totals["cancelled"] == 2500


def test_a_filter_that_fits_no_job_of_the_kind_is_refused(worked):
    said = worked("jobs", "retry", "--where", "state:succeeded", code=6).stderr
    assert "succeeded jobs cannot be retried, only failed or cancelled ones" in said
    assert "enqueue it again" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "say which jobs to retry"),
        (["x", "--where", "queue:a"], "(not both)"),
        (["--where", " "], "--where is empty, which would retry every job"),
    ],
)
def test_which_jobs_must_be_said_one_way(worked, words, why):
    assert why in worked("jobs", "retry", *words, code=2).stderr


def test_jobs_that_moved_meanwhile_are_left_alone_and_told(worked, monkeypatch):
    monkeypatch.setattr(
        SqliteStore, "change_jobs", lambda _, changes: [Refusal(change.id, "lease") for change in changes]
    )
    result = worked("jobs", "retry", "--where", "state:failed", "--yes", code=1)
    assert result.stdout == "retried 0 jobs\n"
    assert "1 job moved meanwhile" in result.stderr


def test_a_time_that_is_not_understood_is_answered_with_both_forms():
    said = "'yesterday' is not a time; write how long ago, such as 2h, or a time, such as 2026-10-14T09:00Z"
    with pytest.raises(BadOption, match=said):
        filter_from("since:yesterday", 0)


def test_only_states_that_exist_are_offered():
    assert filter_from("state:queued,running", 0).states == (State.QUEUED, State.RUNNING)
