"""Who gets in: tokens, sessions, links that work once, forms of other sites, and what a role may do."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import Annotated

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from pages.sample import declare
from rota import App, Secret
from rota.model.entry import EntryEdit
from rota.store.contract import LARGEST_PAGE
from rota.testing.store_suite.steps import failed_job
from rota.web.sessions import Session

TOKEN = "a-token-of-the-tests"  # noqa: S105 - of nobody
HTML = {"Accept": "text/html"}


@pytest.fixture
def app(monkeypatch):
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    app = App("memory://", name="shop")
    declare(app)
    yield app
    app.close()


@pytest.fixture
def client(app):
    return TestClient(app.asgi(token=TOKEN), follow_redirects=False)


def log_in(client, token=TOKEN):
    return client.post("/login", data={"token": token, "back": "/jobs"})


def form_token(client, path="/jobs") -> str:
    return re.search(r'name="_form" value="([0-9a-f]{32})"', client.get(path).text)[1]


def test_without_a_session_every_page_is_the_login_page(client):
    answer = client.get("/jobs?q=state:failed")
    assert answer.status_code == 401
    assert 'name="token"' in answer.text
    assert 'value="/jobs?q=state:failed"' in answer.text


def test_a_token_begins_a_session_and_goes_back(client):
    answer = log_in(client)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/jobs")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert client.get("/jobs").status_code == 200
    assert TOKEN not in cookie


def test_the_cookie_is_for_https_alone_where_the_page_is(app):
    client = TestClient(app.asgi(token=TOKEN), base_url="https://shop.example", follow_redirects=False)
    assert "Secure" in log_in(client).headers["Set-Cookie"]


def test_a_bad_token_begins_nothing(client):
    answer = log_in(client, "nonsense")
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers
    assert "unknown, revoked or expired" in answer.text


def test_the_store_keeps_no_secret_of_a_session(app, client):
    cookie = log_in(client).headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    kept = [entry.data for entry in app.open().list_entries("session").items]
    assert len(kept) == 1
    assert cookie.split("_", 1)[1] not in kept[0]


def test_a_login_removes_expired_sessions_behind_many_live_ones(app, client):
    store = app.open()

    def entry(name, expires_at):
        data = msgspec.json.encode(Session(hash="", expires_at=expires_at)).decode()
        return EntryEdit(kind="session", name=name, expect_version=0, data=data)

    store.edit_entries([entry(f"{number:016x}", store.now() + 10**12) for number in range(LARGEST_PAGE)])
    store.edit_entries([entry("f" * 16, store.now() - 1)])
    log_in(client)
    assert store.get_entries("session", ["f" * 16]) == []


def test_a_session_ends_with_its_token(app, client):
    made = app.tokens.create("ann", role="operate")
    log_in(client, made.secret)
    assert client.get("/jobs").status_code == 200
    app.tokens.revoke(made.id)
    assert client.get("/jobs").status_code == 401


def test_a_session_of_the_servers_own_token_ends_when_that_is_another(app, client):
    log_in(client)
    other = TestClient(app.asgi(token=f"{TOKEN}-2"), cookies=client.cookies)
    assert other.get("/jobs").status_code == 401


def test_logging_out_ends_the_session_for_good(client):
    log_in(client)
    stolen = dict(client.cookies)
    client.post("/logout", data={"_form": form_token(client)})
    assert TestClient(client.app, cookies=stolen).get("/jobs").status_code == 401


def test_a_link_logs_in_once(app):
    web = app.asgi(token=TOKEN)
    code = web.access.sessions.make_link()
    first, second = (TestClient(web, follow_redirects=False) for _ in range(2))
    assert first.get(f"/login?once={code}").status_code == 200
    assert first.get(f"/login?once={code}").status_code == 200  # looking at it does not use it up
    assert first.post("/login", data={"once": code}).status_code == 303
    assert first.get("/").status_code == 200
    assert second.post("/login", data={"once": code}).status_code == 401
    assert second.get("/").status_code == 401


def test_a_link_logs_in_a_visitor_who_has_a_session(app):
    web = app.asgi(token=TOKEN)
    client = TestClient(web, follow_redirects=False)
    log_in(client, app.tokens.create("ann").secret)
    page = client.get(f"/login?once={web.access.sessions.make_link()}").text
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))
    assert client.post("/login", data=fields).status_code == 303
    assert "/schedules/new" in client.get("/schedules").text  # as an admin


FORGED = [
    {"key": "deleted", "values": {"key": "x", "n": 1}},
    {"key": "deleted", "values": {"self": "x", "n": 1}},
    {"key": "deleted", "values": {"n": 1}, "tone": "other"},
    {"key": "deleted", "values": {"n": [1]}},
    {"key": "deleted"},
]


@pytest.mark.parametrize(
    "cookie", [*(msgspec.json.encode(one) for one in FORGED), b'{"x":' + b"[" * 9_000 + b"]" * 9_000 + b"}", b"\xff"]
)
def test_a_forged_message_of_the_last_action_breaks_no_page(client, cookie):
    """Other servers on the same host, and sites on its subdomains, can set this cookie."""
    log_in(client)
    headers = {
        "Cookie": f"rota_session={client.cookies['rota_session']}; rota_flash={urlsafe_b64encode(cookie).decode()}"
    }
    client.cookies.clear()
    answer = client.get("/jobs", headers=headers)
    assert answer.status_code == 200
    assert "other" not in re.findall(r'class="flash ([^"]*)"', answer.text)
    assert "rota_flash=" in answer.headers["Set-Cookie"]  # it is gone afterwards


def test_what_was_typed_as_a_secret_is_not_shown_after_the_login(app, client):
    @app.task(name="pay")
    def pay(code: Annotated[str, Secret], to: str = "", more: dict[str, str] | None = None) -> None: ...

    typed = {"arg.code": "hunter2", "arg.to": "bob", "arg.more": '{"password": "hunter2"}', "args": '["hunter2"]'}
    for path in ("/catalog/pay", "/jobs/example/copy"):
        kept = {f"kept.{name}": value for name, value in typed.items()}
        page = client.post("/login", data={"token": TOKEN, "resume": "1", "back": path, **kept}).text
        client.cookies.clear()
        assert "hunter2" not in re.sub(r'value="[^"]*"', "", page)
        assert ">bob<" in page or path != "/catalog/pay"
        assert 'name="arg.code" value="hunter2"' in page  # it is sent


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}]
)
def test_a_form_of_another_site_changes_nothing(app, client, headers):
    log_in(client)
    job = app.__rota_tasks__.get("mail.send").enqueue("ann@example.org")
    data = {"_form": form_token(client), "verb": "cancel", "scope": "ticked", "job": job.id}
    assert client.post("/jobs", data=data, headers=headers).status_code == 403
    assert app.jobs.get(job.id).state == "queued"
    assert client.post("/jobs", data=data).status_code == 303
    assert app.jobs.get(job.id).state == "cancelled"


def test_a_form_without_its_sessions_token_changes_nothing(app, client):
    log_in(client)
    job = app.__rota_tasks__.get("mail.send").enqueue("ann@example.org")
    for token in ("", "0" * 32):
        data = {"_form": token, "verb": "cancel", "scope": "ticked", "job": job.id}
        assert client.post("/jobs", data=data).status_code == 403
    assert app.jobs.get(job.id).state == "queued"


def test_a_token_in_a_header_is_enough_beside_the_cookie_of_a_session_that_is_over(app):
    client = TestClient(app.asgi(token=TOKEN), follow_redirects=False)
    headers = {"Authorization": f"Bearer {TOKEN}", "Cookie": f"rota_session={'0' * 16}_{'x' * 24}"}
    job = app.__rota_tasks__.get("mail.send").enqueue("ann@example.org")
    assert client.post(f"/jobs/{job.id}", headers=headers, data={"verb": "cancel"}).status_code == 303
    assert app.jobs.get(job.id).state == "cancelled"


def test_a_reader_changes_nothing(app, client):
    log_in(client, app.tokens.create("ann", role="read").secret)
    job = app.__rota_tasks__.get("mail.send").enqueue("ann@example.org")
    page = client.get("/jobs").text
    assert 'name="verb"' not in page
    token = re.search(r'name="_form" value="([0-9a-f]{32})"', page)[1]
    data = {"_form": token, "verb": "cancel", "scope": "ticked", "job": job.id}
    assert client.post("/jobs", data=data).status_code == 403
    assert app.jobs.get(job.id).state == "queued"


def test_a_server_that_only_shows_lets_in_and_changes_nothing(app):
    client = TestClient(app.asgi(token=TOKEN, read_only=True), follow_redirects=False)
    log_in(client)
    job = app.__rota_tasks__.get("mail.send").enqueue("ann@example.org")
    data = {"_form": form_token(client), "verb": "cancel", "scope": "ticked", "job": job.id}
    assert client.post("/jobs", data=data).status_code == 403
    assert app.jobs.get(job.id).state == "queued"


def test_a_session_that_ends_in_the_middle_of_an_action_loses_nothing(app, client):
    made = app.tokens.create("ann", role="operate")
    log_in(client, made.secret)
    job = app.__rota_tasks__.get("mail.send").enqueue("ann@example.org")
    data = {"_form": form_token(client), "verb": "cancel", "scope": "ticked", "job": job.id, "q": "task:mail.*"}
    app.tokens.revoke(made.id)
    asked = client.post("/jobs", data=data)
    assert asked.status_code == 401
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', asked.text))
    assert fields["kept.job"] == job.id
    assert "kept._form" not in fields
    resumed = client.post("/login", data={**fields, "token": TOKEN})
    assert resumed.status_code == 200
    assert app.jobs.get(job.id).state == "queued"  # it is asked for once more
    again = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', resumed.text.split("<main")[1]))
    done = client.post("/jobs", data=again)
    assert (done.status_code, done.headers["Location"]) == (303, "/jobs?q=task%3Amail.%2A")
    assert app.jobs.get(job.id).state == "cancelled"


def test_a_resumed_edit_shows_what_was_changed_and_sends_all_of_it(client):
    kept = {
        "back": "/schedules/nightly/edit", "save": "1", "kind": "cron", "cron": "0 9 * * *", "queue": "", "tz": "UTC",
        "base.kind": "cron", "base.cron": "0 8 * * *", "base.queue": "mail", "base.tz": "UTC",
    }  # fmt: skip
    fields = {f"kept.{name}": value for name, value in kept.items()}
    page = client.post(
        "/login", data={**fields, "back": "/schedules/nightly/edit", "resume": "1", "token": TOKEN}
    ).text.split("<main")[1]
    assert re.findall(r"<dt[^>]*>([^<]*)</dt><dd[^>]*>([^<]*)</dd>", page) == [("cron", "0 9 * * *"), ("queue", "—")]
    sent = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))
    assert {name: value for name, value in sent.items() if name != "_form"} == kept


def test_the_login_page_says_what_became_of_a_session_of_rota_dev(client):
    page = client.get("/login").text
    assert "ends when that stops" in page
    assert "printed in the terminal" in page


def test_every_link_holds_the_prefix_under_which_it_is_mounted(app):
    outer = Starlette(routes=[Mount("/ops/rota", app.asgi(token=TOKEN))])
    client = TestClient(outer, follow_redirects=False)
    answer = client.post("/ops/rota/login", data={"token": TOKEN, "back": "/jobs"})
    assert answer.headers["Location"] == "/ops/rota/jobs"
    assert "Path=/ops/rota" in answer.headers["Set-Cookie"]
    for path in ("/", "/jobs"):
        page = client.get(f"/ops/rota{path}")
        assert page.status_code == 200
        links = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
        assert links
        assert [link for link in links if not link.startswith("/ops/rota/")] == []
    style = re.search(r'href="([^"]+\.css)"', page.text)[1]
    assert client.get(style).headers["Cache-Control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("prefix", ["%5Cevil.example", "a%3Bb", "%E2%82%AC", "a%20b"])
def test_a_prefix_that_the_visitor_chooses_leads_to_no_other_site(app, prefix):
    """Browsers read /\\evil.example as //evil.example, which is another site."""
    outer = Starlette(routes=[Mount("/{shop}/rota", app.asgi(token=TOKEN))])
    client = TestClient(outer, follow_redirects=False)
    page = client.get(f"/{prefix}/rota/jobs")
    assert page.status_code == 401
    assert 'name="back" value="/jobs"' in page.text
    links = re.findall(r'(?:href|src|action|data-base)="([^"#]+)"', page.text)
    assert [link for link in links if not link.startswith(f"/{prefix}/rota")] == []
    answer = client.post(f"/{prefix}/rota/login", data={"token": TOKEN})
    assert answer.headers["Location"] == f"/{prefix}/rota/"
    assert f"Path=/{prefix}/rota;" in answer.headers["Set-Cookie"]
    assert client.get(f"/{prefix}/rota/jobs").status_code == 200
    assert client.get(f"/{prefix}/rota/api/v1/openapi.json").json()["servers"] == [{"url": f"/{prefix}/rota"}]


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_logging_in_leads_to_no_other_site(client, back):
    answer = client.post("/login", data={"token": TOKEN, "back": back})
    assert answer.headers["Location"] == "/"


