"""What the API says about itself."""

from __future__ import annotations

from typing import Any

from rota.web.route import Ask, Route


def get_openapi(ask: Ask) -> dict[str, Any]:
    from rota.web.openapi import openapi_document  # noqa: PLC0415 - the table holds this very route
    from rota.web.table import ROUTES  # noqa: PLC0415

    return openapi_document(ROUTES, ask.mounted)


ROUTES = (
    Route(
        method="GET",
        path="/api/v1/openapi.json",
        role=None,
        handle=get_openapi,
        says="This document.",
        answer=dict[str, Any],
    ),
)
