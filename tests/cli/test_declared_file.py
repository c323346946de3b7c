"""Schedules, tenants and sources of rota.yaml on the command line: run, plan, apply, lint, config show."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from rota.errors import BadSettings
from rota.inspector.reading import sync_schedules
from rota.model.jobs.payload import unpack_call
from rota.model.micros import SECOND

FILE = """\
app: jobs.py
tenants:
  acme: {tz: Asia/Kolkata}
schedules:
  greeting:
    task: greet
    cron: "0 9 * * *"
    kwargs: {name: hunter2}
    tenant: acme
"""


@pytest.fixture
def declare(rota):
    def declare(text: str, name: str = "rota.yaml") -> str:
        (rota.folder / name).write_text(text)
        sys.modules.pop("jobs", None)
        return name

    return declare


def listed(rota) -> dict[str, dict]:
    return {one["id"]: one for one in rota.data("schedules", "list")}


def linted(rota, *words: str, code: int = 0) -> list[tuple[str, str, str]]:
    facts = json.loads(rota("lint", *words, "-o", "json", code=code).stdout)
    return [(fact["verdict"], fact["about"], fact["finding"]) for fact in facts]


def problems(rota, *words: str) -> list[str]:
    return [finding for verdict, _, finding in linted(rota, *words, code=1) if verdict == "problem"]


# Starting.


def test_a_start_brings_what_the_file_declares(rota, declare, started):
    declare(FILE)
    process = started("run", "--processes", "0")
    process.wait_for("greeting")
    process.wait_for(" started: ")
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    found = listed(rota)
    assert set(found) == {"greeting", "report", "tick"}
    assert (found["greeting"]["origin"], found["greeting"]["tz"]) == ("a file of app 'app'", "Asia/Kolkata")


def test_a_worker_takes_from_the_queues_that_the_file_names(rota, declare, started):
    declare(FILE.replace("tenant: acme", "queue: other"))
    process = started("worker", "--until-empty", "--processes", "0")
    assert process.end() == 0
    assert "works on queues default, mail and other" in process.stderr
    del rota


def test_a_task_that_the_files_own_app_does_not_have_ends_a_start(rota, declare):
    declare(FILE.replace("greet\n", "gret\n"))
    words = "error: rota.yaml:6: schedules.greeting.task: got 'gret', wanted a task of app 'app'; did you mean greet?\n"
    for command in (["run"], ["dev"], ["scheduler"]):
        assert rota(*command, code=2).stderr == words
    assert not (rota.folder / ".rota").exists()


def test_an_app_beside_the_files_own_leaves_its_schedules_alone(rota, declare, started):
    (rota.folder / "side.py").write_text("from rota import App\napp = App(name='side')\n@app.task\ndef t(): ...\n")
    declare(FILE)
    process = started("worker", "side.py", "--until-empty", "--processes", "0")
    assert process.end() == 0
    assert "schedules.greeting.task: got 'greet', wanted a task of app 'side'; the schedule is left alone" in (
        process.stderr
    )


def test_removing_what_the_file_declares_says_that_it_comes_back(rota, declare):
    declare(FILE)
    rota("schedules", "apply")
    assert "defined by a file of app 'app'" in rota("schedules", "remove", "greeting", code=6).stderr
    said = rota("schedules", "remove", "greeting", "--force").stderr
    assert "greeting is declared in the rota.yaml of app 'app', whose next start brings it back" in said


# Planning.


def test_a_plan_has_a_section_for_each_origin_and_apply_does_it(rota, declare):
    declare(FILE)
    planned = rota("schedules", "plan", "--check", code=1).stdout.splitlines()
    heads = [line for line in planned if not line.startswith(" ")]
    assert heads == [
        "tenants of rota.yaml",
        "+ acme  add",
        "schedules of the code of app 'app'",
        "+ report  add",
        "+ tick  add",
        "schedules of rota.yaml",
        "+ greeting  add",
    ]
    assert "IST" in planned[-1]
    facts = rota.data("schedules", "plan")
    assert [(fact["what"], fact["origin"], fact["id"]) for fact in facts] == [
        ("tenant", "file", "acme"),
        ("schedule", "code", "report"),
        ("schedule", "code", "tick"),
        ("schedule", "file", "greeting"),
    ]
    assert "applied 4 changes: 1 tenant and 3 schedules\n" in rota("schedules", "apply").stderr
    assert rota("schedules", "plan", "--check").stdout == "nothing would change\n"
    again = rota("schedules", "apply")
    assert (again.stdout, again.stderr) == ("nothing was to be changed\n", "")


def test_a_new_tenant_is_planned_with_all_that_it_says(rota, declare):
    north = "tenants:\n  north: {tz: Europe/Oslo, queue: mail, priority: 5, on_zone_change: keep_next}\n"
    declare(FILE.replace("tenants:\n", north))
    lines = rota("schedules", "plan").stdout.splitlines()
    first = lines.index("+ north  add") + 1
    assert [line.strip() for line in lines[first : first + 4]] == [
        "tz: Europe/Oslo",
        "queue: mail",
        "priority: 5",
        "on_zone_change: keep_next",
    ]


def test_a_mistyped_tenant_is_looked_for_in_the_file_too(rota, declare):
    declare(FILE.replace("tenant: acme", "tenant: acmee"))
    assert "did you mean acme?" in rota("schedules", "plan", code=5).stderr


def test_schedules_that_follow_a_changed_tenant_are_counted(rota, declare):
    declare(FILE)
    rota("schedules", "apply")
    declare(FILE.replace("Asia/Kolkata", "Asia/Tokyo"))
    planned = [line for line in rota("schedules", "plan").stdout.splitlines() if line.startswith("~")]
    said = rota("schedules", "apply").stderr
    assert [line.split()[1] for line in planned] == ["acme", "greeting"]
    assert said == "applied 2 changes: 1 tenant and 1 schedule\n"


def test_an_older_version_that_changes_nothing_is_told(rota, declare):
    declare(FILE)
    code = (rota.folder / "jobs.py").read_text()
    (rota.folder / "jobs.py").write_text(
        code.replace("App()", "App(version='2')").replace('every("1s")', 'every("20s")')
    )
    sys.modules.pop("jobs", None)
    rota("schedules", "apply")
    (rota.folder / "jobs.py").write_text(code.replace("App()", "App(version='1')"))
    sys.modules.pop("jobs", None)
    said = rota("schedules", "apply")
    assert "version 2 of its app has set it; an older one changes nothing" in said.stdout
    assert "left alone, because a newer version of this app has set them: 1 schedule\n" in said.stderr
    assert "applied" not in said.stderr


def test_what_left_the_file_is_retired_by_apply_and_the_code_is_left_alone(rota, declare):
    declare(FILE)
    rota("schedules", "apply")
    declare("app: jobs.py\n")
    assert rota("schedules", "plan").stdout.startswith("schedules of rota.yaml\n- greeting  retire\n")
    rota("schedules", "apply")
    assert {name: one["state"] for name, one in listed(rota).items()} == {
        "greeting": "retired",
        "report": "on",
        "tick": "disabled",
    }
    declare(FILE)
    assert rota.data("schedules", "plan")[0]["kind"] == "restore"


def test_a_plan_warns_of_schedules_whose_task_the_app_does_not_have(rota, declare):
    declare(FILE.replace("greet\n", "nope\n"))
    result = rota("schedules", "plan")
    assert "warning: rota.yaml:6: schedules.greeting.task: got 'nope'" in result.stderr
    assert "greeting" not in result.stdout


# Lint.


def test_a_good_file_is_well_and_its_store_is_not_touched(rota, declare):
    declare(FILE)
    assert ("ok", "declared", "1 schedule and 1 tenant in rota.yaml") in linted(rota)
    assert rota("lint").stdout.endswith("all is well\n")
    assert not (rota.folder / ".rota").exists()


def test_all_slips_of_a_file_are_problems_with_their_lines(rota, declare):
    declare("schedules:\n  a: {task: t}\n  b: {tsk: t, every: 5}\ntenants:\n  c: {}\n")
    assert [problem.split(":")[1] for problem in problems(rota)] == ["2", "3", "3", "3", "5"]
    told = rota("schedules", "list", code=2).stderr.splitlines()
    assert [line.split(":")[2] for line in told] == ["2", "3", "3", "3", "5"]


def test_a_command_tells_ten_complaints_and_how_many_more_there_are(rota, declare):
    declare("schedules:\n" + "".join(f"  s{number}: {{task: t}}\n" for number in range(13)))
    told = rota("schedules", "list", code=2).stderr.splitlines()
    assert len(told) == 11
    assert told[-1] == "and 3 more: `rota lint` shows all"


def test_tasks_and_arguments_are_checked_against_the_app(rota, declare):
    text = "app: jobs.py\nschedules:\n  a: {task: gret, every: 5m}\n  b: {task: greet, every: 5m, args: [1, 2, 3]}\n"
    declare(text)
    unfit, unknown = problems(rota)
    assert unfit.startswith("rota.yaml:4: schedules.b.args: do not fit the task (jobs.greet(name: str, times: int = …)")
    assert unknown.startswith("rota.yaml:3: schedules.a.task: got 'gret', wanted a task of app 'app'; did you mean")
    declare(text.replace("[1, 2, 3]", "[ann, often]"))
    assert problems(rota)[0].endswith("(argument 'times' of jobs.greet: Expected `int`, got `str`)")


def test_the_tasks_of_sources_are_checked_as_they_are_called(rota, declare):
    declare(
        "app: jobs.py\nsources:\n  a: {task: nope, collections: [x]}\n  b: {task: send, collections: [x]}\n"
        "  c: {task: divide, collections: [x]}\n"
    )
    unknown, unfit = problems(rota)
    assert unknown.startswith("rota.yaml:3: sources.a.task: no task is named 'nope'")
    assert unfit.startswith("rota.yaml:4: sources.b.task: jobs.send(to: str)")


def test_what_a_source_says_holds_for_its_collections(rota, declare, store):
    declare(
        "app: jobs.py\nsources:\n  shop:\n    task: divide\n    queue: slow\n    tz: Asia/Kolkata\n    timeout: 90s\n"
        "    retries: 2\n    keep: 7\n    schedule: '@daily'\n    collections: [a, {name: b, tz: Asia/Tokyo}]\n"
    )
    rota("schedules", "apply")
    one, other = (schedule.spec for schedule in sync_schedules(store))
    call = unpack_call(one.payload.encode())
    assert (one.queue, one.tz, other.tz, one.trigger) == ("slow", "Asia/Kolkata", "Asia/Tokyo", "cron 0 0 * * *")
    assert (call.retries, call.timeout, one.sync.keep) == (2, 90 * SECOND, 7)


def test_the_queues_and_the_names_of_sources_are_checked(rota, declare):
    text = (
        "app: jobs.py\nworker: {queues: [default, mail]}\nsources:\n"
        "  shop: {task: divide, queue: slow, collections: [x]}\n"
    )
    declare(text)
    warned = [finding for verdict, about, finding in linted(rota) if (verdict, about) == ("warning", "queues")]
    assert warned[0].startswith("schedule sync__shop__x put jobs into queue slow, which worker.queues (rota.yaml:2)")
    declare(text + "  a__b: {task: divide, collections: [x]}\n")
    (problem,) = problems(rota)
    assert problem.startswith("rota.yaml:5: sources.a__b: source name 'a__b': use letters and digits")


def test_files_are_checked_without_an_app_and_that_is_said(rota, declare):
    declare("app: gone.app\nschedules:\n  a: {task: t, every: 5m}\n", "one.yaml")
    declare("schedules:\n  b: {task: t, every: 5m}\n", "two.yml")
    found = linted(rota, "one.yaml", "two.yml")
    warnings = [finding for verdict, _, finding in found if verdict == "warning"]
    assert warnings[0].endswith("; the tasks that the file names in 1 place were not checked")
    assert warnings[1].startswith("no app is named, so no code was looked at; the tasks that the file names in 1 place")
    rota("lint", "one.yaml", "--strict", code=1)
    rota("lint", "one.yaml", "gone.py", code=1)
    assert ("problem", "app") in [found[:2] for found in linted(rota, "one.yaml", "gone.py", code=1)]


def test_a_file_is_checked_with_the_app_that_is_named_beside_it(rota, declare):
    declare(FILE.replace("app: jobs.py\n", "").replace("greet\n", "nope\n"), "deploy.yaml")
    assert "deploy.yaml:5: schedules.greeting.task: got 'nope'" in rota("lint", "deploy.yaml", "jobs.py", code=1).stdout
    sys.modules.pop("jobs", None)
    declare(FILE.replace("app: jobs.py\n", ""), "deploy.yaml")
    assert rota("lint", "deploy.yaml", "jobs.py").stdout.endswith("all is well\n")


@pytest.mark.parametrize(("words", "said"), [(["gone.yaml"], "no file gone.yaml"), (["a.py", "b.py"], "two targets")])
def test_what_cannot_be_looked_at_is_a_matter_of_usage(rota, words, said):
    assert said in rota("lint", *words, code=2).stderr


def test_surprises_of_the_file_are_warnings_as_those_of_the_code_are(rota, declare):
    declare(
        "app: jobs.py\nschedules:\n"
        '  night: {task: greet, args: [a], cron: "30 2 * * *", tz: America/New_York}\n'
        '  rare: {task: greet, args: [a], cron: "0 0 30 2,3 *"}\n'
        "  over: {task: greet, args: [a], every: 1h, end: 2020-01-01}\n"
        "  shaky: {task: greet, args: [a], every: 1m, jitter: 5m}\n"
        "  whose: {task: greet, args: [a], every: 1h, tenant: nobody}\n"
    )
    said = [finding for verdict, _, finding in linted(rota) if verdict == "warning"]
    assert said[0] == "rota.yaml:7: whose names the tenant nobody, which the file does not declare"
    assert any(
        line.startswith("rota.yaml:3: night: ") and "does not exist in America/New_York" in line for line in said
    )
    assert any(line.startswith("rota.yaml:4: rare: February never has day 30") for line in said)
    assert any(line.startswith("rota.yaml:5: over has no run ahead") for line in said)
    assert "rota.yaml:6: shaky has a jitter of 5m and runs every 1m" in said
    rota("lint", "--strict", code=1)


# Settings.


def test_what_the_file_declares_is_shown_with_its_line_and_without_arguments(rota, declare):
    declare(FILE + "sources:\n  shop: {task: send, collections: [orders, items]}\n")
    result = rota("config", "show")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in result.stdout.splitlines()}
    assert rows["schedules.greeting"] == "greet: cron 0 9 * * * rota.yaml:5"
    assert rows["tenants.acme"] == "Asia/Kolkata rota.yaml:3"
    assert rows["sources.shop"] == "send: orders, items rota.yaml:11"
    assert "hunter2" not in result.output
    facts = {fact["key"]: fact for fact in json.loads(rota("config", "show", "-o", "json").stdout)}
    assert facts["schedules.greeting"]["variable"] is None
    assert facts["lease"]["variable"] == "ROTA_LEASE"


def test_bad_settings_tell_how_many_more_there_are():
    assert str(BadSettings("a", "b")) == "a (and 1 more: `rota lint` shows all)"
