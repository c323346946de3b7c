"""Typed forms for calls that exist: a copy of a job, and a schedule's call; JSON where they cannot hold the call."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from enum import Enum
from html import unescape
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from starlette.testclient import TestClient

from pages.stage import TOKEN, Door, Tab
from rota import App, every
from rota.model.jobs.payload import unpack_call
from rota.web.pages.call_fields import filled
from rota.web.pages.json_text import BadJson, decode_json
from rota.web.pages.run_form import fields_of, read_call
from rota.web.server import WebServer

RIGA = ZoneInfo("Europe/Riga")


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@pytest.fixture
def app():
    app = App("memory://", name="shop")

    @app.task(name="order")
    def order(
        number: int, to: str = "", *, size: Size = Size.SMALL, day: date | None = None, at: datetime | None = None,
        kind: Literal["a", "b"] = "a", is_gift: bool = False, items: list[int] | None = None, password: str = "",
    ) -> None: ...  # fmt: skip

    @app.task(name="loose")
    def loose(first, *rest, **more) -> None: ...

    yield app
    app.close()


@pytest.fixture
def client(app):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return TestClient(app.asgi(token=TOKEN), headers=headers, follow_redirects=False)


def call_of(app, job_id):
    return unpack_call(app.jobs.read(job_id).payload)


def copied(answer):
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].rpartition("/")[2]


def form_of(page: str) -> dict[str, str]:
    """The arguments that a browser would send, if nobody touched the form."""
    sent = {}
    for tag in re.findall(r"<input [^>]*>", page):
        name, value = re.search(r' name="(arg[^"]*)"', tag), re.search(r' value="([^"]*)"', tag)
        if name:
            sent[name[1]] = unescape(value[1]) if value else ""
    for name, text in re.findall(r'<textarea [^>]*name="(arg[^"]*)"[^>]*>(.*?)</textarea>', page, re.DOTALL):
        sent[name] = unescape(text)
    for name, options in re.findall(r'<select [^>]*name="(arg[^"]*)"[^>]*>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        sent[name] = chosen[1] if chosen else re.search(r'value="([^"]*)"', options)[1]
    return sent


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([7], {}),
        ([7, "ann"], {}),
        ([7], {"to": "ann", "size": "l", "kind": "b", "is_gift": True}),
        ([], {"number": 7, "day": "2026-10-14", "items": [1, 2]}),
        ([7], {"at": "2026-10-14T09:00:00+00:00"}),
    ],
)
def test_a_call_is_the_same_after_its_form(app, args, kwargs):
    task = app.__rota_tasks__.get("order")
    fields = fields_of(task, ())
    said = filled(task, fields, args, kwargs, RIGA)
    assert said is not None
    read = read_call(task, fields, said, RIGA, by_name=frozenset(kwargs))
    assert (read.args, read.faults) == (args, {})
    times = {"at": datetime.fromisoformat(read.kwargs["at"])} if "at" in kwargs else {}
    assert {**read.kwargs, **times} == {
        **kwargs,
        **({"at": datetime(2026, 10, 14, 9, tzinfo=UTC)} if times else {}),
    }


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([7, "ann", 3], {}),  # too many
        ([7], {"colour": "red"}),  # unknown
        (["seven"], {}),  # of another type
        ([7], {"to": ""}),  # an empty field is the default
        ([True], {}),
        ([7], {"at": "2026-10-14T09:00:00"}),  # of no zone
    ],
)
def test_a_call_that_the_fields_cannot_hold_has_none(app, args, kwargs):
    task = app.__rota_tasks__.get("order")
    assert filled(task, fields_of(task, ()), args, kwargs, RIGA) is None


def test_a_call_of_any_shape_has_fields(app):
    task = app.__rota_tasks__.get("loose")
    said = filled(task, fields_of(task, ()), ["5", 2, 3], {"x": 1}, RIGA)
    assert said == {"arg.first": '"5"', "arg.rest": "[2, 3]", "arg.more": '{"x": 1}'}


def test_a_copy_is_made_with_typed_fields_and_its_secret_stays(app, client):
    job = app.__rota_tasks__.get("order").enqueue(7, password="hunter2")  # noqa: S106
    page = client.get(f"/jobs/{job.id}/copy").text
    assert "hunter2" not in page
    sent = form_of(page)
    assert (sent["arg.number"], sent["arg.password"]) == ("7", "[redacted]")
    copy = copied(client.post(f"/jobs/{job.id}/copy", data={**sent, "arg.number": "8", "arg.size": "c1"}))
    assert call_of(app, copy).args == [8]
    assert call_of(app, copy).kwargs == {"size": "l", "password": "hunter2"}


def test_a_wrong_value_of_a_copy_is_said_at_its_field_and_nothing_is_lost(app, client):
    job = app.__rota_tasks__.get("order").enqueue(7)
    sent = {**form_of(client.get(f"/jobs/{job.id}/copy").text), "arg.number": "many", "arg.items": "[1,\n 2,,]"}
    answer = client.post(f"/jobs/{job.id}/copy", data=sent)
    assert answer.status_code == 422
    assert "“many” is not a whole number" in answer.text
    assert "Line 2, column 4: this is not valid JSON." in answer.text
    assert form_of(answer.text)["arg.items"] == sent["arg.items"]


def test_the_hint_about_hidden_values_is_shown_only_beside_one(app, client):
    order = app.__rota_tasks__.get("order")
    plain, secret = order.enqueue(7), order.enqueue(7, password="hunter2")  # noqa: S106
    shown = [client.get(f"/jobs/{job.id}/copy?as=json").text for job in (plain, secret)]
    assert ["[redacted] stands for" in page for page in shown] == [False, True]
    assert "The stored value, which is hidden" not in client.get(f"/jobs/{plain.id}/copy").text


def test_a_job_of_an_unknown_task_is_copied_as_json(app, client):
    other = App("memory://", name="other")
    unknown = other.task(name="elsewhere")(lambda _number: None)
    app.enqueue_many([unknown.job(1)])
    (job,) = app.open().list_jobs(_of("elsewhere")).items
    page = client.get(f"/jobs/{job.id}/copy").text
    assert 'id="args"' in page
    assert "Edit as a form" not in page
    other.close()


def _of(task: str) -> Any:
    from rota.store.contract import JobFilter  # noqa: PLC0415

    return JobFilter(task=task)


def test_a_schedule_has_the_fields_of_its_task_and_keeps_what_nobody_touched(app, client):
    order = app.__rota_tasks__.get("order")
    at = datetime(2026, 10, 14, 9, tzinfo=UTC)
    app.schedules.put("daily", order.job(7, at=at, password="hunter2"), every("1h"))  # noqa: S106
    before = app.schedules.get("daily").record.spec.payload
    page = client.get("/schedules/daily/edit").text
    assert 'id="args"' not in page
    base = dict(re.findall(r'name="(base\.[^"]*)" value="([^"]*)"', page))
    sent = {**{name: unescape(value) for name, value in base.items()}, **form_of(page)}
    sent |= {name.removeprefix("base."): value for name, value in sent.items() if name.startswith("base.")}
    sent = {name: value for name, value in sent.items() if name not in {"args", "kwargs"}}
    assert client.post("/schedules/daily/edit", data={**sent, "description": "mine"}).status_code == 303
    assert app.schedules.get("daily").record.spec.payload == before
    answer = client.post("/schedules/daily/edit", data={**sent, "description": "mine", "arg.number": "x"})
    assert "“x” is not a whole number" in answer.text
    again = {**sent, "base.description": "mine", "description": "mine", "arg.number": "8"}
    assert client.post("/schedules/daily/edit", data=again).status_code == 303
    after = app.schedules.get("daily").record.spec.payload
    assert after.startswith("[[8],")
    assert "hunter2" in after


def test_a_new_schedule_gets_the_fields_when_its_task_is_chosen(browser, app):
    server = WebServer(app, port=0, token=TOKEN).start()
    try:
        with Tab.open(browser, Door(app, server, {})) as tab:
            tab.go("/schedules/new")
            tab.page.fill("#id", "mine")
            tab.page.fill("#task", "order")
            tab.page.fill("#f-number", "12")
            tab.page.click("button[name=save]")
            tab.page.wait_for_url("**/schedules/mine")
        assert unpack_call(app.schedules.get("mine").record.spec.payload.encode()).args == [12]
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("[1,", 1, 4), ('{\n "a": tru\n}', 2, 7), ("[1]]", 1, 4), ("ä", 1, 1), ("[" * 5000, 1, 0)],
)
def test_wrong_json_says_the_line_and_the_column(text, line, column):
    with pytest.raises(BadJson) as caught:
        decode_json(text)
    assert caught.value.line == line
    assert column in {0, caught.value.column}
