"""import: shown first, repeatable, and never over somebody's edit."""

from __future__ import annotations

import json

import yaml

from rota import App
from rota.store.contract import Node

TAB = "CRON_TZ=Europe/Berlin\n0 3 * * * backup --all\n*/5 * * * * ping\n@reboot start\n"
WORDS = ("import", "crontab", "tab", "--task", "jobs.greet", "--app", "jobs.py")


def test_a_dry_run_shows_both_rules_and_writes_nothing(rota):
    (rota.folder / "tab").write_text(TAB)
    shown = rota("import", "crontab", "tab", "--write-code", "commands.py", "--dry-run", "--tz", "UTC")
    assert "old:       0 3 * * * backup --all" in shown.stdout
    assert "new:       cron 0 3 * * * (Europe/Berlin) commands.backup_all()" in shown.stdout
    assert "@reboot names no time" in shown.stdout
    assert "nothing was written: 3 items: 2 added and 1 unsupported" in shown.stderr
    assert sorted(path.name for path in rota.folder.iterdir()) == ["jobs.py", "tab"]


def test_both_rules_are_compared_for_machines(rota):
    (rota.folder / "tab").write_text(TAB)
    facts = rota.data(*WORDS, "--dry-run")
    assert [one["state"] for one in facts] == ["add", "add", "unsupported"]
    assert facts[0]["old_runs"] == facts[0]["new_runs"]
    assert len(facts[0]["new_runs"]) == 3
    assert facts[0]["new"]["cron"] == "0 3 * * *"
    assert yaml.safe_load(rota(*WORDS, "--dry-run", "-o", "yaml").stdout)[0]["id"] == "backup-all"


def test_a_second_import_changes_what_the_first_made_and_nothing_else(rota):
    tab = rota.folder / "tab"
    tab.write_text(TAB)
    assert "3 items: 2 added and 1 unsupported" in rota(*WORDS).stderr
    assert "3 items: 2 unchanged and 1 unsupported" in rota(*WORDS).stderr
    rota("schedules", "edit", "ping", "--description", "by hand")
    tab.write_text(TAB.replace("0 3", "0 4").replace("*/5", "*/6"))
    again = rota(*WORDS)
    assert "3 items: 1 re-timed, 1 left alone and 1 unsupported" in again.stderr
    assert "schedule 'ping' is defined by the API" in again.stdout
    triggers = {one["id"]: one["trigger"] for one in rota.data("schedules", "list")}
    assert triggers == {"backup-all": {"cron": "0 4 * * *"}, "ping": {"cron": "*/5 * * * *"}}


def test_schedules_may_wait_switched_off_until_the_old_system_stops(rota):
    (rota.folder / "tab").write_text(TAB)

    def enabled():
        return {one["id"]: one["enabled"] for one in rota.data("schedules", "list")}

    rota(*WORDS, "--disabled")
    assert enabled() == {"backup-all": False, "ping": False}
    rota("schedules", "enable", "ping")
    assert "2 unchanged" in rota(*WORDS, "--disabled").stderr
    assert enabled() == {"backup-all": False, "ping": True}
    assert "2 changed" in rota(*WORDS).stderr
    assert enabled() == {"backup-all": True, "ping": True}


def test_what_left_the_source_goes_on_until_it_is_retired(rota):
    tab = rota.folder / "tab"
    tab.write_text(TAB)
    rota(*WORDS)
    tab.write_text("*/5 * * * * ping\n")
    assert "the source no longer has backup-all, and they go on; --retire" in rota(*WORDS).stderr
    assert "retired, because the source no longer has them: backup-all" in rota(*WORDS, "--retire").stderr
    assert {one["id"]: one["enabled"] for one in rota.data("schedules", "list")} == {"backup-all": False, "ping": True}


def test_another_source_does_not_replace_a_schedule_of_the_same_id(rota):
    (rota.folder / "tab").write_text("0 3 * * * backup\n")
    (rota.folder / "other").write_text("0 5 * * * backup\n")
    rota(*WORDS)
    other = ("import", "crontab", "other", "--task", "jobs.greet", "--app", "jobs.py")
    assert "1 left alone" in rota(*other).stderr
    assert "1 added" in rota(*other, "--prefix", "other-").stderr


