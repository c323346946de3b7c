"""Queues of documents over HTTP and on their page: counts, findings, failed documents and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from rota import App
from rota.documents import DocumentQueue, MemorySource
from rota.errors import StoreUnavailable

TOKEN = "0123456789abcdef"  # noqa: S105
PAST = datetime(2020, 1, 1, tzinfo=UTC)


class Away(MemorySource):
    """A source whose server is away."""

    def search(self, limit, state=None):  # noqa: ARG002
        raise StoreUnavailable("the server is away")


@pytest.fixture
def app():
    app = App("memory://")
    yield app
    app.close()


@pytest.fixture
def client(app):
    return TestClient(app.asgi(token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}", "Accept-Language": "en"})


def fail(document):
    raise ValueError(f"no such order: <{document['_id']}>")


def test_a_failed_document_is_shown_with_why_over_http_and_on_the_page(app, client):
    orders = [
        {"_id": 1, "sleepUntil": PAST},
        {"_id": 2, "sleepUntil": "tomorrow"},
        {"_id": 3, "sleepUntil": datetime.now(UTC) + timedelta(days=1)},
    ]
    queue = DocumentQueue(MemorySource(orders), fail, name="reminders", app=app)
    queue.on("document.failed", lambda _: queue.stop("0s"))
    metrics = app.metrics
    assert b"rota_documents_total" in metrics.text()  # it counts from here on
    with queue:
        assert queue.wait("60s")
    (facts,) = client.get("/api/v1/documents").json()["items"]
    assert facts["states"] == {"waiting": 1, "due": 0, "running": 0, "retrying": 1, "done": 0}
    (failed,) = client.get("/api/v1/documents/reminders?state=retrying").json()["items"]
    assert (failed["id"], failed["failures"]) == ("1", 1)
    why = client.get("/api/v1/documents/reminders/why?id=1").json()
    assert (why["code"], why["state"]) == ("failed", "retrying")
    (finding,) = client.get("/api/v1/documents/reminders/check").json()["items"]
    assert finding["kind"] == "not-a-time"
    page = client.get("/documents").text
    assert "Something is wrong in 1 of 1 queues." in page
    assert "ValueError: no such order: &lt;1&gt;" in page
    assert "which is not a time" in page
    assert b'rota_documents_total{outcome="failed",queue="reminders"} 1.0' in metrics.text()


def test_a_source_that_is_away_is_told_and_the_others_are_shown(app, client):
    DocumentQueue(MemorySource([]), fail, name="well", app=app)
    DocumentQueue(Away([]), fail, name="away", app=app)
    away, well = client.get("/api/v1/documents").json()["items"]
    assert (away["error"], away["is_whole"], well["error"]) == ("the server is away", False, "")
    page = client.get("/documents")
    assert page.status_code == 200
    assert "The source cannot be read. the server is away" in page.text
    assert client.get("/api/v1/documents/away").status_code == 503


def test_what_is_unknown_is_refused(app, client):
    DocumentQueue(MemorySource([]), fail, name="well", app=app)
    missing = client.get("/api/v1/documents/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "document_queue_not_found")
    assert client.get("/api/v1/documents/well/why?id=7").status_code == 404
    assert client.get("/api/v1/documents/well?state=odd").status_code == 400
    assert client.get("/api/v1/documents/well/why").status_code == 400


def test_the_page_says_how_a_queue_is_declared_if_there_is_none(client):
    assert "handler: shop:remind" in client.get("/documents").text
