"""enqueue: how words become a call, and what is printed."""

from __future__ import annotations

import json
from decimal import Decimal  # noqa: TC003 - the command reads the hint

import pytest

from rota import App
from rota.cli.enqueue import read_arguments
from rota.model.jobs.job import State


def sample():
    app = App("memory://")

    @app.task
    def sample(name: str, number: int = 1, maybe: str | None = None, **rest): ...

    return sample


@pytest.mark.parametrize(
    ("words", "args", "kwargs"),
    [
        (["ann"], ["ann"], {}),
        (["123"], ["123"], {}),  # a str parameter gets the text as typed
        (['"ann"'], ["ann"], {}),
        (["ann", "5"], ["ann", 5], {}),
        (["ann", "[1, 2]"], ["ann", [1, 2]], {}),
        (["ann", "maybe=null"], ["ann"], {"maybe": None}),
        (["name=true", "number=2"], [], {"name": "true", "number": 2}),
        (["ann", "x={}"], ["ann"], {"x": {}}),
        (["ann", "1=2"], ["ann", "1=2"], {}),
        (["a", "1", "b", "4"], ["a", 1, "b", 4], {}),
    ],
)
def test_words_become_a_call(words, args, kwargs):
    arguments = read_arguments(sample(), tuple(words))
    assert (arguments.args, arguments.kwargs) == (args, kwargs)


def test_an_amount_of_money_keeps_every_digit():
    app = App("memory://")

    @app.task
    def pay(amount: Decimal): ...

    assert read_arguments(pay, ("12345678901234567.89",)).args == ["12345678901234567.89"]


def test_a_plain_enqueue_prints_the_id_alone(rota, store):
    result = rota("enqueue", "greet", "world", "times=2", "--app", "jobs.py")
    assert result.stderr == "enqueued jobs.greet('world', times=2) on queue default\n"
    job = store.get_jobs([result.stdout.strip()])[0]
    assert (job.state, job.task) == (State.QUEUED, "jobs.greet")


def test_options_reach_the_job(rota, store):
    words = ["enqueue", "jobs.greet", "ann", "--priority", "-5", "--queue", "slow", "--key", "k", "--in", "2h"]
    result = rota(*words, "--app", "jobs.py")
    job = store.get_jobs([result.stdout.strip()])[0]
    assert (job.priority, job.queue, job.key, job.state) == (-5, "slow", "k", State.SCHEDULED)
    assert "on queue slow, due in 2 h" in result.stderr
    at = rota("enqueue", "greet", "ann", "--at", "2099-01-01T00:00Z", "--priority", "high", "--app", "jobs.py")
    job = store.get_jobs([at.stdout.strip()])[0]
    assert (job.priority, job.run_at) == (10, 4_070_908_800_000_000)


def test_a_key_that_is_taken_is_told(rota):
    first = rota.enqueue("greet", "ann", "--key", "k")
    again = rota("enqueue", "greet", "ann", "--key", "k", "--app", "jobs.py")
    assert again.stdout.strip() == first
    assert "not sent: another job that has not ended has this key; this is its id" in again.stderr


def test_json_says_what_became_of_it(rota):
    sent = json.loads(rota("enqueue", "greet", "ann", "--app", "jobs.py", "-o", "json").stdout)
    assert sent["task"] == "jobs.greet"
    assert (sent["existed"], sent["state"], sent["result"]) == (False, "queued", None)


def test_a_wait_in_json_has_the_result_or_the_error(rota, started):
    started("worker", "jobs.py").wait_for("node ")
    good = rota("enqueue", "send", "ann", "--wait", "--app", "jobs.py", "-o", "jsonl")
    assert json.loads(good.stdout)["result"] == {"sent": "ann"}
    bad = rota("enqueue", "divide", "1", "0", "--wait", "--app", "jobs.py", "-o", "jsonl", code=7)
    assert json.loads(bad.stdout)["error"].startswith("ZeroDivisionError: division by zero\nTraceback")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["greet"], "missing a required argument: 'name'"),
        (["greet", "ann", "--at", "tomorrow"], "'tomorrow' is not a time; write it as 2026-10-14T09:00Z"),
        (["greet", "ann", "--at", "2099-01-01T09:00"], "has no timezone, so it names no instant; add one, as in 2099"),
        (
            ["greet", "ann", "--in", "5"],
            "invalid value for '--in': duration '5' is not understood; write it as '90s', '1h30m', '250ms' or '0.5s'\n",
        ),
        (["greet", "nmae=ann"], "got an unexpected keyword argument 'nmae'; did you mean name?"),
        (["greet", "ann", "--in", "5m", "--at", "2099-01-01T09:00Z"], "--at and --in both say when"),
        (["greet", "ann", "--priority", "500"], "must be a whole number from -100 to 100"),
        (["greet", "ann", "--priority", "urgent"], "or low, normal or high"),
        (["greet", "ann", "--timeout", "5s"], "--timeout says how long --wait waits"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(rota, words, why):
    assert why in rota("enqueue", *words, "--app", "jobs.py", code=2).stderr
    rota("migrate")
    assert rota.data("jobs", "list") == []


def test_the_app_is_needed(rota):
    said = rota("enqueue", "greet", "ann", code=2).stderr
    assert "the app that has the task is not named: add --app jobs.py, or set ROTA_APP" in said


def test_a_value_that_its_plain_hint_does_not_take_is_refused(rota):
    told = rota("enqueue", "greet", "ann", "times=often", "--app", "jobs.py", code=2).stderr
    assert "argument 'times' of jobs.greet: Expected `int`, got `str`" in told
