"""A project of Django with Rota in INSTALLED_APPS: its app, its jobs, its commands and its checks."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import subprocess
import sys

import pytest
from django.apps import apps
from django.core import checks
from django.core.management import CommandError, call_command
from django.test import override_settings

from rota.app import internals
from rota.django import app, current, discovery
from rota.django.management.commands.rota import without_django_options
from with_django.shop import jobs


@pytest.fixture(autouse=True)
def _closed_app(monkeypatch):
    monkeypatch.delenv("ROTA_APP", raising=False)
    yield
    app.close()
    for name in ("ROTA_APP", "ROTA_WORKER_PROCESSES"):
        monkeypatch.delenv(name, raising=False)


def test_the_app_is_one_and_has_the_jobs_of_all_installed_apps():
    from rota.django import app as again  # noqa: PLC0415 - what is asked

    assert again is app is current.get_app()
    assert "with_django.shop.jobs.count_orders" in internals(app).registry.names()
    assert (app.name, app.version, app.settings.tz) == ("shop", "2", "Europe/Paris")
    assert app.settings.worker.concurrency == 2
    assert app.settings.redact == ("iban",)


def test_importing_the_package_makes_no_app_and_needs_no_settings():
    code = "import rota.django, sys; assert 'rota.app' not in sys.modules; assert 'django' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": ""})


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    import rota.django  # noqa: PLC0415

    with pytest.raises(AttributeError, match="'tusk'"):
        rota.django.tusk  # noqa: B018


def test_threads_coroutines_and_processes_use_the_database():
    with app.running():
        assert jobs.count_orders.enqueue().result("60s") == 0
        assert jobs.acount_orders.enqueue().result("60s") == 0
        count, pid = jobs.count_in_a_process.enqueue().result("60s")
        assert count == 0
        assert pid > 0


def test_a_command_reaches_the_command_line_with_this_app(capsys):
    job = jobs.receipt.enqueue(7)
    app.close()
    call_command("rota", "jobs", "show", job.id, "-o", "json")
    assert json.loads(capsys.readouterr().out)["id"] == job.id
    with pytest.raises(CommandError) as failed:
        call_command("rota", "jobs", "show", "nothing")
    assert failed.value.returncode == 5
    assert "ROTA_APP" not in os.environ  # the caller goes on as it was


def test_options_that_django_has_read_are_not_passed_on():
    words = ["jobs", "--settings", "x", "list", "--pythonpath=y", "--where", "state:failed"]
    assert without_django_options(words) == ["jobs", "list", "--where", "state:failed"]


def ids(**options) -> list[str]:
    return [found.id for found in checks.run_checks(**options) if found.id.startswith("rota.")]


def test_a_project_that_is_well_has_nothing_to_check():
    app.open()
    assert ids() == []
    assert ids(databases=["default"], include_deployment_checks=True) == []


def test_jobs_that_cannot_be_imported_are_logged_reported_and_not_run_without(monkeypatch, caplog):
    def fail(name: str):
        raise ImportError(f"no {name} today")

    monkeypatch.setattr(discovery, "import_module", fail)
    with caplog.at_level(logging.ERROR):
        discovery.discover()
    assert "with_django.shop.jobs cannot be imported" in caplog.text
    (found,) = [one for one in checks.run_checks() if one.id == "rota.E001"]
    assert "no with_django.shop.jobs today" in found.msg
    with pytest.raises(ImportError):
        call_command("rota", "jobs", "list")
    monkeypatch.undo()
    discovery.discover()
    assert ids() == []


def test_no_migration_is_missing():
    call_command("makemigrations", "rota", check_changes=True, dry_run=True, verbosity=0)


def test_apps_without_jobs_are_fine():
    assert apps.get_app_config("auth").module is not None
    assert not discovery.broken()


@override_settings(ROTA={"store": "memory://"})
def test_a_store_that_no_worker_can_see_is_a_warning(monkeypatch):
    monkeypatch.setattr(current, "_made", [])
    assert ids() == ["rota.W003"]


@override_settings(ROTA={"store": "redis://127.0.0.1:1"})
def test_a_store_that_does_not_answer_is_a_warning_if_databases_are_checked(monkeypatch):
    monkeypatch.setattr(current, "_made", [])
    assert ids() == []
    assert ids(databases=["default"]) == ["rota.W004"]
    assert ids(include_deployment_checks=True) == ["rota.W004"]


def test_a_store_that_is_not_made_yet_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setattr(current, "_made", [])
    with override_settings(ROTA={"store": f"sqlite:///{tmp_path}/none.db"}):
        assert ids(databases=["default"]) == ["rota.W005"]


def test_a_check_makes_no_tables_in_a_database_that_has_none(monkeypatch, tmp_path):
    path = tmp_path / "shop.db"
    sqlite3.connect(path).close()
    path.touch()
    monkeypatch.setattr(current, "_made", [])
    with override_settings(ROTA={"store": f"sqlite:///{path}"}):
        assert ids(include_deployment_checks=True) == ["rota.W005"]
        assert internals(current.get_app()).store.find().namespaces() == []


def test_a_database_without_autocommit_is_told(monkeypatch):
    from django.db import connections  # noqa: PLC0415

    database = connections.settings["default"]
    monkeypatch.setattr(connections, "settings", {"default": {**database, "AUTOCOMMIT": False}})
    assert ids() == ["rota.W002"]
    monkeypatch.setattr(
        connections, "settings", {"default": {**database, "AUTOCOMMIT": False, "ATOMIC_REQUESTS": True}}
    )
    assert ids() == ["rota.W002", "rota.E002"]
