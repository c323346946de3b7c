"""Tokens and the gate: secrets that are kept nowhere, slow answers to guesses, and doors that stay shut."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from rota import App
from rota.errors import BadOption, BadSettings
from rota.web.access import CALM, MOST_FAILURES, Guard
from rota.web.origins import source_of
from rota.web.refusals import Refusal
from rota.web.server import WebServer, check_address

JOBS = "/api/v1/jobs"


def test_a_secret_is_shown_once_and_its_hash_alone_is_kept(stage):
    made = stage.ask("POST", "/api/v1/tokens", json={"name": "eve", "role": "operate", "ttl": "90d"}).json()
    assert made["secret"].startswith(f"rota_{made['id']}_")
    kept = msgspec.json.encode(stage.dump()).decode()
    assert made["secret"].split("_", 2)[2] not in kept
    shown = stage.ask("GET", "/api/v1/tokens").text
    assert made["secret"] not in shown
    assert "hash" not in shown


def test_both_headers_let_in(stage):
    secret = stage.secrets["read"]
    for headers in (
        {"Authorization": f"Bearer {secret}"},
        {"authorization": f"bearer {secret}"},
        {"X-Admin-Token": secret},
    ):
        assert stage.client.get(JOBS, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer é"},
        {"Authorization": f"Bearer {'x' * 10_000}"},
        {"X-Admin-Token": ""},
        {"X-Admin-Token": "admin"},
        {"Cookie": "token=admin"},
    ],
    ids=str,
)
def test_other_credentials_do_not(stage, headers):
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    response = stage.client.get(JOBS, headers=encoded)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_token_in_the_query_is_no_credential(stage):
    assert stage.client.get(f"{JOBS}?token={stage.secrets['admin']}").status_code == 401


def test_a_secret_whose_end_differs_is_bad(stage):
    secret = stage.secrets["admin"]
    other = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    assert stage.client.get(JOBS, headers={"X-Admin-Token": other}).status_code == 401


def test_a_revoked_token_is_bad_at_once(stage):
    made = stage.ask("POST", "/api/v1/tokens", json={"name": "eve", "role": "admin"}).json()
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert stage.client.get(JOBS, headers=headers).status_code == 200
    stage.app.tokens.revoke(made["id"])
    assert stage.client.get(JOBS, headers=headers).status_code == 401


def test_the_token_of_the_settings_is_an_admins(app, monkeypatch):
    monkeypatch.setenv("ROTA_WEB_TOKEN", "a-secret-of-the-deployment")
    client = TestClient(app.asgi())
    headers = {"X-Admin-Token": "a-secret-of-the-deployment"}
    assert client.get("/api/v1/tokens", headers=headers).status_code == 200
    client.post("/api/v1/queues/mail/pause", headers=headers)
    assert app.changes().items[0].by == "admin"


def test_a_short_token_of_the_settings_is_refused_and_not_shown(app, monkeypatch):
    monkeypatch.setenv("ROTA_WEB_TOKEN", "hunter2")
    with pytest.raises(BadSettings) as caught:
        _ = app.settings
    assert "hunter2" not in str(caught.value)
    assert "16" in str(caught.value)


def test_guesses_wait_longer_each_time_and_are_turned_away(monkeypatch):
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("rota.web.access.asyncio.sleep", sleep)
    now = [100.0]
    guard = Guard(lambda: now[0])
    for _ in range(MOST_FAILURES):
        guard.check("1.2.3.4", "guess")
        asyncio.run(guard.note_bad("1.2.3.4"))
    assert waits == sorted(waits)
    assert 0 < waits[0] < waits[-1] <= 2.0
    with pytest.raises(Refusal) as caught:
        guard.check("1.2.3.4", "guess")
    assert caught.value.status == 429
    assert int(caught.value.headers["Retry-After"]) <= CALM
    guard.check("5.6.7.8", "guess")  # another address is not
    now[0] += CALM + 1
    guard.check("1.2.3.4", "guess")


def test_who_came_in_before_is_not_locked_out_by_anothers_guesses(monkeypatch):
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    guard = Guard(lambda: 100.0)
    guard.note_good("good")
    for _ in range(MOST_FAILURES):
        asyncio.run(guard.note_bad("proxy"))
    guard.check("proxy", "good")
    with pytest.raises(Refusal):
        guard.check("proxy", "another")


def test_many_guesses_at_once_do_not_all_wait(monkeypatch):
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.01)

    async def scene() -> list[object]:
        guard = Guard()
        return await asyncio.gather(*(guard.note_bad("1.2.3.4") for _ in range(30)), return_exceptions=True)

    ends = asyncio.run(scene())
    assert sum(isinstance(end, Refusal) for end in ends) == 22


def test_the_guard_remembers_a_bounded_number_of_addresses(monkeypatch):
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    monkeypatch.setattr("rota.web.access.MOST_ADDRESSES", 10)
    guard = Guard()

    async def scene() -> None:
        for number in range(100):
            await guard.note_bad(f"10.0.0.{number}")
            guard.note_good(f"good {number}")

    asyncio.run(scene())
    assert (len(guard._tries), len(guard._known), guard._delayed) == (10, 10, {})


def test_a_flood_of_bad_tokens_is_turned_away_over_http(stage):
    headers = {"X-Admin-Token": "nonsense"}
    statuses = [stage.client.get(JOBS, headers=headers).status_code for _ in range(MOST_FAILURES + 3)]
    assert statuses == [401] * MOST_FAILURES + [429] * 3
    assert stage.client.get("/live").status_code == 200


def test_nobody_reads_without_a_token_unless_that_is_asked_for(stage):
    local = ("127.0.0.1", 50_000)
    open_to_all = TestClient(stage.app.asgi(anonymous=True), base_url="http://127.0.0.1:8080", client=local)
    assert open_to_all.get(JOBS).status_code == 200
    assert open_to_all.post(JOBS, json={"task": "greet", "args": ["ann"]}).status_code == 403
    assert open_to_all.get("/api/v1/tokens").status_code == 403
    assert open_to_all.get(JOBS, headers={"X-Admin-Token": "nonsense"}).status_code == 401
    elsewhere = TestClient(stage.app.asgi(anonymous=True), base_url="http://192.0.2.1:8080", client=local)
    assert elsewhere.get(JOBS).status_code == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", ""])  # noqa: S104 - what must be refused
def test_a_public_address_is_not_served_to_anybody(host, app, monkeypatch):
    with pytest.raises(BadOption, match="rota token create"):
        check_address(host, anonymous=True)
    monkeypatch.setenv("ROTA_WEB_ANONYMOUS", "read")
    with pytest.raises(BadOption):
        WebServer(app, host=host, port=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_a_loopback_address_may_be(host):
    check_address(host, anonymous=True)


def test_every_answer_has_the_headers_that_keep_browsers_out(stage):
    for response in (stage.get(JOBS), stage.get(JOBS, "none"), stage.get("/nowhere"), stage.ask("PUT", JOBS)):
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert not [name for name in response.headers if name.lower().startswith("access-control")]


def test_no_secret_is_logged(stage, caplog):
    caplog.set_level(logging.DEBUG)
    for credential in ("admin", "bad", "expired"):
        stage.ask("GET", JOBS, credential)
        stage.ask("POST", JOBS, credential, json={"task": "nope"})
    for secret in filter(None, stage.secrets.values()):
        assert secret not in caplog.text


def test_it_can_be_mounted_under_a_prefix(stage):
    site = TestClient(Starlette(routes=[Mount("/rota", stage.app.asgi())]))
    headers = {"Authorization": f"Bearer {stage.secrets['read']}"}
    assert site.get(f"/rota{JOBS}", headers=headers).json() == {"items": [], "cursor": None}
    assert site.get("/rota/live").json() == {"status": "ok", "checks": {}}
    assert site.get(f"/rota{JOBS}").status_code == 401
    assert site.get("/rota/nowhere").json()["error"]["code"] == "not_found"
    assert site.get("/rota/api/v1/openapi.json").json()["servers"] == [{"url": "/rota"}]


def test_the_app_is_not_touched_before_the_first_request(tmp_path, monkeypatch):
    from rota import App  # noqa: PLC0415

    monkeypatch.setenv("ROTA_WEB_TOKEN", "bad")  # which is told when it is read, and not before
    app = App(f"sqlite:///{tmp_path / 'rota.db'}")
    app.asgi()
    assert list(tmp_path.iterdir()) == []


def test_live_and_ready_tell_no_secrets_and_no_lies(stage, monkeypatch):
    from rota.errors import StoreUnavailable  # noqa: PLC0415

    assert stage.client.get("/ready").json() == {"status": "ok", "checks": {"store": "ok"}}

    def away() -> None:
        raise StoreUnavailable("postgresql://ann:hunter2@db is out of reach")

    monkeypatch.setattr(stage.app.open(), "sealed", away)
    response = stage.client.get("/ready")
    assert (response.status_code, response.json()["status"]) == (503, "unhealthy")
    assert "hunter2" not in response.text
    assert stage.client.get("/live").status_code == 200


def test_a_fault_of_ours_is_told_without_its_details(stage, monkeypatch, caplog):
    def broken(*_args, **_options) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(stage.app.open(), "list_queues", broken)
    response = stage.get("/api/v1/queues")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")
    assert "secret detail" not in response.text
    assert "secret detail" in caplog.text


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_an_address_counts_for_its_network(address, source):
    assert source_of(address) == source


def test_the_addresses_of_one_client_share_their_failures(monkeypatch):
    async def sleep(_seconds: float) -> None: ...

    monkeypatch.setattr("rota.web.access.asyncio.sleep", sleep)
    guard = Guard(lambda: 100.0)
    for number in range(MOST_FAILURES):
        asyncio.run(guard.note_bad(f"2001:db8:1:2::{number:x}"))
    with pytest.raises(Refusal):
        guard.check("2001:db8:1:2:ffff::1", "guess")
    guard.check("2001:db8:1:3::1", "guess")


def test_many_guesses_at_once_are_no_way_around():
    guard = Guard(lambda: 100.0)
    with ExitStack() as under_way:
        for number in range(MOST_FAILURES):
            guard.check("1.2.3.4", f"guess {number}")
            under_way.enter_context(guard.checking("1.2.3.4", f"guess {number}"))
        with pytest.raises(Refusal):
            guard.check("1.2.3.4", "one more")
        guard.check("5.6.7.8", "one more")
    guard.check("1.2.3.4", "one more")
    assert guard._under_way == {}


def test_one_credential_may_be_checked_any_number_of_times_at_once():
    guard = Guard(lambda: 100.0)
    with ExitStack() as under_way:
        for _ in range(10 * MOST_FAILURES):
            guard.check("1.2.3.4", "mine")
            under_way.enter_context(guard.checking("1.2.3.4", "mine"))


def test_a_token_that_cannot_be_checked_is_answered_with_503_and_no_address():
    app = App("sqlite:////proc/nowhere/rota.db")
    client = TestClient(app.asgi(token="the-token-of-the-server"))  # noqa: S106 - of nobody
    answer = client.get("/api/v1/jobs", headers={"Authorization": f"Bearer rota_0123456789ab_{'x' * 43}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
    assert "nowhere" not in answer.text
    known = client.get("/api/v1/jobs", headers={"Authorization": "Bearer the-token-of-the-server"})
    assert "nowhere" in known.text  # an operator of this server is told
    app.close()
