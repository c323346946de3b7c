"""Configures the Django app: reads the settings, imports the jobs of all installed apps, and registers the checks."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy


class RotaConfig(AppConfig):
    """Rota in INSTALLED_APPS."""

    name = "rota.django"
    label = "rota"
    verbose_name = gettext_lazy("Rota")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from rota.django import checks, current, discovery  # noqa: PLC0415 - Django's settings are read by now

        current.get_app()  # settings that cannot be meant so are an error of every command
        if any(str(said.get("BACKEND", "")).startswith("rota.django.") for said in _backends()):
            from rota.django.tasks import runner  # noqa: PLC0415 - only projects with Django's tasks pay for it

            runner()  # a worker knows it, also if it imports none of these tasks
        discovery.discover()
        checks.register_checks()


def _backends() -> list[dict[str, Any]]:
    said = getattr(settings, "TASKS", None)
    return [one for one in said.values() if isinstance(one, dict)] if isinstance(said, dict) else []
