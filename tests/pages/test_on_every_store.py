"""Every page on every store: what one store cannot answer would show here."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from every_store import DURABLE, fresh_place
from pages.examples import addresses
from pages.sample import declare, fill
from pages.stage import TOKEN, Door
from rota import App

KINDS = [kind for kind in DURABLE if kind != "mongo-replica"]  # its pages are those of mongo


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_shows_what_is_in_the_store(kind, tmp_path):
    place = fresh_place(kind, tmp_path)
    app = App(place.url, namespace=place.namespace, name="shop", version="2.4")
    declare(app)
    ids = fill(app)
    client = TestClient(app.asgi(token=TOKEN))
    client.post("/login", data={"token": TOKEN})
    for path in addresses(Door(app, client, ids)):
        answer = client.get(path)
        assert answer.status_code == (404 if path == "/nothing-here" else 200), path
    failed = client.get("/jobs?q=state:failed").text
    assert "payments.charge(3, 384)" in failed
    assert "ValueError" in client.get(f"/jobs/{ids['failed']}").text
    assert "bank.example:443 did not answer in 30 s" in client.get("/").text
    app.close()
