"""The sites of the guides, by their frameworks' own test clients, on both databases that jobs share with a site."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import litestar.testing
import pytest
import starlette.testclient
from fastapi.testclient import TestClient as FastAPIClient

from frameworks.databases import database

if TYPE_CHECKING:
    import flask

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
FILE = re.compile(r"^```python\n# (\w+)\.py\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(?:href|src)="(/rota/[^"]*)"')


class FlaskClient:
    """Flask's own client, with the answers as the others give them."""

    def __init__(self, site: flask.Flask) -> None:
        self._client = site.test_client()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def post(self, path: str, params: dict) -> Answer:
        return Answer(self._client.post(path, query_string=params))

    def get(self, path: str) -> Answer:
        return Answer(self._client.get(path))


class Answer:
    def __init__(self, answer) -> None:
        self.status_code = answer.status_code
        self._answer = answer

    def json(self) -> dict:
        return self._answer.json


CLIENTS = {
    "fastapi": FastAPIClient,
    "starlette": starlette.testclient.TestClient,
    "litestar": litestar.testing.TestClient,
    "flask": FlaskClient,
}


@pytest.fixture(params=["sqlite", "postgres"])
def load(request, tmp_path, monkeypatch):
    """Imports the files of a guide, and gives one of them."""
    with database(request.param, tmp_path) as url:
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)

        def load(guide: str, module: str = "shop"):
            for name, code in FILE.findall((GUIDES / f"{guide}.md").read_text(encoding="utf-8")):
                (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
            return importlib.import_module(module)

        try:
            yield load
        finally:
            shop = sys.modules["shop"]
            shop.app.close()
            if hasattr(shop, "db"):  # of Flask-SQLAlchemy
                with shop.site.app_context():
                    shop.db.engine.dispose()
            for name in ("shop", "server"):
                sys.modules.pop(name, None)


def states(shop) -> list[tuple[str, str]]:
    return sorted((job.task, job.state) for job in shop.app.jobs.list())


@pytest.mark.parametrize("guide", CLIENTS)
def test_a_committed_order_has_its_job_and_a_refused_one_none(guide, load):
    shop = load(guide)
    with CLIENTS[guide](shop.site) as client:
        assert client.post("/orders", params={"item": "unicorn"}).status_code == 409
        assert states(shop) == []
        placed = client.post("/orders", params={"item": "chair"})
        assert client.get(f"/jobs/{placed.json()['job']}").json() == {"state": "queued"}
        client.post("/greet", params={"name": "ann"})
        assert states(shop) == [("shop.greet", "queued"), ("shop.send_receipt", "queued")]


@pytest.fixture
def site(load, request):
    """The whole site of a guide, with its dashboard, and a client of its framework's kind."""
    guide = request.param
    shop = load(guide)
    served = load(guide, "server").both if guide == "flask" else shop.site
    kind = litestar.testing.TestClient if guide == "litestar" else starlette.testclient.TestClient
    with kind(served) as client:
        yield shop, client


@pytest.mark.parametrize("load", ["sqlite"], indirect=True)
@pytest.mark.parametrize("site", CLIENTS, indirect=True)
def test_the_dashboard_is_behind_the_login_of_the_site(site):
    shop, client = site
    job = client.post("/orders", params={"item": "chair"}).json()["job"]
    asked = client.get("/rota/", headers={"accept": "text/html"}, follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=/rota/")
    cancel = f"/rota/api/v1/jobs/{job}/cancel"
    assert client.post(cancel, headers={"sec-fetch-site": "same-origin"}).status_code == 401

    client.post("/login", data={"name": "bob"}, follow_redirects=False)
    assert client.get("/rota/", headers={"accept": "text/html"}).status_code == 403

    page = client.post("/login?next=/rota/jobs", data={"name": "ann"})
    assert (page.status_code, job in page.text) == (200, True)
    links = {link for link in LINK.findall(page.text) if not link.endswith("/look")}
    assert len(links) > 10
    assert {link for link in links if client.get(link).status_code != 200} == set()

    assert client.post(cancel, json={"reason": "sold out"}).status_code == 403  # not from a page of the site
    done = client.post(cancel, json={"reason": "sold out"}, headers={"sec-fetch-site": "same-origin"})
    assert (done.status_code, shop.app.jobs.get(job).state) == (200, "cancelled")
    assert [change.by for change in shop.app.changes()] == ["ann"]
