"""Settings as commands use them: found, shown with where they were said, and obeyed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from cli.processes import PATIENCE, environment

CODE_SAYS = "from rota import App\napp = App('sqlite:///code.db', tz='Europe/Paris')\n@app.task\ndef t(): ...\n"


def shown(rota, *words: str, **variables: str) -> dict[str, tuple]:
    found = json.loads(rota("config", "show", *words, "-o", "json", env=variables).stdout)
    return {facts["key"]: (facts["value"], facts["origin"]) for facts in found}


def test_each_value_is_shown_with_where_it_was_said(rota):
    (rota.folder / "rota.yaml").write_text("lease: 20s\nworker:\n  queues: [mail, default]\n  recycle_memory: 1G\n")
    found = shown(rota, ROTA_DRAIN="5s", ROTA_LEASE="40s")
    assert found["lease"] == ("40s", "ROTA_LEASE")
    assert found["drain"] == ("5s", "ROTA_DRAIN")
    assert found["worker.queues"] == (["mail", "default"], "rota.yaml:3")
    assert found["worker.recycle_memory"] == ("1G", "rota.yaml:4")
    assert found["worker.concurrency"] == (16, "default")
    assert found["log.level"] == (None, "default")
    assert found["store"] == (f"sqlite:///{rota.folder}/.rota/rota.db", "default")


def test_options_come_last(rota):
    found = shown(rota, "--store", "sqlite:///mine.db", "--app", "jobs.py", ROTA_STORE="sqlite:///other.db")
    assert found["store"] == ("sqlite:///mine.db", "--store")
    assert found["app"] == ("jobs.py", "--app")


def test_what_the_code_says_counts_and_what_it_overrules_is_named(rota):
    (rota.folder / "said.py").write_text(CODE_SAYS)
    (rota.folder / "rota.yaml").write_text("app: said.py\nstore: sqlite:///file.db\n")
    result = rota("config", "show", env={"ROTA_STORE": "sqlite:///variable.db"})
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert rows["store"].endswith("code (not rota.yaml:2, ROTA_STORE)")
    assert "sqlite:///code.db" in rows["store"]
    assert rows["tz"].split() == ["tz", "Europe/Paris", "code"]


def test_the_settings_are_shown_though_the_code_cannot_be_loaded(rota):
    (rota.folder / "rota.yaml").write_text("app: gone.py\nlease: 5s\n")
    result = rota("config", "show")
    assert "warning: what the code says is not shown: there is no file gone.py" in result.stderr
    assert "rota.yaml:2" in result.stdout


def test_secrets_in_urls_are_masked(rota):
    url = "postgresql://ann:hunter2@host/db?sslpassword=hunter3&application_name=x"
    assert shown(rota, ROTA_STORE=url)["store"][0] == "postgresql://ann:***@host/db?sslpassword=***&application_name=x"
    assert "hunter" not in rota("config", "show", "--store", url).output


def test_the_file_is_named_and_another_may_be_chosen(rota):
    assert rota("config", "show").stderr.startswith("no rota.yaml in this folder or above it")
    (rota.folder / "rota.yaml").write_text("lease: 20s\n")
    (rota.folder / "other.yaml").write_text("lease: 50s\n")
    assert f"settings file: {rota.folder}/rota.yaml" in rota("config", "show").stderr
    assert shown(rota, "--config", "other.yaml")["lease"] == ("50s", "other.yaml:1")
    assert shown(rota, ROTA_CONFIG="other.yaml")["lease"] == ("50s", "other.yaml:1")
    assert "ROTA_CONFIG" not in os.environ
    said = rota("config", "show", "--config", "gone.yaml", code=2).stderr
    assert said == f"error: --config names {rota.folder}/gone.yaml, and there is no such file\n"


def test_bad_settings_end_any_command_with_2(rota):
    (rota.folder / "rota.yaml").write_text("\nleese: 30s\n")
    for words in (["config", "show"], ["jobs", "list"], ["dev"], ["migrate"], ["enqueue", "greet"]):
        assert (
            rota(*words, code=2).stderr == "error: rota.yaml:2: leese: there is no such setting; did you mean lease?\n"
        )


def test_help_needs_no_good_settings_and_no_yaml(rota):
    (rota.folder / "rota.yaml").write_text("[")
    assert "--config FILE" in rota("jobs", "list", "--help").stdout
    assert rota("next", "0 9 * * *").stdout


def test_commands_find_the_app_in_the_file_from_any_folder_below_it(rota, monkeypatch):
    (rota.folder / "rota.yaml").write_text("app: jobs.py\n")
    job_id = rota("enqueue", "greet", "ann").stdout.strip()
    (rota.folder / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(rota.folder / "deep" / "down")
    sys.modules.pop("jobs")
    assert rota.data("jobs", "list")[0]["id"] == job_id
    assert not (rota.folder / "deep" / "down" / ".rota").exists()
    assert rota.data("jobs", "list", "--app", "../../jobs.py")[0]["id"] == job_id


def test_a_module_that_the_file_names_is_imported_from_beside_it(rota, monkeypatch):
    (rota.folder / "shop_app.py").write_text(CODE_SAYS)
    (rota.folder / "rota.yaml").write_text("app: shop_app:app\n")
    (rota.folder / "deep").mkdir()
    monkeypatch.chdir(rota.folder / "deep")
    assert rota("lint").stdout.splitlines()[1].split() == ["ok", "app", "shop_app:app", "is", "loaded:", "1", "task"]


def test_the_store_of_the_file_is_used_and_its_path_begins_beside_it(rota, monkeypatch):
    (rota.folder / "rota.yaml").write_text("app: jobs.py\nstore: sqlite:///from_file.db\nnamespace: shop\n")
    (rota.folder / "deep").mkdir()
    monkeypatch.chdir(rota.folder / "deep")
    rota("enqueue", "greet", "ann")
    assert f"sqlite file {rota.folder}/from_file.db" in rota("stats").stdout
    assert rota("health").stdout == f"healthy: sqlite file {rota.folder}/from_file.db, namespace shop answers\n"
    assert not (rota.folder / ".rota").exists()


def test_a_store_command_needs_no_app_where_the_settings_name_the_store(rota):
    (rota.folder / "rota.yaml").write_text("store: sqlite:///bare.db\nnamespace: shop\n")
    assert "bare.db, namespace shop is up to date now" in rota("migrate").stderr
    assert rota("queues", "list").stderr == f"sqlite file {rota.folder}/bare.db, namespace shop has no queues yet\n"
    assert rota("doctor").exit_code == 0


def test_code_that_names_its_store_is_not_moved_by_a_variable_and_that_is_told(rota):
    (rota.folder / "said.py").write_text(CODE_SAYS)
    rota("migrate", "--app", "said.py")
    result = rota("stats", "--app", "said.py", env={"ROTA_STORE": "sqlite:///variable.db"})
    assert f"sqlite file {rota.folder}/code.db" in result.stdout
    rota("stats", "--app", "said.py", "--store", "sqlite:///variable.db", code=4)


def test_a_worker_obeys_the_settings(rota, started):
    settings = "app: jobs.py\nlog: {level: warning}\nworker: {concurrency: 3, queues: [mail], processes: 1}\n"
    (rota.folder / "rota.yaml").write_text(settings)
    process = started("worker", "--until-empty")
    assert process.end() == 0
    assert "works on queue mail, 3 jobs at once" in process.stderr
    assert " INFO " not in process.stderr
    process = started("worker", "--until-empty", "-q", "default", "-c", "2", "--log-level", "info")
    assert process.end() == 0
    assert "works on queue default, 2 jobs at once" in process.stderr
    assert " INFO " in process.stderr


def test_a_shell_that_completes_words_is_not_disturbed_by_bad_settings(folder):
    (folder / "rota.yaml").write_text("leese: 1")
    told = environment(_ROTA_COMPLETE="bash_complete", COMP_LINE="rota jobs list --wh", COMP_WORD="--wh")
    command = Path(sys.executable).parent / "rota"
    ran = subprocess.run([command], env=told, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (ran.stdout.strip(), ran.stderr) == ("plain,--where", "")
