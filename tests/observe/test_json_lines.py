"""Log lines as JSON: one object each, with what is known of the job or schedule, and without secrets or arguments."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from rota.cli.text_lines import TextLines
from rota.observe.json_lines import JsonLines

A44 = {"level", "msg", "component", "schedule_id", "job_name", "job_id", "priority", "next_run"}


def line(text: str, *args: object, name: str = "rota.job", **extra: object) -> dict:
    record = logging.LogRecord(name, logging.WARNING, "file.py", 1, text, args, None)
    record.__dict__.update(extra)
    written = JsonLines().format(record)
    assert "\n" not in written
    return json.loads(written)


def lines_of(process) -> list[dict]:
    return [json.loads(text) for text in process.lines]


def test_a_plain_record(stage):
    del stage
    told = line("node %s started", "n1", name="rota.node")
    assert told["time"].endswith("Z")
    assert (told["level"], told["logger"], told["msg"]) == ("warning", "rota.node", "node n1 started")
    assert told["component"] == "node"
    assert set(told) == {"time", "level", "logger", "msg", "component"}


@pytest.mark.parametrize(
    ("logger", "component"),
    [("rota.schedule", "scheduler"), ("rota.job", "worker"), ("rota.store", "store"), ("shop.mail", "app")],
)
def test_the_component_is_the_part_that_speaks(logger, component):
    assert line("x", name=logger)["component"] == component


def test_an_event_gives_its_fields():
    said = {
        "event": "job.retried",
        "job_id": "j1",
        "task": "mail.send",
        "schedule_id": "nightly",
        "priority": 5,
        "run_at": 1_790_000_000_000_000,
        "error": "ValueError: no\nTraceback …",
        "reason": None,
    }
    told = line("job failed: ValueError: no\nTraceback …", rota=said)
    assert told["job_name"] == "mail.send"
    assert (told["schedule_id"], told["job_id"], told["priority"]) == ("nightly", "j1", 5)
    assert told["next_run"] == "2026-09-21T14:13:20.000Z"
    assert told["msg"] == "job failed: ValueError: no", "the rest is in the field"
    assert told["error"].endswith("Traceback …")
    assert "reason" not in told


def test_an_exception_is_one_field():
    try:
        int("postgresql://me:hunter2@host/db")
    except ValueError:
        told = line("it failed", exc_info=sys.exc_info())
    assert told["msg"] == "it failed"
    assert told["exception"].startswith("Traceback")
    assert "hunter2" not in told["exception"]
    assert "postgresql://me:***@host/db" in told["exception"]


def test_what_json_cannot_keep_is_told_in_some_way():
    told = line("broken \ud800 text", rota={"event": "x", "what": object(), "map": {1: {"a": (1, 2)}}})
    assert told["msg"] == "broken \\ud800 text"
    assert told["what"].startswith("<object")
    assert told["map"] == {"1": {"a": "(1, 2)"}}


def test_an_extra_of_that_name_that_is_none_of_ours_harms_nothing():
    assert line("x", rota="theirs")["msg"] == "x"


def test_text_lines_are_as_before_and_masked():
    record = logging.LogRecord("rota.job", logging.INFO, "f", 1, "at redis://:hunter2@host/0", (), None)
    written = TextLines(has_colours=False).format(record)
    assert written.endswith(" INFO    rota.job: at redis://:***@host/0")


def test_a_process_writes_json_lines_and_nothing_else(rota, started, folder):
    jobs = folder / "jobs.py"
    jobs.write_text(
        jobs.read_text()
        + """

@app.schedule(every("1s"), id="often", priority=7, description="as often as can be")
def often():
    import logging
    logging.getLogger("shop").warning("written inside")


@app.task(retries=0)
def breaks(word):
    raise ValueError("no")
"""
    )
    rota("enqueue", "jobs.breaks", "canary-argument", "--app", "jobs.py")
    process = started("run", "jobs.py", "--processes", "0", "--log-format", "json")
    process.wait_for("schedule often (as often as can be) fired")
    process.wait_for("written inside")
    process.wait_for("failed for good")
    process.signal(15)
    assert process.end() == 0
    told = lines_of(process)
    (fired, *_) = [each for each in told if each.get("event") == "schedule.fired" and each["schedule_id"] == "often"]
    assert fired["job_name"] == "jobs.often"
    assert fired["priority"] == 7
    assert fired["next_run"].endswith("Z")
    assert (fired["description"], bool(fired["job_id"])) == ("as often as can be", True)
    assert f"fired jobs.often as job {fired['job_id']}; next at" in fired["msg"]
    (inside, *_) = [each for each in told if each["msg"] == "written inside"]
    assert (inside["component"], inside["schedule_id"], inside["priority"]) == ("app", "often", 7)
    assert inside["job_id"]
    (failed,) = [each for each in told if each.get("event") == "job.failed"]
    assert A44 & set(failed) == {"level", "msg", "component", "job_name", "job_id", "priority"}
    assert "canary-argument" not in process.stderr
    starts = [each["msg"] for each in told if each["logger"] == "rota.node" and each["level"] == "info"]
    assert [word for words in starts for word in ("started", "stopped") if word in words] == ["started", "stopped"]


def test_a_line_per_job_must_be_asked_for(rota, started):
    for level, is_told in (("info", False), ("debug", True)):
        rota.enqueue("jobs.greet", "ann")
        process = started(
            "worker", "jobs.py", "--processes", "0", "--until-empty", "--log-format", "json", "--log-level", level
        )
        assert process.end() == 0
        assert any(each.get("event") == "job.succeeded" for each in lines_of(process)) is is_told


def test_the_setting_and_the_variable_count_and_the_parent_follows(started):
    process = started("worker", "jobs.py", env={"ROTA_LOG_FORMAT": "json"})
    process.wait_for('"component":"node"')
    process.signal(1)
    process.wait_for("all workers have been replaced")
    process.signal(15)
    assert process.end() == 0
    parents = [each for each in lines_of(process) if each["logger"] == "rota.parent"]
    assert parents
    assert {each["component"] for each in parents} == {"parent"}


def test_another_form_is_refused(rota):
    assert "--log-format" in rota("worker", "jobs.py", "--log-format", "xml", code=2).stderr
