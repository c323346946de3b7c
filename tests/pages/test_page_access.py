"""Every page against every kind of visitor: each is let in or turned away as its role says, and what is turned away
changes nothing. Both sides come from the table of pages, so that no new page is forgotten."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from pages.sample import declare
from rota import App
from rota.model.token import ROLES
from rota.web.pages.forms import form_token
from rota.web.pages.table import PAGES

VISITORS = ("nobody", "ended", *ROLES)
PAGE_IDS = [f"{page.method} {page.path}" for page in PAGES]


@pytest.fixture(autouse=True)
def _streams_end(monkeypatch):
    async def stream(_hub, _listener):
        yield b": alive\n\n"

    monkeypatch.setattr("rota.web.hub.Hub._stream", stream)


@pytest.fixture(scope="module")
def app():
    app = App("memory://", name="shop")
    declare(app)
    app.schedules.sync()
    yield app
    app.close()


@pytest.fixture
def cookies(app):
    sessions = app.asgi().access.sessions
    found = {"nobody": "", "ended": f"{'0' * 16}_{'x' * 43}"}
    for role in ROLES:
        found[role] = sessions.begin(app.tokens.check(app.tokens.create(f"{role}er", role=role).secret))
    return found


def visit(app, page, cookie, *, read_only=False, token=None):
    client = TestClient(app.asgi(read_only=read_only), follow_redirects=False, raise_server_exceptions=False)
    path = re.sub(r"{[a-z_]+}", "example", page.path)
    headers = {"Cookie": f"rota_session={cookie}"} if cookie else {}
    if page.method == "GET":
        return client.get(path, headers=headers)
    return client.post(path, headers=headers, data={"_form": form_token(cookie) if token is None else token})


def changes(app):
    return [record.id for record in app.changes(limit=200).items]


@pytest.mark.parametrize("visitor", VISITORS)
@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_a_page_lets_in_whom_its_role_says(app, cookies, page, visitor):
    before = changes(app)
    answer = visit(app, page, cookies[visitor])
    if page.role is None:
        assert answer.status_code not in {403, 500}
    elif visitor not in ROLES:
        assert answer.status_code == 401
        assert 'name="token"' in answer.text
        assert changes(app) == before
    elif ROLES.index(visitor) < ROLES.index(page.role):
        assert answer.status_code == 403
        assert changes(app) == before
    else:
        assert answer.status_code not in {401, 403, 500}


@pytest.mark.parametrize("page", [page for page in PAGES if page.is_change], ids=lambda page: page.path)
def test_a_change_needs_the_sessions_own_form_and_a_server_that_does_not_only_show(app, cookies, page):
    before = changes(app)
    assert page.role in {"operate", "admin"}
    assert visit(app, page, cookies["admin"], token="0" * 32).status_code == 403
    assert visit(app, page, cookies["admin"], read_only=True).status_code == 403
    assert changes(app) == before


def test_a_page_that_changes_nothing_of_the_work_is_one_of_a_few():
    free = {page.path for page in PAGES if page.method == "POST" and page.changes_nothing}
    assert {"/login", "/logout", "/look"} <= free


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.role == "operate" and page.method == "GET"], ids=lambda page: page.path
)
def test_a_server_that_only_shows_has_no_form_for_a_change(app, cookies, page):
    answer = visit(app, page, cookies["admin"], read_only=True)
    assert answer.status_code == 403
    assert "This server only shows" in answer.text


def test_a_server_that_only_shows_says_so_on_every_page(app, cookies):
    page = next(page for page in PAGES if page.path == "/jobs")
    assert "Read only" in visit(app, page, cookies["admin"], read_only=True).text
    assert "Read only" not in visit(app, page, cookies["admin"]).text
