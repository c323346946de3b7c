"""lint: what can be known to be wrong without a store."""

from __future__ import annotations

import json
import sys

APP = "from rota import App, cron, every, once\napp = App()\n"


def found(rota, *words: str, code: int = 0, **variables: str) -> list[tuple[str, str, str]]:
    facts = json.loads(rota("lint", *words, "-o", "json", code=code, env=variables).stdout)
    return [(fact["verdict"], fact["about"], fact["finding"]) for fact in facts]


def write(rota, name: str, text: str) -> str:
    (rota.folder / name).write_text(APP + text)
    return name


def test_a_sound_project_is_well_and_its_store_is_not_touched(rota):
    (rota.folder / "rota.yaml").write_text("app: jobs.py\n")
    result = rota("lint")
    assert result.stdout.splitlines()[-1] == "all is well"
    assert f"{rota.folder}/.rota/rota.db would be used; it was not opened" in result.stdout
    assert not (rota.folder / ".rota").exists()


def test_all_that_is_wrong_with_the_settings_is_listed(rota):
    (rota.folder / "rota.yaml").write_text("leese: 1\ntz: Nowhere\n")
    problems = [finding for verdict, _, finding in found(rota, code=1, ROTA_LEASE="x") if verdict == "problem"]
    assert [problem.split(":")[0] for problem in problems] == ["rota.yaml", "rota.yaml", "ROTA_LEASE"]


def test_a_mistyped_variable_is_a_warning(rota):
    assert ("warning", "settings", "ROTA_LEESE is set, and is no setting") in found(rota, "jobs.py", ROTA_LEESE="3s")


def test_warnings_fail_only_where_that_is_asked_for(rota):
    assert found(rota, ROTA_LEESE="3s")[-1] == ("warning", "app", "no app is named, so no code was looked at")
    rota("lint", "--strict", code=1)
    rota("lint", "--strict", "jobs.py")


def test_code_that_cannot_be_loaded_is_a_problem_with_its_traceback(rota):
    (rota.folder / "broken.py").write_text("1 / 0\n")
    result = rota("lint", "broken.py", code=1)
    assert "broken.py cannot be imported (broken.py:1: ZeroDivisionError" in result.stdout
    assert 'broken.py", line 1' in result.stderr
    assert found(rota, "gone.py", code=1)[-1][0] == "problem"


MANY_MISTAKES = """
from __future__ import annotations
from rota import App, cron, every
app = App()

@app.schedule(every("1h"), overlaps="skip")
def tick() -> None: ...

RULE = cron("99 * * * *")

@app.schedule(RULE)
def tock() -> None: ...

again = tock

@app.task(max_retries=3)
def send(to: Later) -> None: ...

class Later: ...

@app.task
def fine() -> None: ...

@app.schedule(every("1x"))
def last() -> None: ...
"""


def test_all_mistakes_in_code_are_told_at_once(rota):
    (rota.folder / "many.py").write_text(MANY_MISTAKES)
    told = [
        finding for verdict, about, finding in found(rota, "many.py", code=1) if (verdict, about) == ("problem", "app")
    ]
    assert told[0] == "many.py cannot be imported"
    assert [line.split(": ")[0] for line in told[1:]] == ["many.py:6", "many.py:9", "many.py:16", "many.py:24"]
    assert "a schedule has no option 'overlaps'" in told[1]
    assert "minute field '99'" in told[2]
    assert "did you mean retries=?" in told[3]
    assert "'1x' is not understood" in told[4]
    assert "many" not in sys.modules


