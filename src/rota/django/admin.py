"""Adds a link to the dashboard to the index of the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import Http404
from django.shortcuts import redirect
from django.urls import NoReverseMatch

from rota.django.models import Dashboard
from rota.django.views import role_of


@admin.register(Dashboard)
class DashboardAdmin(admin.ModelAdmin):
    """Shown to users who have a role there; there is nothing to edit here."""

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        del request, extra_context
        try:
            return redirect("rota:dashboard")
        except NoReverseMatch as err:
            raise Http404('add path("rota/", include("rota.django.urls")) to your urls.py') from err

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        del obj
        return role_of(request.user) is not None

    def has_module_permission(self, request: Any) -> bool:
        return role_of(request.user) is not None

    def has_add_permission(self, request: Any) -> bool:
        del request
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        del request, obj
        return False