def test_strict_writes_nothing_if_an_item_cannot_be_said(rota):
    (rota.folder / "tab").write_text(TAB)
    assert "line 4 cannot be imported, and --strict was given" in rota(*WORDS, "--strict", code=6).stderr
    assert rota.data("schedules", "list") == []


def test_a_fragment_of_rota_yaml_says_the_same(rota):
    (rota.folder / "tab").write_text(TAB)
    rota("import", "crontab", "tab", "--write-code", "commands.py", "--to", "rota.yaml", "--tz", "UTC")
    assert yaml.safe_load((rota.folder / "rota.yaml").read_text())["schedules"]["ping"] == {
        "task": "commands.ping",
        "cron": "*/5 * * * *",
        "tz": "Europe/Berlin",
        "overlap": "allow",
        "catchup": "skip",
    }
    rota("lint", "commands.py")
    rota("schedules", "apply", "--app", "commands.py")
    assert {one["id"] for one in rota.data("schedules", "list")} == {"backup-all", "ping"}


def test_an_import_may_be_the_first_thing_in_a_store(rota):
    (rota.folder / "tab").write_text(TAB)
    rota("import", "crontab", "tab", "--write-code", "commands.py")
    rota("import", "crontab", "tab", "--write-code", "commands.py")
    assert len(rota.data("schedules", "list")) == 2


def test_a_command_needs_a_task(rota):
    (rota.folder / "tab").write_text(TAB)
    assert "--write-code FILE makes a task of each line" in rota("import", "crontab", "tab", code=2).stderr


def test_tasks_may_have_other_names_and_an_unknown_one_is_told(rota):
    (rota.folder / "tab").write_text("0 3 * * * backup\n")
    (rota.folder / "names.yaml").write_text("old.run: jobs.greet\n")
    words = ("import", "crontab", "tab", "--task", "old.run", "--app", "jobs.py", "--dry-run")
    assert "the app has no task 'old.run'" in rota(*words).stdout
    assert "jobs.greet('backup')" in rota(*words, "--map", "names.yaml").stdout


def test_arguments_that_the_task_does_not_take_are_named(rota):
    (rota.folder / "tab").write_text("A=1\n0 3 * * * backup\n")
    (one,) = rota.data(*WORDS, "--dry-run")
    assert one["state"] == "unsupported"
    assert "env" in one["says"][0]


def test_what_export_writes_import_reads(rota):
    rota.sync()
    for form, file in (("yaml", "a.yaml"), ("json", "a.json"), ("jsonl", "a.jsonl")):
        (rota.folder / file).write_text(rota("export", "-o", form).stdout)
        assert "2 items: 2 unchanged" in rota("import", "rota", file, "--app", "jobs.py").stderr
        there = ("--store", f"sqlite:///there-{form}.db", "--app", "jobs.py")
        assert "2 items: 2 added" in rota("import", "rota", file, *there).stderr
        assert json.loads(rota("schedules", "list", "-o", "json", *there).stdout)[0]["origin"].startswith(
            "an import from rota "
        )


def test_a_deploy_takes_over_what_was_imported(rota):
    rota.sync()
    (rota.folder / "a.yaml").write_text(rota("export").stdout)
    there = ("--store", "sqlite:///there.db", "--app", "jobs.py")
    rota("import", "rota", "a.yaml", *there)
    rota("schedules", "apply", *there)
    found = json.loads(rota("schedules", "list", "-o", "json", *there).stdout)
    assert {one["origin"] for one in found} == {f"the code of app '{App().name}'"}


def test_a_file_that_is_none_of_ours_is_refused(rota):
    (rota.folder / "a.yaml").write_text("schedules: {}\nformat: 9\n")
    assert "has format 9, and this Rota reads 1" in rota("import", "rota", "a.yaml", code=2).stderr


