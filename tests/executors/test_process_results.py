"""A task in a process of its own gives what it would give in a thread: results, errors, signals, its job, its log."""

from __future__ import annotations

import json
import os

import pytest

from executors import deeds
from executors.bench import pid_in
from rota.engine.executors.job_log import MOST_BYTES, MOST_LINES
from rota.model.jobs.outcome import Failed, RetryAsked, Snoozed, Stopped, Succeeded
from rota.model.micros import SECOND


def test_a_result_comes_back_as_json(shared):
    assert shared.do(deeds.add.job(2, b=3)) == Succeeded(b"5")


def test_tasks_run_in_another_process_which_is_kept_and_is_a_session_of_its_own(bench):
    first = json.loads(bench.result(deeds.parent_of.job()))
    second = json.loads(bench.result(deeds.parent_of.job()))
    assert first == second
    assert first == [first[0], os.getpid(), first[0]]
    assert first[0] != os.getpid()


def test_two_jobs_run_at_once_in_two_children(shared, tmp_path):
    words = [tmp_path / "one", tmp_path / "two"]
    doings = [shared.begin(deeds.looks_whether_cancelled.job(str(word))) for word in words]
    assert len({pid_in(word) for word in words}) == 2
    for doing in doings:
        doing.run.stop("enough")
    assert [doing.outcome() for doing in doings] == [Stopped("enough")] * 2


def test_the_job_is_known_in_the_child(shared):
    doing = shared.begin(deeds.about_me.using(meta={"from": "me"}).job(), schedule_id="nightly", fire_at=0)
    seen = json.loads(doing.outcome().result)
    assert seen.pop("meta")["from"] == "me"
    assert seen == {
        "id": doing.run.job.id,
        "attempt": 1,
        "schedule_id": "nightly",
        "occurrence": "1970-01-01T00:00:00+00:00",
        "cancelled": False,
    }


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("retry", RetryAsked(5 * SECOND, "Retry: not yet")),
        ("snooze", Snoozed(3_600 * SECOND, "snoozed")),
        ("cancel", Stopped("the order is gone")),
    ],
)
def test_signals_mean_the_same_as_anywhere(shared, kind, outcome):
    assert shared.do(deeds.raises.job(kind)) == outcome


def test_an_exception_fails_the_attempt_with_its_traceback(shared):
    outcome = shared.do(deeds.raises.job("no such order"))
    assert isinstance(outcome, Failed)
    assert outcome.may_retry
    assert outcome.error.startswith("ValueError: no such order\nTraceback")
    assert "deeds.py" in outcome.error


def test_sys_exit_is_an_exception_like_any_other(shared):
    outcome = shared.do(deeds.raises.job("exit"))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("SystemExit: 3")


def test_a_result_that_json_cannot_keep_fails(shared):
    outcome = shared.do(deeds.returns_an_object.job())
    assert outcome.error.startswith("BadResult")


def test_a_task_cannot_enqueue_into_a_store_that_it_does_not_share(shared):
    assert shared.do(deeds.enqueues.job()).error.startswith("StoreError: the worker's store lives in its own process")


def test_a_task_cannot_end_its_job_in_a_transaction(shared):
    assert shared.do(deeds.refuses_a_transaction.job()).error.startswith("LookupError: finish_in() needs the worker's")


# What it writes.


def test_prints_errors_and_log_records_are_kept_in_order_with_their_levels(shared):
    assert shared.begin(deeds.talks.job()).lines() == [
        ("info", "hello"),
        ("error", "trouble"),
        ("warning", "careful"),
        ("error", "broken"),
        ("info", "bye"),
    ]


def test_output_of_c_code_subprocesses_and_bytes_is_kept(shared):
    lines = shared.begin(deeds.talks_below_python.job()).lines()
    assert ("error", "its trouble") in lines
    texts = [text for level, text in lines if level == "info"]
    texts.remove("from C")  # C may keep it until the task ends
    assert texts == ["from a shell", "from a descriptor", "b\\xfctes \\xff"]


def test_a_task_may_close_stdout_and_the_next_one_has_it_again(bench):
    assert bench.begin(deeds.closes_stdout.job()).lines() == [("info", "before"), ("info", "after")]
    assert ("info", "from a shell") in bench.begin(deeds.talks_below_python.job()).lines()


def test_a_flood_is_capped_and_survived(bench):
    doing = bench.begin(deeds.floods.job())
    assert doing.outcome() == Succeeded(b"100")
    lines = doing.lines()
    assert lines[-1][0] == "system"
    assert "full" in lines[-1][1]
    assert len(lines) <= MOST_LINES + 1
    assert sum(len(text) for _, text in lines) <= MOST_BYTES + 200
    assert bench.begin(deeds.talks.job()).lines()[0] == ("info", "hello")


def test_a_fork_of_the_task_gives_no_second_result(bench):
    doing = bench.begin(deeds.forks.job(""))
    assert doing.outcome() == Succeeded(b'"the parent\'s result"')
    assert doing.lines() == [("info", "from the fork")]
    assert bench.result(deeds.add.job(1, 1)) == b"2"


def test_a_fork_that_lives_on_does_not_hold_up_the_job(bench, tmp_path):
    doing = bench.begin(deeds.forks.job(str(tmp_path / "word")))
    assert doing.outcome() == Succeeded(b'"the parent\'s result"')
    assert bench.result(deeds.add.job(1, 1)) == b"2"
    os.kill(pid_in(tmp_path / "word"), 9)
