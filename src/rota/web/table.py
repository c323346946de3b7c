"""The table of all routes: the ASGI app, the OpenAPI document, the tests of access and the docs are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.web.api import catalogue, collections, documents, health, jobs, operate, schedules, tenants

if TYPE_CHECKING:
    from rota.web.route import Route

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *collections.ROUTES,
    *schedules.ROUTES,
    *tenants.ROUTES,
    *operate.ROUTES,
    *catalogue.ROUTES,
    *health.ROUTES,
    *documents.ROUTES,
)