def test_a_place_to_go_back_to_may_have_every_character(client):
    answer = client.post("/login", data={"token": TOKEN, "back": "/jobs/ä→x?q=a%20b&c=d e"})
    assert answer.headers["Location"] == "/jobs/%C3%A4%E2%86%92x?q=a%20b&c=d%20e"


def test_a_senseless_address_has_a_page(client):
    log_in(client)
    answer = client.get("/jobs/not%20a%20job/%F0%9F%92%A9", headers=HTML)
    assert answer.status_code == 404
    assert "There is no such page" in answer.text


SOME_SECRET = f"0123456789abcdef_{'x' * 24}"


@pytest.mark.parametrize(
    ("path", "cookie", "form"),
    [
        ("/jobs", SOME_SECRET, None),
        ("/login", "", {"once": SOME_SECRET}),
        ("/login", "", {"token": f"rota_0123456789ab_{'x' * 43}"}),
        ("/jobs", SOME_SECRET, {"verb": "delete"}),
    ],
)
def test_a_stranger_does_not_learn_where_a_store_is_that_is_away(path, cookie, form):
    app = App("sqlite:////proc/nowhere/rota.db", name="shop")
    client = TestClient(app.asgi(token=TOKEN), follow_redirects=False)
    headers = {"Cookie": f"rota_session={cookie}"} if cookie else {}
    answer = client.get(path, headers=headers) if form is None else client.post(path, data=form, headers=headers)
    assert answer.status_code == 503
    assert "nowhere" not in answer.text
    assert "The store does not answer" in answer.text
    app.close()


