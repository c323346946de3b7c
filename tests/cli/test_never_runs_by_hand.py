"""What can never run: refused where somebody adds it by hand, a warning where a file or the code declares it."""

from __future__ import annotations

import json
import sys

import pytest

FILE = """\
app: jobs.py
schedules:
  over: {task: greet, once: "2020-01-01T00:00:00Z", kwargs: {name: ann}}
  ended: {task: greet, every: 1h, end: "2020-01-01T00:00:00Z", kwargs: {name: ann}}
  sound: {task: greet, every: 1h, kwargs: {name: ann}}
"""
WORDS = {
    "over": "have no run after now",
    "ended": "its end, 2020-01-01T00:00:00+00:00, has passed",
}


@pytest.fixture
def declared(rota):
    (rota.folder / "rota.yaml").write_text(FILE)
    sys.modules.pop("jobs", None)
    return rota


ADDED = {
    "once": (["--once", "2020-01-01T00:00Z"], "have no run after now"),
    "an end": (["--every", "1h", "--end", "2020-01-01T00:00Z"], "its end, 2020-01-01T00:00:00+00:00, has passed"),
    "between its bounds": (
        ["--cron", "0 0 29 2 *", "--start", "2097-01-01T00:00Z", "--end", "2099-01-01T00:00Z"],
        "have no run after now within its start and end",
    ),
}


@pytest.mark.parametrize(("options", "why"), ADDED.values(), ids=ADDED)
def test_a_schedule_added_by_hand_that_can_never_run_is_refused(rota, options, why):
    rota.sync()
    answer = rota("schedules", "add", "late", "report", *options, "--app", "jobs.py", code=2)
    assert "schedule 'late' would never run: " in answer.stderr
    assert why in answer.stderr
    assert "late" not in [one["id"] for one in rota.data("schedules", "list")]


def test_a_plan_warns_of_what_a_file_declares_and_can_never_run(declared):
    lines = declared("schedules", "plan").stdout.splitlines()
    for name, words in WORDS.items():
        warning = lines[lines.index(f"+ {name}  add") + 1]
        assert warning.strip().startswith("warning: it has no run ahead: ")
        assert words in warning
    assert sum("warning" in line for line in lines) == len(WORDS)


def test_lint_warns_of_it(declared):
    facts = json.loads(declared("lint", "-o", "json").stdout)
    warned = [fact["finding"] for fact in facts if "has no run ahead" in fact["finding"]]
    assert [finding.split()[1] for finding in warned] == ["over", "ended"]


def test_what_can_never_run_keeps_nothing_else_from_being_applied(declared):
    declared("schedules", "apply")
    known = {one["id"]: one["state"] for one in declared.data("schedules", "list")}
    assert (known["over"], known["ended"], known["sound"]) == ("finished", "finished", "on")
