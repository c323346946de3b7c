"""Shows the HTTP API as a page, made from the OpenAPI document that the server answers with."""

from __future__ import annotations

import json
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from rota.web.openapi import openapi_document
from rota.web.pages.page import Page, View, Visit
from rota.web.table import ROUTES

DEEPEST = 4  # schemas within schemas that an example shows
_EXAMPLES = {"string": "…", "integer": 1, "number": 1.5, "boolean": True, "null": None}


def show_api(visit: Visit) -> View:
    search = visit.query.get("q", "").strip().lower()[:100]
    groups = [
        {"name": group["name"], "operations": [one for one in group["operations"] if search in one["searched"]]}
        for group in groups_of(visit.mounted)
    ]
    values = {
        "search": search,
        "groups": [group for group in groups if group["operations"]],
        "document": visit.url("/api/v1/openapi.json"),
        "total": sum(len(group["operations"]) for group in groups),
    }
    return View(template="api.html", values=values)


@lru_cache(maxsize=4)
def groups_of(mounted: str) -> list[dict[str, Any]]:
    """The operations by what they are about, in the table's order."""
    document = openapi_document(ROUTES, mounted)
    schemas = document["components"]["schemas"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            groups.setdefault(said["tags"][0], []).append(operation(mounted, path, method.upper(), said, schemas))
    return [{"name": name, "operations": found} for name, found in groups.items()]


def operation(mounted: str, path: str, method: str, said: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    role = said.get("x-rota-role")
    return {
        "id": f"{method.lower()}-{said['operationId']}",
        "method": method,
        "path": path,
        "summary": said["summary"],
        "role": role,
        "parameters": [_parameter(one, schemas) for one in said["parameters"]],
        "fields": _fields(body, schemas) if body else [],
        "body": _shown(example(body, schemas)) if body else "",
        "responses": [_response(status, one, schemas) for status, one in said["responses"].items()],
        "curl": curl(mounted, path, method, said, example(body, schemas) if body else None, has_token=role is not None),
        "searched": f"{method} {path} {said['summary']} {said['operationId']}".lower(),
    }


def curl(mounted: str, path: str, method: str, said: dict[str, Any], body: Any, *, has_token: bool) -> str:
    needed = [one for one in said["parameters"] if one["in"] == "query" and one["required"]]
    query = "&".join(f"{one['name']}={one['name'].upper()}" for one in needed)
    words = ["curl"] + ([] if method == "GET" else [f"-X {method}"])
    if has_token:
        words.append('-H "Authorization: Bearer $ROTA_TOKEN"')
    if body is not None:
        words.append(f"--json '{json.dumps(body, ensure_ascii=False)}'")
    words.append(f'"$ROTA_URL{mounted}{path}{f"?{query}" if query else ""}"')
    return " \\\n  ".join(words)


def type_of(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """A schema in a few words: text, whole number, list of text, JobFacts."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        found = schemas.get(name, {})
        return " | ".join(map(str, found["enum"])) if "enum" in found else name
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(part, schemas) for part in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(kind)
    if kind == "array":
        return f"array of {type_of(schema.get('items', {}), schemas)}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def example(schema: dict[str, Any] | None, schemas: dict[str, Any], depth: int = 0) -> Any:
    """A value of that form: what must be given, and no more."""
    schema = schema or {}
    if "$ref" in schema:
        found = schemas.get(schema["$ref"].rpartition("/")[2], {})
        return example(found, schemas, depth + 1) if depth < DEEPEST else {}
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], schemas, depth)
    if schema.get("type") == "object":
        needed = set(schema.get("required", ()))
        named = schema.get("properties", {})
        return {name: example(one, schemas, depth + 1) for name, one in named.items() if name in needed}
    if schema.get("type") == "array":
        return []
    if schema.get("format") == "date-time":
        return "2026-10-14T09:00:00Z"
    return _EXAMPLES.get(str(schema.get("type")), "…")


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields of an object, or of each of the objects that it may be."""
    if "$ref" in schema:
        return _fields(schemas.get(schema["$ref"].rpartition("/")[2], {}), schemas)
    if "anyOf" in schema:
        return [field for part in schema["anyOf"] for field in _fields(part, schemas)]
    needed = set(schema.get("required", ()))
    return [
        {"name": name, "type": type_of(one, schemas), "required": name in needed, "says": _says(one, schemas)}
        for name, one in schema.get("properties", {}).items()
    ]


def _parameter(said: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = said["schema"]
    says = said.get("description") or _says(schema, schemas)
    return {
        "name": said["name"], "in": said["in"], "type": type_of(schema, schemas), "required": said["required"],
        "says": says,
    }  # fmt: skip


def _says(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    words = [str(schema["description"])] if "description" in schema else []
    bounds = [f"{sign} {schema[name]}" for name, sign in (("minimum", "≥"), ("maximum", "≤")) if name in schema]
    if "default" in schema and schema["default"] not in (None, "", [], {}):
        words.append(f"= {json.dumps(schema['default'])}")
    del schemas
    return "; ".join([*words, *bounds])


def _response(status: str, said: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, dict[str, Any]] = said.get("content", {})
    media = next(iter(content), "")
    form = content.get(media, {})
    kind = type_of(form["schema"], schemas) if form.get("schema") else ""
    return {
        "status": status,
        "phrase": HTTPStatus(int(status)).phrase,
        "says": said["description"],
        "type": kind,
        "media": media,
    }


def _shown(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


PAGES = (Page(path="/api", role="read", handle=show_api),)
