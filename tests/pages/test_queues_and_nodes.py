"""Queues and nodes: what waits and who serves it; a pause says who and why, in the page, the API and the audit."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from pages.sample import declare
from pages.stage import TOKEN, shown_text
from rota import App
from rota.model.micros import SECOND
from rota.store.contract import Exchange, Node


def test_a_queue_is_paused_with_a_reason_and_resumed(tab, shop):
    shop.app.__rota_tasks__.get("mail.send").using(queue="slow").enqueue("x@example.org")
    tab.go("/queues")
    row = tab.page.locator('tr[data-name="slow"]')
    row.get_by_role("button").click()
    tab.page.locator("dialog:popover-open input[type=text]").fill("<b>the mail server</b> moves")
    tab.page.locator("dialog:popover-open button.prime").click()
    assert tab.shows("Queue slow is paused.")
    assert "<b>the mail server</b> moves" in row.inner_text()
    facts = {queue.name: queue for queue in shop.app.queues.list()}
    assert facts["slow"].is_paused
    api = TestClient(shop.app.asgi(token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}"})
    told = {one["name"]: one for one in api.get("/api/v1/queues").json()["items"]}["slow"]
    assert told["pause"]["reason"] == "<b>the mail server</b> moves"
    assert told["pause"]["by"] in row.inner_text()
    tab.page.locator('tr[data-name="slow"] button').click()
    assert tab.shows("Queue slow is open again.")
    assert not {queue.name: queue for queue in shop.app.queues.list()}["slow"].is_paused


def test_a_queue_that_no_worker_serves_comes_first_and_says_what_to_start(tab):
    tab.go("/queues")
    first = tab.page.locator("tbody tr").first.inner_text()
    assert "No live worker serves it." in first
    assert "rota worker -q" in first


def test_a_silent_node_comes_first_and_says_so(tab, shop):
    store = shop.app.open()
    live = Node(id="live-1", host="web-2", pid=7, roles=("worker",), queues=("mail",), concurrency=4, running=1)
    store.record_heartbeat(live, now=store.now())
    tab.go("/nodes")
    rows = [row.inner_text() for row in tab.page.locator("tbody tr").all()]
    assert "build-7" in rows[0]
    assert "Silent" in rows[0]
    assert "No heartbeat for" in rows[0]
    assert "0 of 4" in next(row for row in rows if "web-2" in row)
    assert tab.shows("No scheduler is alive")


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    app = App("memory://", name="shop")
    declare(app)
    yield TestClient(app.asgi(token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}"}, follow_redirects=False)
    app.close()


def test_the_api_and_the_audit_say_why_a_queue_is_paused(client):
    assert (
        client.post("/api/v1/queues/mail/pause", json={"reason": "month end"}).json()["pause"]["reason"] == "month end"
    )
    assert client.post("/api/v1/queues/mail/pause", json={"reason": "year end"}).json()["pause"]["reason"] == "year end"
    changes = client.get("/api/v1/changes?subject=queue:mail").json()["items"]
    assert [(one["verb"], one["after"].get("reason")) for one in changes] == [
        ("paused", "year end"),
        ("paused", "month end"),
    ]
    assert client.post("/api/v1/queues/mail/resume").json()["pause"] is None


def test_empty_pages_show_the_command_that_fills_them(client):
    assert "rota enqueue TASK" in client.get("/queues").text
    assert "rota run TARGET" in client.get("/nodes").text


def test_a_senseless_queue_has_no_page(client):
    assert client.post("/queues/not%20one/pause").status_code == 404


def test_a_node_of_the_far_past_has_a_row(client):
    store = client.app.app.open()
    store.record_heartbeat(Node(id="n", host="<script>", pid=1, roles=("worker",)), now=SECOND)
    assert "&lt;script&gt;" in client.get("/nodes").text


def test_a_node_that_drains_says_so_while_it_is_alive(client):
    store = client.app.app.open()
    says = "It drains: it finishes its running jobs, claims no more, and ends."
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), is_draining=True), now=store.now())
    assert says in shown_text(client.get("/nodes").text)
    store.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker",), is_draining=True), now=SECOND)
    assert says not in shown_text(client.get("/nodes").text)


def test_running_means_the_same_on_every_page_while_a_node_is_silent(client):
    app = client.app.app
    store = app.open()
    for name in ("a", "b"):
        app.__rota_tasks__.get("mail.send").enqueue(f"{name}@example.org")
    old = store.now() - 3_600 * SECOND
    gone = Node(id="gone", host="h", pid=1, roles=("worker",), queues=("mail",), concurrency=16, running=1)
    store.record_heartbeat(gone, now=old)
    store.exchange(Exchange(holder="gone", want=2, queues=("mail",)))
    home, queues, nodes = (shown_text(client.get(path).text) for path in ("/", "/queues", "/nodes"))
    assert "Running 2 no worker is alive; 2 on silent nodes" in home
    assert "1 queue has no worker. No job waits in it." in queues
    assert "2 running jobs are still with silent nodes." in queues
    assert "2 of 16" in nodes
    assert "2 jobs are still with silent nodes." in nodes
