"""The catalogue: the form that a task's hints make, what it refuses and where, and the job that it enqueues."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import pytest

from pages.sample import declare
from pages.stage import page_text
from rota import App, Secret
from rota.store.contract import AuditFilter
from rota.web.pages.run_form import Fault, fields_of, read_call

RIGA = ZoneInfo("Europe/Riga")


@pytest.fixture(scope="module")
def export():
    app = App("memory://", name="shop")
    declare(app)
    yield app.__rota_tasks__.get("reports.export")
    app.close()


GOOD = {"arg.day": "2026-11-16", "arg.kind": "c1", "arg.columns": '["a", "b"]'}


def read(task, **sent):
    return read_call(task, fields_of(task, ()), {**GOOD, **{f"arg.{name}": text for name, text in sent.items()}}, RIGA)


def test_each_hint_has_its_own_kind_of_field(export):
    kinds = {field.name: field.kind for field in fields_of(export, ())}
    assert kinds == {
        "day": "date", "kind": "choice", "columns": "json", "title": "text", "limit": "int", "share": "float",
        "colour": "choice", "at": "datetime", "price": "decimal", "notify": "bool", "api_token": "text",
        "more": "object",
    }  # fmt: skip
    assert [field.name for field in fields_of(export, ()) if field.is_required] == ["day", "kind", "columns"]
    assert [field.name for field in fields_of(export, ()) if field.is_secret] == ["api_token"]


def test_a_filled_form_becomes_the_call_that_the_hints_ask_for(export):
    found = read(
        export, limit="5", share="0.5", colour="c1", at="2026-11-16T09:00", price="1.10", notify="true", more='{"x": 1}'
    )
    assert found.faults == {}
    assert found.args == ["2026-11-16", "pdf", ["a", "b"]]
    local = datetime(2026, 11, 16, 9, tzinfo=RIGA).isoformat()
    assert found.kwargs == {
        "limit": 5, "share": 0.5, "colour": "blue", "at": local, "price": "1.10", "notify": True, "x": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("day", "", "catalog.needed"),
        ("day", "yesterday", "catalog.bad_date"),
        ("kind", "c9", "catalog.bad_choice"),
        ("columns", "[", "catalog.bad_json"),
        ("limit", "many", "catalog.bad_int"),
        ("share", "inf", "catalog.bad_float"),
        ("share", "half", "catalog.bad_float"),
        ("at", "later", "catalog.bad_datetime"),
        ("more", "[1]", "catalog.bad_object"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(export, name, text, key):
    fault = read(export, **{name: text}).faults[name]
    assert isinstance(fault, Fault)
    assert fault.key == key


@pytest.mark.parametrize(("name", "text"), [("columns", '{"a": 1}'), ("columns", "[1]"), ("price", "dear")])
def test_what_the_task_itself_refuses_is_said_at_its_field(export, name, text):
    assert name in read(export, **{name: text}).faults


def test_a_form_enqueues_a_job_and_shows_it(tab, shop):
    tab.go("/catalog")
    tab.page.click("a:has-text('reports.export')")
    tab.page.fill("#f-day", "2026-11-16")
    tab.page.select_option("#f-kind", label="pdf")
    tab.page.fill("#f-columns", "[")
    tab.page.fill("#f-title", "<script>alert(1)</script>")
    tab.page.fill("#f-api_token", "hunter2")
    tab.page.fill("#o-delay", "2 hours")
    tab.page.click("button:has-text('Enqueue the job')")
    assert "this is not valid JSON" in tab.page.inner_text("#f-columns-e")
    assert tab.page.inner_text("#o-delay-e")
    assert tab.page.input_value("#f-title") == "<script>alert(1)</script>"
    assert tab.page.input_value("#f-api_token") == ""  # a secret is typed again
    assert "hunter2" not in tab.page.content()
    tab.page.fill("#f-columns", '["a"]')
    tab.page.fill("#o-delay", "2h")
    tab.page.fill("#o-priority", "high")
    tab.page.fill("#o-key", "report-1")
    with tab.page.expect_response(lambda answer: answer.status == 303) as moved:
        tab.page.click("button:has-text('Enqueue the job')")
    job = shop.app.jobs.get(moved.value.headers["location"].rpartition("/")[2])
    assert (job.task, job.state, job.priority, job.key) == ("reports.export", "scheduled", 10, "report-1")
    assert job.args == ["2026-11-16", "pdf", ["a"], "<script>alert(1)</script>"]
    assert shop.app.open().list_audit_records(AuditFilter()).items[0].verb == "enqueued"


def test_a_secret_that_does_not_fit_is_not_repeated(tab, shop):
    @shop.app.task(name="unlock")
    def unlock(pin: Annotated[int, Secret]) -> None: ...

    tab.go("/catalog/unlock")
    tab.page.fill("[name='arg.pin']", "hunter2")
    tab.page.click("button:has-text('Enqueue')")
    tab.page.wait_for_selector(".err")
    assert tab.shows("is not a whole number")
    assert "hunter2" not in tab.page.content()


def test_a_task_without_arguments_says_so_and_runs(tab):
    tab.go("/catalog/usage.bill")
    assert tab.shows("The task takes no arguments.")
    with tab.page.expect_response(lambda answer: answer.status == 303):
        tab.page.click("button:has-text('Enqueue the job')")


def test_an_unknown_task_has_no_page(tab):
    assert tab.go("/catalog/no.such.task").status == 404


def test_the_page_of_a_task_has_its_last_jobs_and_the_log_of_the_newest(shop):
    said = page_text(shop, "/catalog/mail.send")
    assert "Last jobs" in said
    assert "mail.send('ann3@example.org', subject='Your order')" in said
    assert "mail to ann" in said.partition("Log of the last job")[2]
    assert "The task has no jobs yet." in page_text(shop, "/catalog/stock.levels")