SETTINGS_WITH_MISTAKES = """
app: shop.py
lease: 30
worker:
  concurrency: none
tenants:
  acme: {tz: Asia/Kolkata}
  north: {tz: Nowhere}
schedules:
  a: {task: send, every: 5m, kwargs: {too: ann, number: many}}
  b: {task: report, every: 5m, kwargs: {day: tomorrow}}
  c: {task: cleen, every: 5m}
  d: {task: report, every: 5m, tenant: acmee}
  e: {task: lost, every: 5m}
  f: {task: report, every: 5x}
"""
CODE_WITH_MISTAKES = """
from datetime import date
from rota import App, every
app = App()

@app.task
def send(to: str, number: int) -> None: ...

@app.task
def report(day: date | None = None) -> None: ...

@app.task
def clean() -> None: ...

@app.task(max_retries=3)
def lost() -> None: ...

@app.schedule(every("1h"), tenant="acme2")
def mine() -> None: ...
"""


def test_mistakes_of_every_kind_are_told_in_one_run(rota):
    (rota.folder / "rota.yaml").write_text(SETTINGS_WITH_MISTAKES)
    (rota.folder / "shop.py").write_text(CODE_WITH_MISTAKES)
    told = found(rota, code=1)
    problems = [finding for verdict, _, finding in told if verdict == "problem"]
    assert [problem.partition(": ")[0] for problem in problems] == [
        "rota.yaml:3",  # lease
        "rota.yaml:5",  # concurrency
        "rota.yaml:8",  # Nowhere
        "rota.yaml:15",  # 5x
        "rota.yaml:13",  # acmee
        "shop.py cannot be imported",
        "shop.py:15",  # max_retries
        *["rota.yaml:10"] * 3,  # too=, no to=, a number that is none
        "rota.yaml:11",  # tomorrow
        "rota.yaml:12",  # cleen; `lost` is not told again
    ]
    assert "did you mean to?" in problems[7]
    assert "missing a required argument: 'to'" in problems[8]
    assert "argument 'number' of shop.send: Expected `int`, got `str`" in problems[9]
    assert ("warning", "tenants", "mine names the tenant acme2, which the file does not declare") in told


MANY_IN_ONE = """
app: jobs.py
tenants:
  acme: {tz: Asia/Kolkata, que: mail}
schedules:
  a: {task: gret, every: 5m, overlap: skipp, tenant: acmee}
  b: {task: greet, every: 5x, kwargs: {nam: ann}}
  c: {task: greet, every: 5m, grce: 5m, kwargs: {name: ann, times: many}, key_for: 1h}
  d: {task: greet, every: 5m, kwargs: [ann], jitter: x}
  e: {task: send, once: "2020-01-01T00:00:00Z", kwargs: {to: ann}, lookahed: 5m, tenant: acme}
sources:
  shop: {task: divid, keep: forever, collections: [orders]}
"""


def test_a_mistake_hides_no_other_mistake_of_the_same_declaration(rota):
    (rota.folder / "rota.yaml").write_text(MANY_IN_ONE)
    told = found(rota, code=1)
    problems = [finding for verdict, _, finding in told if verdict == "problem"]
    expected = [
        ("rota.yaml:4", "tenants.acme.que"),
        ("rota.yaml:6", "schedules.a.overlap: got 'skipp'"),
        ("rota.yaml:7", "schedules.b.every: got '5x'"),
        ("rota.yaml:8", "schedules.c.grce: there is no such key"),
        ("rota.yaml:9", "schedules.d.kwargs: got"),
        ("rota.yaml:9", "schedules.d.jitter: got 'x'"),
        ("rota.yaml:10", "schedules.e.lookahed: there is no such key"),
        ("rota.yaml:12", "sources.shop.keep: got"),
        ("rota.yaml:6", "a names the tenant acmee"),
        ("rota.yaml:6", "schedules.a.task: got 'gret', wanted a task of app 'app'; did you mean greet?"),
        ("rota.yaml:7", "unexpected keyword argument 'nam'"),
        ("rota.yaml:7", "missing a required argument: 'name'"),
        ("rota.yaml:8", "argument 'times' of jobs.greet"),
        ("rota.yaml:8", "key_for="),
        ("rota.yaml:12", "sources.shop.task"),
    ]
    for place, words in expected:
        assert any(line.startswith(f"{place}: ") and words in line for line in problems), (words, problems)
    assert len(problems) == len(expected)
    assert any("e has no run ahead" in finding for verdict, _, finding in told if verdict == "warning")


