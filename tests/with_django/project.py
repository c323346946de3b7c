"""A Django project in this process. Django's settings are global, so that all tests of a process share them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections

FOLDER = "ROTA_TEST_DJANGO_FOLDER"  # where the database of the tests is


def set_up() -> None:
    """Configure Django once, with its tables made."""
    if settings.configured:
        return
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="rota-django-")
    os.environ["DJANGO_SETTINGS_MODULE"] = "with_django.settings"  # child processes read it, too
    atexit.register(shutil.rmtree, os.environ[FOLDER], ignore_errors=True)
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)


def add_database(alias: str, **options: Any) -> None:
    """Another database, beside the default one."""
    connections.settings[alias] = connections.configure_settings({"default": options})["default"]


def on_postgres(url: str) -> dict[str, Any]:
    """A database on a server, as Django's settings name it."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts["user"],
        "PASSWORD": parts["password"],
        "HOST": parts["host"],
        "PORT": parts["port"],
    }
