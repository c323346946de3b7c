"""Its settings, with the database that the environment names."""

from __future__ import annotations

import json
import os

SECRET_KEY = "a secret of the tests"  # noqa: S105
USE_TZ = True
DATABASES = {"default": json.loads(os.environ["ROTA_TEST_DATABASE"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "rota.django",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "with_django.shop",
]
TASKS = {"default": {"BACKEND": "rota.django.tasks.RotaBackend", "QUEUES": []}}
