"""web and token as people type them; and the HTTP API beside dev and demo."""

from __future__ import annotations

import re
import signal

import httpx2
import pytest

from cli.processes import PATIENCE

URL = re.compile(r"http://[\d.]+:\d+")


def url_in(line: str) -> str:
    return URL.search(line)[0]


def ask(url: str, path: str, token: str, method: str = "GET", **options):
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.request(method, url + path, headers=headers, timeout=PATIENCE, **options)


def test_the_first_start_makes_a_token_and_shows_it_once(rota, started):
    rota.sync()
    process = started("web", "--app", "jobs.py", "--port", "0")
    url = url_in(process.wait_for("openapi.json"))
    token = process.wait_for("rota_").strip()
    job = ask(url, "/api/v1/jobs", token, "POST", json={"task": "jobs.greet", "args": ["ann"]})
    assert job.status_code == 201
    assert ask(url, "/api/v1/jobs", "x" * 20).status_code == 401
    process.signal(signal.SIGTERM)
    assert process.end() == 0
    again = started("web", "--app", "jobs.py", "--port", "0", "--read-only")
    url = url_in(again.wait_for("openapi.json"))
    assert ask(url, "/api/v1/jobs", token).json()["items"][0]["id"] == job.json()["id"]
    assert ask(url, "/api/v1/jobs", token, "POST", json={"task": "greet"}).json()["error"]["code"] == "read_only"
    again.signal(signal.SIGINT)
    assert again.end() == 130
    assert "rota_" not in again.stderr


def test_a_start_that_prints_no_token_says_how_to_make_one(rota, started):
    rota.sync()
    rota("token", "create", "--name", "eye", "--role", "read", "--app", "jobs.py")
    how = "`rota token create --name NAME --role admin`"
    process = started("web", "--app", "jobs.py", "--port", "0")
    assert how in process.wait_for("every token that exists can only read")
    rota("token", "create", "--name", "ann", "--role", "operate", "--app", "jobs.py")
    again = started("web", "--app", "jobs.py", "--port", "0")
    assert how in again.wait_for("if you have no token")


