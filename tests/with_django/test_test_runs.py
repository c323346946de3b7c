"""Django's test runner in a project with Rota: the jobs of the run never reach the project's own database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.core import mail

from rota.django.databases import store_url_of
from rota.django.test_runs import StoreOfTestRun
from rota.store.urls import store_from_url
from rota.testing.servers.postgres import shared_url
from with_django.project import on_postgres

TESTS = Path(__file__).parents[1]


@pytest.fixture(params=["sqlite in memory", "sqlite in a file", "postgres"])
def database(request, tmp_path):
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "shop.db")}
    if request.param == "sqlite in memory":
        return sqlite
    if request.param == "sqlite in a file":
        return {**sqlite, "TEST": {"NAME": str(tmp_path / "test.db")}}
    return request.getfixturevalue("postgres_database")


@pytest.fixture
def postgres_database():
    name = f"shop_{uuid4().hex[:8]}"
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield {**on_postgres(shared_url()), "NAME": name}
        connection.execute(f"DROP DATABASE {name}")


def test_the_jobs_of_a_test_run_stay_in_it(database):
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ROTA_")},
        "DJANGO_SETTINGS_MODULE": "with_django.tested.settings",
        "PYTHONPATH": str(TESTS),
        "ROTA_TEST_DATABASE": json.dumps(database),
    }
    command = [sys.executable, "-m", "django", "test", "with_django.tested.cases", "--noinput"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "rota.W" not in done.stderr
    assert store_from_url(store_url_of({"default": database}, "default")).namespaces() == []


def test_a_database_that_is_renamed_outside_of_tests_does_not_move_the_jobs(monkeypatch):
    monkeypatch.delattr(mail, "outbox", raising=False)  # a test case of Django that ran before has made it
    databases = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "shop"}}
    run = StoreOfTestRun(databases, "default")
    databases["default"]["NAME"] = "shop_of_a_tenant"
    assert run.find() is None
    monkeypatch.setattr(mail, "outbox", [], raising=False)
    assert run.find() is not None
