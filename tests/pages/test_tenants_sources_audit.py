"""Tenants, sources, the audit and the page of the HTTP API: what they show, what they change, and what they refuse."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from starlette.testclient import TestClient

from pages.stage import TOKEN
from rota.web.table import ROUTES


@pytest.fixture
def client(shop):
    return TestClient(shop.app.asgi(token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}"}, follow_redirects=False)


def test_a_change_of_zone_is_shown_before_it_is_made(tab, shop):
    before = shop.app.schedules.get("usage-acme").next_run
    tab.go("/tenants")
    tab.page.click("a:has-text('acme')")
    tab.page.fill("#f-tz", "Europe/Rgia")
    tab.page.click("button[value=preview]")
    assert "Europe/Riga" in tab.page.inner_text("#f-tz-e")
    tab.page.fill("#f-tz", "Pacific/Apia")
    tab.page.click("button[value=preview]")
    assert tab.shows("What this would change")
    assert "Asia/Kolkata" in tab.page.inner_text(".diff del")
    assert shop.app.tenants.get("acme").tz == "Asia/Kolkata"
    assert shop.app.schedules.get("usage-acme").next_run == before
    told = tab.page.locator("section:has(#pre-h) tbody tr time").nth(1).get_attribute("datetime")
    tab.page.click("button[value=save]")
    assert tab.shows("Tenant acme was changed")
    assert shop.app.tenants.get("acme").tz == "Pacific/Apia"
    after = shop.app.schedules.get("usage-acme").next_run
    assert after != before
    assert datetime.fromisoformat(told) == after  # as it was told


def test_the_second_of_two_editors_is_shown_that_it_was_changed(client, shop):
    shop.app.tenants.put("cargo", tz="UTC", by="ann")
    version = re.search(r'name="version" value="(\d+)"', client.get("/tenants/cargo").text)[1]
    shop.app.tenants.put("cargo", tz="Asia/Tokyo", by="bob")
    form = {"tz": "Europe/Riga", "version": version, "go": "save"}
    answer = client.post("/tenants/cargo", data=form)
    assert answer.status_code == 409
    assert "It was changed while you were editing" in answer.text
    assert 'value="Europe/Riga"' in answer.text
    assert shop.app.tenants.get("cargo").tz == "Asia/Tokyo"
    again = re.search(r'name="version" value="(\d+)"', answer.text)[1]
    assert client.post("/tenants/cargo", data={**form, "version": again}).status_code == 303
    assert shop.app.tenants.get("cargo").tz == "Europe/Riga"


def test_a_tenant_is_added_paused_resumed_and_removed(tab, shop):
    tab.go("/tenants")
    tab.page.fill("#f-name", "not a name")
    tab.page.fill("#f-tz", "Asia/Tokyo")
    tab.page.fill("#f-priority", "high")
    tab.page.click("button:has-text('Add the tenant')")
    assert "use 1 to 127" in tab.page.inner_text("#f-name-e")
    tab.page.fill("#f-name", "dart")
    tab.page.click("button:has-text('Add the tenant')")
    assert tab.shows("Tenant dart was added.")
    assert shop.app.tenants.get("dart").priority == 10
    tab.page.click("button:has-text('Pause…')")
    tab.page.fill("#p-reason", "<i>unpaid</i>")
    tab.page.click("button:has-text('Pause its schedules')")
    assert tab.shows("<i>unpaid</i>")
    assert shop.app.tenants.get("dart").pause.reason == "<i>unpaid</i>"
    tab.page.click("button:has-text('Resume')")
    assert shop.app.tenants.get("dart").pause is None
    tab.page.click("button:has-text('Remove…')")
    tab.page.click("button:has-text('Remove the tenant')")
    assert tab.shows("Tenant dart was removed.")


def test_a_tenant_with_schedules_is_not_removed(client, shop):
    answer = client.post("/tenants/bolt/remove")
    assert answer.status_code == 409
    assert shop.app.tenants.get("bolt")
    assert client.get("/tenants/nobody").status_code == 404


def test_a_sync_is_started_once(client, shop):
    first = client.post("/sources/store/orders")
    assert first.status_code == 303
    job_id = first.headers["Location"].removeprefix("/jobs/")
    assert shop.app.sources.task(job_id).collection == "orders"
    assert client.post("/sources/store/orders").headers["Location"] == f"/jobs/{job_id}"
    assert client.post("/sources/store/nothing").status_code == 404
    assert client.post("/sources/no%20source/x").status_code == 404


def test_sources_say_when_each_was_synced_and_will_be(tab):
    tab.go("/sources")
    assert tab.shows("store")
    row = tab.page.locator("tr:has-text('customers')").inner_text()
    assert "on demand" in row
    assert "Sync now" in row


def test_the_audit_says_who_changed_what_and_narrows_to_one_thing(tab):
    tab.go("/audit")
    row = tab.page.locator("tr:has-text('the disk is full')").first
    assert "Paused" in row.inner_text()
    assert "the disk is full" in row.inner_text()
    assert "ann" in row.inner_text()
    row.locator("a:has-text('only its changes')").click()
    assert tab.page.input_value("#a-subject") == "queue:reports"
    assert tab.page.locator("tbody tr").count() == 1


@pytest.mark.parametrize("query", ["subject=nonsense", "since=x", "until=0001-01-01T00:00", "cursor=%00%F0%9F%92%A9"])
def test_a_senseless_filter_of_the_audit_is_said_or_ignored(client, query):
    assert client.get(f"/audit?{query}").status_code == 200


def test_the_audit_has_pages(client, shop):
    for number in range(60):
        shop.app.queues.pause("many", reason=f"reason {number}", by="ann")
    first = client.get("/audit?subject=queue:many").text
    assert first.count("<tr data-key") == 50
    older = re.search(r'href="([^"]+)" rel="next"', first)[1].replace("&amp;", "&")
    assert client.get(older).text.count("<tr data-key") == 10


def test_the_page_of_the_api_has_every_route_with_an_example(client):
    page = client.get("/api").text
    for route in ROUTES:
        assert f'id="{route.method.lower()}-{route.name}"' in page, route.path
    assert page.count("curl") >= len(ROUTES)
    assert "http://" not in page.replace("http://www.w3.org", "")  # nothing of others


def test_the_page_of_the_api_searches(client):
    page = client.get("/api?q=pause+a+queue").text
    assert page.count('class="op"') == 1
    assert "/api/v1/queues/{queue}/pause" in page
    assert "reason" in page
    assert "No operation matches." in client.get("/api?q=zzz").text