def test_ids_that_no_job_can_have_are_left_out(client):
    log_in(client)
    data = {"_form": form_token(client), "verb": "cancel", "scope": "ticked", "job": ["a\x00b", "\u202e", "x" * 300]}
    assert client.post("/jobs", data=data).status_code == 303


def test_an_address_sends_no_control_characters_to_the_log(client, caplog, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    log_in(client)
    monkeypatch.setattr("rota.web.pages.serving._params", fail)
    assert client.get("/catalog/a%1B[31mforged").status_code == 500
    found = [record.getMessage() for record in caplog.records if record.name == "rota.web"]
    assert found == ["GET '/catalog/a\\x1b[31mforged' failed"]


def test_over_https_at_the_root_the_session_has_a_name_that_no_other_host_can_set(app):
    client = TestClient(app.asgi(token=TOKEN), base_url="https://shop.example", follow_redirects=False)
    set_cookie = client.post("/login", data={"token": TOKEN}).headers["Set-Cookie"]
    assert set_cookie.startswith("__Host-rota_session=")
    assert "; Path=/;" in f"{set_cookie};"
    assert "Secure" in set_cookie
    assert "Domain" not in set_cookie
    assert client.get("/jobs").status_code == 200
    session = client.cookies["__Host-rota_session"]
    planted = TestClient(app.asgi(token=TOKEN), base_url="https://shop.example", follow_redirects=False)
    planted.cookies.set("rota_session", session)
    assert 'name="token"' in planted.get("/jobs").text
    form = re.search(r'name="_form" value="([^"]*)"', client.get("/jobs").text)[1]
    gone = client.post("/logout", data={"_form": form}).headers["Set-Cookie"]
    assert gone.startswith("__Host-rota_session=")
    assert "Secure" in gone


def test_under_a_prefix_the_session_has_its_plain_name(app):
    site = Starlette(routes=[Mount("/rota", app.asgi(token=TOKEN))])
    client = TestClient(site, base_url="https://shop.example", follow_redirects=False)
    assert client.post("/rota/login", data={"token": TOKEN}).headers["Set-Cookie"].startswith("rota_session=")


def test_the_navigation_counts_what_needs_a_person(app):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    page = TestClient(app.asgi(token=TOKEN), headers=headers).get("/queues").text
    assert '<span id="n-jobs" class="n bad" data-live></span>' in page
    failed_job(app.open(), queue="counted")
    page = TestClient(app.asgi(token=TOKEN), headers=headers).get("/queues").text
    assert '<span id="n-jobs" class="n bad" data-live>1<span class="vh"> failed</span></span>' in page
    assert '<span id="n-schedules" class="n bad" data-live></span>' in page
