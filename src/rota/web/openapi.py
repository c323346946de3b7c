"""Builds the OpenAPI document from the table of routes, so that it describes the checks that the server makes."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from rota import __version__
from rota.web.reading import EXPECT
from rota.web.refusals import ErrorAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rota.web.route import Route

REF = "#/components/schemas/{name}"
EVENT = {
    "type": "object",
    "description": "One server-sent event; data is JSON.",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}, "id": {"type": "string"}},
}
SECURITY: list[dict[str, list[str]]] = [{"bearer": []}, {"admin_token": []}]


def openapi_document(routes: Sequence[Route], server: str = "") -> dict[str, Any]:
    """All routes, as OpenAPI 3.1 says it. `server` is the path under which they are mounted."""
    kinds = list(_kinds(routes))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    by_kind = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind, components)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Rota",
            "version": __version__,
            "description": "Jobs, schedules and what became of them. Every change is kept with who made it.",
        },
        "servers": [{"url": server or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "admin_token": {"type": "apiKey", "in": "header", "name": "X-Admin-Token"},
            },
        },
    }
    _give_items(document)
    return document


def _give_items(part: Any) -> None:
    """Say of every array what it holds, also if that is anything: generators of clients skip what does not."""
    if isinstance(part, dict):
        if isinstance(pattern := part.get("pattern"), str):
            part["pattern"] = pattern.replace("\\Z", "$")  # JSON Schema's `$` is the very end, as Python's `\\Z` is
        kind = part.get("type")
        if kind == "array" or (isinstance(kind, list) and "array" in kind):
            part.setdefault("items", {})
        for value in part.values():
            _give_items(value)
    elif isinstance(part, list):
        for value in part:
            _give_items(value)


def _kinds(routes: Iterable[Route]) -> Iterator[Any]:
    """Every type that a document speaks of."""
    yield ErrorAnswer
    for route in routes:
        yield from (kind for kind in (route.params, route.query, route.body, route.answer) if kind is not None)


def _operation(route: Route, by_kind: Mapping[int, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.says,
        "tags": [route.tag],
        "parameters": list(_parameters(route, components)),
        "responses": _responses(route, by_kind),
    }
    if route.role is not None:
        said["security"] = SECURITY
        said["x-rota-role"] = route.role
    else:
        said["security"] = []
    if route.body is not None:
        said["requestBody"] = {
            "required": route.needs_body,
            "content": {"application/json": {"schema": by_kind[id(route.body)]}},
        }
    return said


def _parameters(route: Route, components: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for place, kind in (("path", route.params), ("query", route.query)):
        if kind is None:
            continue
        schema = components[kind.__name__]
        for name, said in schema["properties"].items():
            is_needed = place == "path" or name in schema.get("required", ())
            yield {"name": name, "in": place, "required": is_needed, "schema": _without_null(said)}
    if route.is_versioned:
        version = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
        yield {"name": EXPECT, "in": "query", "required": False, "schema": version}
        yield {
            "name": "If-Match",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "pattern": '^((W/)?"?[0-9]{1,18}"?|[*])$'},
        }
    if route.is_versioned and route.method == "PUT":
        yield {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "*: only if there is none yet",
            "schema": {"type": "string", "pattern": "^[*]$"},
        }


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A query has no null: what is not said is left out."""
    others = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    plain = dict(schema)
    if len(others) == 1:
        del plain["anyOf"]
        plain |= others[0]
    if plain.get("default", 0) is None:
        del plain["default"]
    return plain


def _responses(route: Route, by_kind: Mapping[int, Any]) -> dict[str, Any]:
    answer = by_kind[id(route.answer)] if route.answer is not None else None
    content: dict[str, Any] = {}
    if answer is not None:
        content = {} if route.streams == "always" else {route.media: {"schema": answer}}
    if route.streams:
        content["text/event-stream"] = {"schema": EVENT}
    said: dict[str, Any] = {str(route.status): {"description": HTTPStatus(route.status).phrase, "content": content}}
    for status, meaning in sorted({**dict(_errors(route)), **route.also}.items()):
        kind = content if status < 400 else {"application/json": {"schema": by_kind[id(ErrorAnswer)]}}
        said[str(status)] = {"description": meaning, "content": kind}
    return dict(sorted(said.items()))


def _errors(route: Route) -> Iterator[tuple[int, str]]:
    """The errors that a route of this form may have."""
    yield 400, "A parameter, a header or the JSON is malformed."
    if route.role is not None:
        yield 401, "The token is missing, unknown, revoked or over."
        yield 403, "The token's role is too low, the server only shows, or no token was sent under a foreign Host name."
        streams = ", or too many streams are open for this token or address" if route.streams else ""
        yield 429, f"Too many bad tokens came from this address{streams}."
    if route.params is not None:
        yield 404, "There is no such thing."
    if route.is_versioned:
        yield 409, "It was changed meanwhile, or its state does not allow it."
        exists = ", or there is one and If-None-Match is *" if route.method == "PUT" else ""
        yield 412, f"It no longer has the version of If-Match{exists}."
    if route.body is not None:
        yield 413, "The body is larger than 1 MiB, or the arguments than 256 KiB."
        yield 415, "The body is not said to be JSON."
    if route.body is not None or route.query is not None:
        yield 422, "A value makes no sense: the error names the field."
    if route.role is not None:
        yield 503, "The store is out of reach, or moved."