def test_objects_of_other_systems_are_named_by_their_module(rota):
    (rota.folder / "shop_beat.py").write_text(
        "from celery import Celery\napp = Celery('shop', broker='memory://', set_as_current=False)\n"
        "app.conf.beat_schedule = {'a': {'task': 'jobs.greet', 'schedule': 60, 'args': ['ann']}}\n"
    )
    (rota.folder / "shop_aps.py").write_text(
        "from apscheduler.schedulers.background import BackgroundScheduler\nimport jobs\n"
        "scheduler = BackgroundScheduler(timezone='UTC')\n"
        "scheduler.add_job(jobs.greet.function, 'cron', hour=9, id='b', args=['bo'])\n"
    )
    assert "1 added" in rota("import", "celery-beat", "shop_beat:app", "--app", "jobs.py").stderr
    assert "1 added" in rota("import", "apscheduler", "shop_aps:scheduler", "--app", "jobs.py").stderr
    tasks = {one["id"]: one["task"] for one in rota.data("schedules", "list")}
    assert tasks == {"a": "jobs.greet", "b": "jobs.greet"}
    assert "is not a Celery app" in rota("import", "celery-beat", "shop_aps:scheduler", code=3).stderr


def test_a_database_that_cannot_be_read_is_told_without_its_password(rota):
    failed = rota("import", "django-celery-beat", "mysql://ann:hunter2@db/site", code=4)
    assert "sqlite:/// or postgresql://" in failed.stderr
    assert "hunter2" not in failed.stderr
    assert "cannot be read" in rota("import", "django-celery-beat", "sqlite:///none.db", code=4).stderr


def test_strict_writes_no_code_either(rota):
    (rota.folder / "tab").write_text(TAB)
    words = ("import", "crontab", "tab", "--write-code", "commands.py")
    assert "--strict was given" in rota(*words, "--strict", code=6).stderr
    (rota.folder / "part.yaml").write_text("{}\n")
    assert "part.yaml exists" in rota(*words, "--to", "part.yaml", code=2).stderr
    assert not (rota.folder / "commands.py").exists()


def test_code_is_for_its_owner_and_is_replaced_only_on_request(rota):
    tab, code = rota.folder / "tab", rota.folder / "commands.py"
    words = ("import", "crontab", "tab", "--write-code", "commands.py")
    tab.write_text("\n# nothing yet\n")
    assert "no schedules" in rota(*words).stderr
    assert not code.exists()
    tab.write_text("0 3 * * * backup\n")
    rota(*words)
    assert code.stat().st_mode & 0o777 == 0o600
    tab.write_text("0 3 * * * backup --all\n")
    assert "--overwrite replaces it" in rota(*words, code=2).stderr
    rota(*words, "--overwrite")
    assert "backup --all" in code.read_text()
    code.write_text("mine = 1\n")
    assert "is not the code of an import" in rota(*words, "--overwrite", code=2).stderr
    assert code.read_text() == "mine = 1\n"


def test_a_user_column_and_unused_names_are_told(rota):
    (rota.folder / "tab").write_text("0 3 * * * root backup\n0 4 * * * printf x\n")
    (rota.folder / "names.yaml").write_text("jobs.gone: jobs.greet\n")
    told = rota(*WORDS, "--dry-run", "--map", "names.yaml")
    assert told.stdout.count("--system reads the user column") == 1
    assert "names.yaml names jobs.gone, and no item" in told.stderr
    (rota.folder / "names.yaml").write_text("- a: b\n")
    assert "must be YAML with lines such as" in rota(*WORDS, "--map", "names.yaml", code=2).stderr


def test_letters_outside_ascii_keep_their_sound(rota):
    (rota.folder / "tab").write_text("0 3 * * * Überweisung\n")
    assert [one["id"] for one in rota.data(*WORDS, "--dry-run")] == ["Uberweisung"]


def test_the_queue_is_shown_and_named_if_no_worker_takes_it(rota, store):
    (rota.folder / "shop_beat.py").write_text(
        "from celery import Celery\napp = Celery('shop', broker='memory://', set_as_current=False)\n"
        "app.conf.beat_schedule = {'a': {'task': 'jobs.greet', 'schedule': 60, 'args': ['ann'], "
        "'options': {'queue': 'mail'}}}\n"
    )
    words = ("import", "celery-beat", "shop_beat:app", "--app", "jobs.py")
    assert "jobs.greet('ann') on queue mail" in rota(*words, "--dry-run").stdout
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), queues=("default",)))
    assert "no live worker takes queue mail" in rota(*words).stderr
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), queues=("default", "mail")))
    assert "no live worker" not in rota(*words).stderr
