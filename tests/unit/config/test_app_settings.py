"""An app and the settings: read when they are first needed, overruled by what the code says, never at import."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rota import App, cron, every
from rota.app import internals
from rota.errors import BadSettings
from rota.model.micros import SECOND
from rota.store.contract import Retention
from rota.store.memory import MemoryStore
from rota.testing import Kit


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("ROTA_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place(app: App) -> str:
    return str(internals(app).store.find().path)


def test_the_store_of_the_file_is_used_where_the_code_names_none(folder, monkeypatch):
    (folder / "rota.yaml").write_text("store: sqlite:///file.db\n")
    assert place(App()) == f"{folder}/file.db"
    monkeypatch.setenv("ROTA_STORE", "sqlite:///variable.db")
    assert place(App()) == f"{folder}/variable.db"


def test_what_the_code_says_counts_and_a_variable_without_effect_is_told_once(folder, monkeypatch, caplog):
    (folder / "rota.yaml").write_text("store: sqlite:///file.db\ntz: Asia/Tokyo\nnamespace: filed\n")
    monkeypatch.setenv("ROTA_STORE", "sqlite:///variable.db")
    app = App("sqlite:///code.db", name="shop", tz="Europe/Paris", namespace="coded", lease="7s")
    assert place(app) == f"{folder}/code.db"
    assert (app.settings.tz, app.settings.namespace, app.settings.lease) == ("Europe/Paris", "coded", 7 * SECOND)
    assert [record.message for record in caplog.records] == [
        "ROTA_STORE has no effect: the code of app 'shop' gives its own store"
    ]


@pytest.mark.usefixtures("folder")
def test_two_apps_in_one_process_keep_their_own_stores_whatever_the_environment(monkeypatch):
    monkeypatch.setenv("ROTA_STORE", "sqlite:///variable.db")
    assert place(App("sqlite:///a.db")) != place(App("sqlite:///b.db"))


@pytest.mark.usefixtures("folder")
def test_a_store_that_the_code_made_itself_is_used_without_a_word(monkeypatch, caplog):
    monkeypatch.setenv("ROTA_STORE", "sqlite:///variable.db")
    store = MemoryStore()
    assert internals(App(store)).store.find() is store
    assert caplog.records == []


def test_the_default_store_is_beside_the_file_else_in_the_apps_folder(folder, monkeypatch):
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    app = App()
    internals(app).store.folder = folder / "elsewhere"  # as a target's loader does
    assert place(app) == f"{folder}/elsewhere/.rota/rota.db"
    (folder / "rota.yaml").touch()
    assert place(App()) == f"{folder}/.rota/rota.db"


def test_nothing_is_read_until_it_is_needed(folder):
    app = App()

    @app.schedule(every("1h"))
    @app.task(name="t")
    def work(): ...

    (folder / "rota.yaml").write_text("leese: 1\n")
    work()
    with pytest.raises(BadSettings, match=r"^rota.yaml:1: leese"):
        app.open()
    (folder / "rota.yaml").write_text("store: sqlite:///mended.db\n")
    assert place(app) == f"{folder}/mended.db"


def test_a_process_that_moves_reads_the_settings_of_where_it_started(folder, monkeypatch):
    (folder / "rota.yaml").write_text("store: sqlite:///here.db\n")
    app = App()
    monkeypatch.chdir("/")
    assert place(app) == f"{folder}/here.db"


def test_the_zone_of_the_file_is_that_of_schedules_which_name_none(folder):
    (folder / "rota.yaml").write_text("tz: Europe/Paris\n")
    app = App()

    @app.schedule(cron("0 9 * * *"))
    def follows(): ...

    @app.schedule(cron("0 9 * * *", tz="Asia/Tokyo"))
    def own(): ...

    assert {name: spec.tz for name, spec in internals(app).declared.items()} == {
        "follows": "Europe/Paris",
        "own": "Asia/Tokyo",
    }
    with Kit(app):
        assert app.schedules.get("follows").explain() == "At 09:00 every day, Europe/Paris time"
        assert app.schedules.put("later", follows.job(), cron("0 8 * * *")).tz == "Europe/Paris"


def test_the_services_obey_the_settings_unless_they_are_told_otherwise(folder):
    text = "lease: 9s\ndrain: 3s\nworker: {concurrency: 3, queues: [mail, sms], recycle_jobs: 5, recycle_age: 2m}\n"
    (folder / "rota.yaml").write_text(f"{text}retention: {{failed: 60d, most_finished: 10}}\n")
    app = App("memory://")
    with app.running(worker=True) as node:
        work = node.settings.work
        assert (work.queues, work.concurrency, work.lease_for) == (("mail", "sms"), 3, 9 * SECOND)
        assert (work.recycle_jobs, work.recycle_age, work.recycle_memory) == (5, 120 * SECOND, None)
        assert node.settings.drain_for == 3.0
        assert node.settings.retention == Retention(failed_for=60 * 86_400 * SECOND, most_finished=10)
    with app.running(queues=["default"], concurrency=2, drain="1s") as node:
        assert (node.settings.work.queues, node.settings.work.concurrency) == (("default",), 2)
        assert node.settings.drain_for == 1.0


def test_retention_that_the_code_gives_counts_as_a_whole(folder):
    (folder / "rota.yaml").write_text("retention: {failed: 60d}\n")
    kept = Retention(succeeded_for=SECOND, nodes_for=SECOND)
    app = App(retention=kept)
    assert internals(app).configuration.retention is kept
    assert internals(app).resolved.origins["retention.failed"].words == "code"


def test_importing_and_declaring_reads_no_file_and_loads_no_yaml(folder):
    (folder / "rota.yaml").write_text("[ no yaml\n")
    declare = "app.schedule(rota.every('1h'), id='x')(app.task(name='x')(lambda: 0))"
    code = f"import sys, rota; app = rota.App(); {declare}; sys.exit('yaml' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
