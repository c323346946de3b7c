"""The page about HTTP: every route with its role, parameters, body and answers, from the table that serves them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from rota.web.openapi import openapi_document
from rota.web.table import ROUTES
from tools.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# HTTP

[The guide](../guides/http.md) says how to serve the API and how to create tokens. `GET /api/v1/openapi.json` is this
page for programs. Times are ISO 8601 with an offset. Durations are text such as `90s`. Lists are `{"items": […],
"cursor": …}`: request the next page with `?cursor=`. Every error is `{"error": {"code": …, "message": …, "field": …}}`.
"""


DOCUMENT = openapi_document(ROUTES)
WORDS = {  # closed sets of words are said in place
    name: " or ".join(f"`{word}`" for word in schema["enum"])
    for name, schema in DOCUMENT["components"]["schemas"].items()
    if "enum" in schema
}


def route_page() -> str:
    document = DOCUMENT
    parts = [HEAD]
    for tag, routes in groupby(sorted(ROUTES, key=lambda route: route.tag), key=lambda route: route.tag):
        parts.append(f"## {tag}")
        for route in routes:
            said = document["paths"][route.path][route.method.lower()]
            parts += _route(said, f"{route.method} {route.path}")
    parts += ["## Bodies and answers", *_schemas(document)]
    return "\n\n".join(part.strip() for part in parts)


def _route(said: dict[str, Any], title: str) -> Iterator[str]:
    role = said.get("x-rota-role")
    needs = f"Needs the role `{role}`." if role else "Needs no token."
    yield f"### {title}"
    yield f"{said['summary']} {needs}"
    parameters = [parameter for parameter in said["parameters"] if parameter["in"] != "path"]
    if parameters:
        yield table(["parameter", "what it is"], (_parameter(parameter) for parameter in parameters))
    if "requestBody" in said:
        yield f"Body: {_kind(said['requestBody']['content']['application/json']['schema'])}."
    yield f"Answers: {', '.join(_answer(status, answer) for status, answer in said['responses'].items())}."


def _parameter(said: dict[str, Any]) -> list[str]:
    place = " (header)" if said["in"] == "header" else ""
    needed = "; required" if said["required"] else ""
    return [f"`{said['name']}`{place}", f"{_kind(said['schema'])}{needed}"]


def _answer(status: str, said: dict[str, Any]) -> str:
    kinds = [_kind(content["schema"]) for media, content in said["content"].items() if media != "text/event-stream"]
    if status >= "400" or not kinds:
        return status
    return f"{status} {kinds[0]}"


def _schemas(document: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document["components"]["schemas"].items()):
        if "properties" not in schema or name.endswith(("Query", "Path")):
            continue
        yield f"### {name}"
        yield schema.get("description", "")
        required = schema.get("required", ())
        rows = (
            [f"`{field}`", _field(said, is_required=field in required)] for field, said in schema["properties"].items()
        )
        yield table(["field", "what it is"], rows)


def _field(said: dict[str, Any], *, is_required: bool) -> str:
    default = said.get("default")
    more = "" if is_required or default in (None, "", [], {}) else f", by default `{default}`"
    return f"{_kind(said)}{more}"


def _kind(said: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in said:
        name = said["$ref"].rpartition("/")[2]
        return WORDS[name] if name in WORDS else f"[{name}](#{name.lower()})"
    if "anyOf" in said:
        return " or ".join(_kind(part) for part in said["anyOf"])
    if "enum" in said:
        return " or ".join(f"`{word}`" for word in said["enum"])
    words = {"array": f"list of {_kind(said['items'])}" if said.get("items") else "list"}.get(said.get("type", ""), "")
    kind = words or said.get("format") or said.get("type") or "anything"
    return f"{kind} ({said['description']})" if "description" in said else kind