def test_a_file_that_registers_its_tasks_with_an_app_elsewhere_is_told_once(rota):
    (rota.folder / "base.py").write_text("from rota import App\napp = App()\n")
    (rota.folder / "parts.py").write_text(
        "from base import app\n@app.task\ndef one(): ...\n@app.task(max_retries=1)\ndef two(): ...\n"
        "@app.task(queues=1)\ndef three(): ...\n"
    )
    (rota.folder / "whole.py").write_text("from base import app\nimport parts\n")
    told = [finding for _, about, finding in found(rota, "whole.py", code=1) if about == "app"]
    assert [line.partition(": ")[0] for line in told] == ["whole.py cannot be imported", "parts.py:4", "parts.py:6"]
    assert not {"parts", "whole"} & sys.modules.keys()


def test_code_that_fails_by_itself_after_a_mistake_is_not_run_further(rota):
    (rota.folder / "two.py").write_text("from rota import cron\ncron('x')\n1 / 0\ncron('y')\n")
    told = [finding for _, about, finding in found(rota, "two.py", code=1) if about == "app"]
    assert told[0] == "two.py cannot be imported"
    assert [line.partition(": ")[0] for line in told[1:]] == ["two.py:2", "two.py:3"]
    assert told[2] == "two.py:3: ZeroDivisionError: division by zero; the rest of the file was not run"


def test_code_is_looked_at_though_the_settings_are_bad(rota):
    (rota.folder / "rota.yaml").write_text("leese: 1\n")
    assert ("problem", "app", "idle.py:app has no task") not in found(rota, "jobs.py", code=1)
    name = write(rota, "idle.py", "")
    assert ("problem", "tasks", "the app has no task, so there is nothing to run") in found(rota, name, code=1)


def test_a_store_that_there_is_not_is_a_problem(rota):
    findings = found(rota, "jobs.py", code=1, ROTA_STORE="what://ann:hunter2@host")
    assert [about for verdict, about, _ in findings if verdict == "problem"] == ["store"]
    assert "hunter2" not in str(findings)


def test_processes_cannot_share_what_lives_in_one_of_them(rota):
    findings = found(rota, "jobs.py", code=1, ROTA_STORE="memory://", ROTA_WORKER_PROCESSES="3")
    assert ("problem", "store", "3 worker processes cannot share it (worker.processes)") in findings


def test_a_setting_that_the_code_overrules_is_a_warning(rota):
    (rota.folder / "fixed.py").write_text("from rota import App\napp = App(tz='Asia/Tokyo')\n@app.task\ndef t(): ...\n")
    finding = "ROTA_TZ says tz, and so does the code, which counts"
    assert ("warning", "settings", finding) in found(rota, "fixed.py", ROTA_TZ="UTC")


def test_a_queue_that_no_worker_takes_is_a_warning(rota):
    (rota.folder / "rota.yaml").write_text("app: jobs.py\nworker:\n  queues: [default]\n")
    finding = "jobs.send put jobs into queue mail, which worker.queues (rota.yaml:3) leaves out"
    assert ("warning", "queues", finding) in found(rota)


def test_a_task_that_a_process_would_not_find_is_a_problem(rota):
    (rota.folder / "plain.py").write_text("def work(): ...\n")
    own = "@app.task(executor='process')\ndef own(): ...\n"
    name = write(rota, "apart.py", f"import plain\napp.task(executor='process')(plain.work)\n{own}")
    problems = [finding for verdict, _, finding in found(rota, name, code=1) if verdict == "problem"]
    finding = "plain.work has executor='process', and a process that imports plain does not find it there"
    assert problems == [finding]


