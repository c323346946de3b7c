"""The setting ROTA: what it says, what it leaves to the project, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from rota.django.conf import configuration_of

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "/srv/shop.db"}
POSTGRES = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "shop",
    "USER": "ann",
    "PASSWORD": "p@ss/word",
    "HOST": "/run/pg",
    "PORT": 5433,
    "OPTIONS": {"sslmode": "require", "pool": True, "isolation_level": 4},
}


def project(rota: Any = None, database: Any = None, **more: Any) -> SimpleNamespace:
    rota = {} if rota is None else rota
    return SimpleNamespace(ROTA=rota, DATABASES={"default": database or SQLITE}, TIME_ZONE="Asia/Kolkata", **more)


@pytest.mark.parametrize(
    ("database", "url"),
    [
        (SQLITE, "sqlite:////srv/shop.db"),
        (POSTGRES, "postgresql://ann:p%40ss%2Fword@%2Frun%2Fpg:5433/shop?sslmode=require"),
        ({"ENGINE": "django.db.backends.postgresql", "NAME": "shop"}, "postgresql:///shop"),
    ],
)
def test_the_default_database_is_the_store(database, url):
    found = configuration_of(project(database=database))
    assert (found.store, found.database) == (url, "default")


def test_a_project_without_the_setting_has_an_app_in_its_own_timezone():
    settings = project()
    del settings.ROTA
    found = configuration_of(settings)
    assert (found.name, found.layer["tz"].value) == ("app", "Asia/Kolkata")


def test_the_setting_has_the_keys_of_rota_yaml():
    said = {"store": "redis://jobs", "tz": "UTC", "worker": {"concurrency": 4, "queues": ["a", "b"]}, "lease": "1m"}
    found = configuration_of(project(said, {"ENGINE": "django.db.backends.mysql"}))
    assert (found.store, found.database) == ("redis://jobs", None)
    values = {path: value.value for path, value in found.layer.items()}
    assert values == {"tz": "UTC", "worker.concurrency": 4, "worker.queues": ("a", "b"), "lease": 60_000_000}


def test_variables_count_where_the_setting_is_silent(monkeypatch):
    monkeypatch.setenv("ROTA_STORE", "redis://jobs")
    monkeypatch.setenv("ROTA_TZ", "UTC")
    found = configuration_of(project())
    assert (found.store, found.database, "tz" in found.layer) == (None, None, False)


@pytest.mark.parametrize(
    ("rota", "database", "words"),
    [
        ([], None, r"ROTA must be a dict, got \[\]"),
        ({"stroe": "x"}, None, r"ROTA\['stroe'\] is no setting; did you mean ROTA\['store'\]\?"),
        ({"worker": {"threads": 3}}, None, r"ROTA\['worker'\]\['threads'\] is no setting"),
        ({"worker": 3}, None, r"ROTA\['worker'\] must be a dict, got 3"),
        ({"worker": {"concurrency": "many"}}, None, r"ROTA\['worker'\]\['concurrency'\]: got 'many', wanted a whole"),
        ({"lease": 30}, None, r"ROTA\['lease'\]"),
        ({"redact": 3.5}, None, r"ROTA\['redact'\]: got 3.5, wanted a list of names"),
        ({"name": 3}, None, r"ROTA\['name'\] must be a text, got 3"),
        ({"app": "jobs.py"}, None, "the app of this project is rota.django.app"),
        (
            {"store": "redis://ann:pw@h", "database": "default"},
            None,
            "both 'store' .redis://ann:.{3}@h. and 'database'",
        ),
        ({"database": "jobs"}, None, "ROTA.'database'. is 'jobs', and DATABASES has default"),
        ({}, {"ENGINE": "django.db.backends.mysql"}, "cannot keep its jobs in the database 'default' .*mysql"),
        ({}, {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}, "is SQLite in memory"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(rota, database, words):
    with pytest.raises(ImproperlyConfigured, match=words):
        configuration_of(project(rota, database))


def test_a_variable_that_cannot_be_read_is_an_error_of_the_configuration(monkeypatch):
    monkeypatch.setenv("ROTA_LEASE", "soon")
    with pytest.raises(ImproperlyConfigured, match="ROTA_LEASE"):
        configuration_of(project())