def test_an_address_that_is_every_address_is_named(rota, started):
    rota.sync()
    process = started("web", "--app", "jobs.py", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - it is meant
    url = url_in(process.wait_for("openapi.json"))
    port = url.rpartition(":")[2]
    assert url == f"http://127.0.0.1:{port}"
    assert f"(0.0.0.0), port {port}" in process.wait_for("it listens on every address of this machine")


def test_a_stream_does_not_hold_up_the_end(rota, started):
    rota.sync()
    token = rota("token", "create", "--name", "ann", "--app", "jobs.py").stdout.strip()
    process = started("web", "--app", "jobs.py", "--port", "0")
    url = url_in(process.wait_for("openapi.json"))
    headers = {"X-Admin-Token": token}
    with httpx2.stream("GET", f"{url}/api/v1/events", headers=headers, timeout=PATIENCE) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": alive"
        process.signal(signal.SIGTERM)
        assert "event: end" in list(lines)
    assert process.end() == 0


def test_a_port_that_is_taken_is_told(rota, started):
    rota.sync()
    process = started("web", "--app", "jobs.py", "--port", "0")
    port = url_in(process.wait_for("openapi.json")).rpartition(":")[2]
    refused = rota("web", "--app", "jobs.py", "--port", port, code=2)
    assert f"cannot listen on 127.0.0.1:{port}" in refused.stderr


def test_a_public_address_for_anybody_is_refused(rota, monkeypatch):
    rota.sync()
    monkeypatch.setenv("ROTA_WEB_ANONYMOUS", "read")
    refused = rota("web", "--app", "jobs.py", "--host", "0.0.0.0", "--port", "0", code=2)  # noqa: S104 - it is refused
    assert "rota token create" in refused.stderr


def test_without_the_extra_the_command_says_how_to_get_it(rota, monkeypatch):
    import sys  # noqa: PLC0415

    monkeypatch.setitem(sys.modules, "rota.web.server", None)
    assert "pip install 'rota[web]'" in rota("web", "--app", "jobs.py", code=2).stderr


def test_tokens_are_made_listed_and_revoked(rota):
    rota.sync()
    made = rota("token", "create", "--name", "ann", "--role", "operate", "--ttl", "90d", "--app", "jobs.py")
    secret = made.stdout.strip()
    assert re.fullmatch(r"rota_[0-9a-f]{12}_[\w-]{43}", secret)
    [shown] = rota.data("token", "list", "--app", "jobs.py")
    assert (shown["name"], shown["role"], shown["state"]) == ("ann", "operate", "valid")
    assert "in 90 d" in rota("token", "list", "--app", "jobs.py").stdout
    assert secret not in rota("token", "list", "--app", "jobs.py").stdout
    rota("token", "revoke", shown["id"], "--app", "jobs.py")
    assert rota.data("token", "list", "--app", "jobs.py") == []
    rota("token", "revoke", shown["id"], "--app", "jobs.py", code=5)


@pytest.mark.parametrize(
    "words",
    [("--role", "read"), ("--name", "a b"), ("--name", "ann", "--role", "king"), ("--name", "ann", "--ttl", "soon")],
)
def test_bad_tokens_are_usage_errors(rota, words):
    rota.sync()
    rota("token", "create", *words, "--app", "jobs.py", code=2)


def test_changes_by_hand_on_the_command_line_are_noted(rota):
    rota.sync()
    job = rota.enqueue("greet", "ann")
    rota("jobs", "cancel", job, "--reason", "not wanted", "--app", "jobs.py")
    rota("jobs", "retry", job, "--app", "jobs.py")
    rota("jobs", "cancel", job, "--by", "ann", "--app", "jobs.py")
    rota("jobs", "delete", job, "--by", "bob", "--app", "jobs.py")
    rota("queues", "pause", "mail", "--app", "jobs.py")
    rota("queues", "pause", "mail", "--app", "jobs.py")
    rota("queues", "resume", "mail", "--app", "jobs.py")
    from rota.cli.target import load_target  # noqa: PLC0415

    app = load_target("jobs.py").app
    told = [(change.verb, change.kind, change.name) for change in app.changes().items if change.kind != "schedule"]
    reasons = [change.after.get("reason") for change in app.changes().items if change.verb == "cancelled"]
    deleted = [change.by for change in app.changes().items if change.verb == "deleted"]
    app.close()
    assert deleted == ["bob"]
    assert told == [
        ("resumed", "queue", "mail"),
        ("paused", "queue", "mail"),
        ("deleted", "job", job),
        ("cancelled", "job", job),
        ("retried", "job", job),
        ("cancelled", "job", job),
    ]
    assert reasons == ["cancelled by ann", "not wanted"]


def test_dev_serves_it_too_and_a_reload_keeps_the_port_and_the_token(rota, started):
    process = started("dev", "jobs.py", "--port", "0")
    link = process.wait_for("dashboard: ").rpartition(" ")[2].strip()
    words = process.wait_for("HTTP: ")
    token = words.rpartition(" ")[2].strip()
    assert ask(url_in(words), "/api/v1/jobs", token).status_code == 200
    assert ask(url_in(words), "/live", token).json()["status"] == "ok"
    (rota.folder / "other.py").write_text("")
    process.wait_for("reloaded")
    assert ask(url_in(words), "/api/v1/jobs", token).status_code == 200
    once = {"once": link.rpartition("=")[2]}
    answers = [httpx2.post(f"{url_in(words)}/login", data=once, timeout=PATIENCE) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 401]  # the link logs in once, also after the reload
    home = httpx2.get(url_in(words), cookies=dict(answers[0].cookies), timeout=PATIENCE)
    assert (home.status_code, "<h1>" in home.text) == (200, True)
    process.signal(signal.SIGTERM)
    assert process.end() == 0
