"""The OpenAPI document has all that generators of clients need, and PUT can be told to create only."""

from __future__ import annotations

import pytest

from rota import every
from rota.app import internals
from rota.web.openapi import openapi_document
from rota.web.table import ROUTES
from web.examples import BODIES

METHODS = {"get", "put", "post", "patch", "delete"}


def parts_of(part, path="#"):
    """Every object of a document, with where it is."""
    if isinstance(part, dict):
        yield path, part
    for name, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield from parts_of(value, f"{path}/{name}")


@pytest.fixture
def kind() -> str:
    return "memory"


def test_every_array_says_what_it_holds():
    document = openapi_document(ROUTES)
    arrays = [(path, part) for path, part in parts_of(document) if "array" in str(part.get("type"))]
    assert len(arrays) > 10
    assert [path for path, part in arrays if "items" not in part] == []


def test_every_operation_has_a_name_of_its_own_and_an_answer():
    document = openapi_document(ROUTES)
    operations = [one for path in document["paths"].values() for method, one in path.items() if method in METHODS]
    names = [one["operationId"] for one in operations]
    assert len(names) == len(set(names)) == len(ROUTES)
    assert all(name.isidentifier() for name in names)
    assert all(any(status.startswith("2") for status in one["responses"]) for one in operations)


def test_every_reference_leads_somewhere_and_every_parameter_has_a_type():
    document = openapi_document(ROUTES)
    parts = list(parts_of(document))
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert {part["$ref"] for _, part in parts if "$ref" in part} <= known
    parameters = [part for path, part in parts if "/parameters/" in path and "in" in part]
    assert all({"type", "anyOf", "enum", "$ref"} & one["schema"].keys() for one in parameters)


def test_the_reasons_of_an_error_are_those_that_can_happen():
    document = openapi_document(ROUTES)
    for route in ROUTES:
        one = document["paths"][route.path][route.method.lower()]
        headers = {part["name"] for part in one.get("parameters", ()) if part["in"] == "header"}
        assert ("If-None-Match" in headers) is (route.is_versioned and route.method == "PUT"), route.name
        says = {status: answer["description"] for status, answer in one["responses"].items()}
        assert ("If-None-Match" in says.get("412", "")) is ("If-None-Match" in headers), route.name
        if route.role is not None:
            assert "foreign Host name" in says["403"]
            assert ("too many streams" in says["429"]) is bool(route.streams), route.name


@pytest.mark.parametrize("name", ["key_for", "timeout"])
def test_a_span_that_cannot_be_nothing_is_not_shown_as_if_it_could(name):
    schemas = openapi_document(ROUTES)["components"]["schemas"]
    for body in schemas.values():
        said = str(body.get("properties", {}).get(name, ""))
        assert "0s" not in said.replace("90s", "")


def test_every_body_names_its_fields():
    document = openapi_document(ROUTES)
    schemas = document["components"]["schemas"]
    for route in ROUTES:
        if route.body is not None:
            assert schemas[route.body.__name__]["properties"].keys() == set(route.body.__struct_fields__), route.name


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/v1/schedules/new", BODIES["put_schedule"]), ("/api/v1/tenants/new", BODIES["put_tenant"])],
)
def test_a_put_with_if_none_match_creates_and_never_overwrites(stage, path, body):
    first = stage.ask("PUT", path, json=body, headers={"If-None-Match": "*"})
    assert first.status_code == 201, first.text
    before = stage.dump()
    second = stage.ask("PUT", path, json={**body, "description": "mine"}, headers={"If-None-Match": "*"})
    assert second.status_code == 412, second.text
    assert "already" in second.json()["error"]["message"]
    assert stage.dump() == before
    assert stage.ask("PUT", path, json=body, headers={"If-Match": first.headers["ETag"]}).status_code == 200


@pytest.mark.parametrize("headers", [{"If-None-Match": '"1"'}, {"If-None-Match": "*", "If-Match": '"1"'}])
def test_an_if_none_match_that_makes_no_sense_is_refused(stage, headers):
    answer = stage.ask("PUT", "/api/v1/tenants/new", json=BODIES["put_tenant"], headers=headers)
    assert (answer.status_code, answer.json()["error"]["field"]) == (412, "If-None-Match")


def test_run_now_answers_201_for_a_job_that_it_made_and_200_for_one_that_was_there(stage):
    stage.app.schedules.sync()
    assert stage.post("/api/v1/schedules/hourly/run-now").status_code == 201
    first, second = (stage.post("/api/v1/schedules/sync__store__orders/run-now") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


def test_run_now_answers_200_with_the_job_that_holds_its_key(stage):
    tick = internals(stage.app).registry.get("tick")
    stage.app.schedules.put("keyed", tick.job(), every("1h"), key="mine")
    first, second = (stage.post("/api/v1/schedules/keyed/run-now") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    answers = openapi_document(ROUTES)["paths"]["/api/v1/schedules/{schedule_id}/run-now"]["post"]["responses"]
    assert "holds the unique key" in answers["200"]["description"]
