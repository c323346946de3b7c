"""Holds the table of all routes: the app, the OpenAPI document, the tests of access and the docs are made from it."""

from __future__ import annotations

from typing import Any

from rota.web.api import agenda, alerts, catalogue, collections, documents, health, jobs, operate, schedules, tenants
from rota.web.route import Ask, Route


def get_openapi(ask: Ask) -> dict[str, Any]:
    from rota.web.openapi import openapi_document  # noqa: PLC0415 - only this answer needs it

    return openapi_document(ROUTES, ask.mounted)


ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *collections.ROUTES,
    *documents.ROUTES,
    *alerts.ROUTES,
    *schedules.ROUTES,
    *agenda.ROUTES,
    *tenants.ROUTES,
    *operate.ROUTES,
    *catalogue.ROUTES,
    *health.ROUTES,
    Route(
        method="GET",
        path="/api/v1/openapi.json",
        role=None,
        handle=get_openapi,
        says="This document.",
        answer=dict[str, Any],
    ),
)
