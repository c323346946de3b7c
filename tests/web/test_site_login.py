"""The dashboard and the API behind the login of the site that they are mounted in: `app.asgi(login=…)`."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from rota import App, every
from rota.client.tokens import Identity
from rota.errors import BadOption
from rota.web import Person
from rota.web.hub import Listener
from rota.web.login import SiteLogin

PEOPLE = {"ann": Person("ann", "operate"), "rob": Person("rob"), "eve": Person("eve", None)}
OWN = {"Origin": "http://testserver"}


async def by_cookie(request):
    return PEOPLE.get(request.cookies.get("site_user"))


def by_cookie_in_a_thread(request):
    return PEOPLE.get(request.cookies.get("site_user"))


@contextmanager
def site(login=by_cookie, *, login_url: str | None = "/accounts/login", user: str = "ann"):
    app = App("memory://")

    @app.schedule(every("1h"), id="hourly")
    def tick() -> None: ...

    app.schedules.sync()
    web = Starlette(routes=[Mount("/rota", app.asgi(login=login, login_url=login_url))])
    with TestClient(web, follow_redirects=False, cookies={"site_user": user} if user else {}) as client:
        yield app, client
    app.close()


@pytest.mark.parametrize("login", [by_cookie, by_cookie_in_a_thread, lambda request: by_cookie(request)])  # noqa: PLW0108
def test_a_person_sees_the_pages_under_their_own_name(login):
    with site(login) as (_, client):
        page = client.get("/rota/schedules")
        assert page.status_code == 200
        assert "ann, " in page.text
        assert client.get("/rota/login").headers["location"] == "/rota/"


def test_a_form_of_a_person_is_done_and_recorded_under_their_name():
    with site() as (app, client):
        token = re.search(r'name="_form" value="(\w+)"', client.get("/rota/schedules/hourly").text)[1]
        done = client.post("/rota/schedules/hourly/act", data={"_form": token, "verb": "pause"}, headers=OWN)
        assert done.status_code == 303
        assert app.schedules.get("hourly").is_paused
        assert app.changes().items[0].by == "ann"


@pytest.mark.parametrize("case", ["no token", "a token of another browser", "another site"])
def test_a_forged_form_does_nothing(case):
    with site() as (app, client):
        token = re.search(r'name="_form" value="(\w+)"', client.get("/rota/schedules/hourly").text)[1]
        if case == "a token of another browser":
            client.cookies.delete("rota_form")
        headers = {"Sec-Fetch-Site": "same-site"} if case == "another site" else OWN
        data = {"verb": "pause"} if case == "no token" else {"verb": "pause", "_form": token}
        assert client.post("/rota/schedules/hourly/act", data=data, headers=headers).status_code == 403
        assert not app.schedules.get("hourly").is_paused


def test_over_the_api_a_person_changes_things_from_pages_of_this_site_alone():
    path = "/rota/api/v1/schedules/hourly/pause"
    with site() as (app, client):
        for headers in ({}, {"Origin": "http://evil.test"}, {"Sec-Fetch-Site": "cross-site", **OWN}):
            assert client.post(path, json={}, headers=headers).json()["error"]["code"] == "other_site"
        assert client.get("/rota/api/v1/schedules").status_code == 200
        assert client.post(path, json={}, headers=OWN).status_code == 200
        assert app.changes().items[0].by == "ann"


def test_a_role_bounds_what_a_person_may_do():
    with site(user="rob") as (_, client):
        assert client.get("/rota/jobs").status_code == 200
        answer = client.post("/rota/api/v1/schedules/hourly/pause", json={}, headers=OWN)
        assert answer.json()["error"]["message"] == "this needs the role operate; rob has read"


def test_a_person_without_a_role_is_refused_and_not_sent_to_the_login_again():
    with site(user="eve") as (_, client):
        page = client.get("/rota/")
        assert page.status_code == 403
        assert "eve is logged in" in page.text
        assert client.get("/rota/api/v1/jobs").status_code == 403


def test_a_stranger_is_sent_to_the_sites_login_and_comes_back():
    with site(user="") as (_, client):
        answer = client.get("/rota/jobs?state=failed")
        assert answer.headers["location"] == "/accounts/login?next=/rota/jobs%3Fstate%3Dfailed"
        assert client.get("/rota/api/v1/jobs").status_code == 401
        assert client.post("/rota/schedules/hourly/act").headers["location"].endswith("?next=/rota/")


def test_without_a_login_address_a_stranger_may_log_in_with_a_token():
    with site(login_url=None, user="") as (_, client):
        assert client.get("/rota/jobs").status_code == 401


def test_a_token_in_a_header_counts_before_the_login():
    with site(user="rob") as (app, client):
        secret = app.tokens.create("robot", role="operate").secret
        headers = {"Authorization": f"Bearer {secret}"}
        assert client.post("/rota/api/v1/schedules/hourly/pause", json={}, headers=headers).status_code == 200
        assert app.changes().items[0].by == "robot"


@pytest.mark.parametrize("found", ["ann", Person("", "read"), Person("x" * 201), Person("ann", "root")])
def test_a_login_that_answers_nonsense_lets_nobody_in(found):
    with site(lambda _: found) as (_, client):
        assert client.get("/rota/api/v1/jobs").status_code == 500
        assert client.get("/rota/jobs").status_code == 500


def test_options_that_cannot_be_meant_are_refused():
    app = App("memory://")
    with pytest.raises(BadOption, match="must be a function"):
        app.asgi(login="ann")
    with pytest.raises(BadOption, match="needs a login="):
        app.asgi(login_url="/login")
    assert SiteLogin(app, None, None).address("/") is None


def test_a_stream_of_a_person_ends_so_that_the_site_is_asked_again():
    app = App("memory://")
    hub = app.asgi().hub
    short, long = Listener(Identity("ann", "read"), lasts=0.0), Listener(Identity("ann", "read"))
    hub._open |= {short, long}
    hub._end_old()
    assert (short.is_over, long.is_over) == (True, False)