def test_clock_changes_and_rare_dates_are_warnings(rota):
    name = write(
        rota,
        "timed.py",
        "@app.schedule(cron('30 2 * * *', tz='America/New_York'))\ndef night(): ...\n"
        "@app.schedule(cron('0 0 30 2,3 *'))\ndef rare(): ...\n"
        "@app.schedule(cron('*/5 * * * *', tz='America/New_York'))\ndef often(): ...\n",
    )
    said = [finding for verdict, _, finding in found(rota, name) if verdict == "warning"]
    assert any(line.startswith("night: ") and "does not exist in America/New_York" in line for line in said)
    assert any(line.startswith("rare: February never has day 30") for line in said)
    assert not any(line.startswith("often") for line in said)


def test_a_collection_that_only_people_sync_is_no_warning(rota):
    name = write(rota, "synced.py", "@app.sources.declare('shop', ['countries'])\ndef sync(source, collection): ...\n")
    assert [finding for verdict, _, finding in found(rota, name) if verdict == "warning"] == []


def test_a_schedule_without_a_run_ahead_or_with_too_much_jitter_is_a_warning(rota):
    name = write(
        rota,
        "odd.py",
        "from datetime import UTC, datetime\n"
        "@app.schedule(once(datetime(2020, 1, 1, tzinfo=UTC)))\ndef over(): ...\n"
        "@app.schedule(every('1h'), end=datetime(2020, 1, 1, tzinfo=UTC))\ndef ended(): ...\n"
        "@app.schedule(every('1m'), jitter='5m')\ndef shaky(): ...\n",
    )
    said = [finding for verdict, _, finding in found(rota, name) if verdict == "warning"]
    assert said[0].startswith("over has no run ahead")
    assert said[1].startswith("ended has no run ahead")
    assert said[2] == "shaky has a jitter of 5m and runs every 1m"


def test_cron_text_that_is_surely_not_meant_is_a_warning(rota):
    name = write(
        rota,
        "meant.py",
        "@app.schedule(cron('0/1 * 0 ? * * *'))\ndef burst(): ...\n"
        "@app.schedule(cron('0 */24 * * *'))\ndef daily(): ...\n"
        "@app.schedule(cron('0 0 2,*/25,*/12 * TUE'))\ndef either(): ...\n",
    )
    said = [finding for verdict, _, finding in found(rota, name) if verdict == "warning"]
    assert len(said) == 3
    assert said[0].startswith("burst: it runs every second of the times that it names, 3,600 times on each such day")
    assert said[1].startswith("daily: hour field '*/24': the step leaves one value only, hour 0")
    assert said[2].endswith("it runs on days that match either one (or), as Unix cron does")


def test_an_alert_rule_about_a_schedule_or_queue_that_the_app_lacks_is_a_warning(rota):
    declared = '@app.schedule(every("1h"), id="hourly")\n@app.task(queue="mail")\ndef send() -> None: ...\n'
    (rota.folder / "rota.yaml").write_text(
        "alerts:\n  a: {when: fails, schedule: hourlyy}\n  b: {when: no_worker, queue: mial}\n"
        "  c: {when: fails, schedule: other}\n  d: {when: fails, schedule: hourly}\n"
        "  e: {when: fails, schedule: 'x*'}\n  f: {when: no_worker, queue: acme}\n"
        "tenants:\n  acme: {tz: UTC, queue: acme}\n"
        "channels:\n  ops: {webhook: 'https://example.org/hook', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}\n"
    )
    facts = json.loads(rota("lint", write(rota, "watched.py", declared), "-o", "json").stdout)
    said = [(fact["finding"].partition(": ")[2], fact["todo"]) for fact in facts if fact["about"] == "alerts"]
    assert said == [
        ("alert rule a watches the schedule hourlyy, which the app does not declare", "did you mean hourly?"),
        ("alert rule b watches the queue mial, which the app does not declare", "did you mean mail?"),
        (
            "alert rule c watches the schedule other, which the app does not declare",
            "keep it if the schedule is made at run time",
        ),
    ]
