"""Defines a model without a table, for the permissions of the dashboard and its entry in the admin."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy


class Dashboard(models.Model):
    """The dashboard, as something that users may see, operate and administer."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = (
            ("view_dashboard", "Can look at jobs and schedules"),
            ("operate_dashboard", "Can change jobs and schedules"),
            ("administer_dashboard", "Can change jobs and schedules, and manage tokens"),
        )
        verbose_name = gettext_lazy("dashboard")
        verbose_name_plural = gettext_lazy("Dashboard")

    def __str__(self) -> str:
        return "dashboard"
