"""One record that cannot be read must not hide the others: every list shows it as such, on every store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import msgspec
import psycopg
import pytest
import redis
from click.testing import CliRunner
from starlette.testclient import TestClient

from every_store import SERVED, fresh_place
from rota import App
from rota.cli.main import main
from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import accept
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import LastRun, Pause, Schedule
from rota.testing.store_suite.builders import DAY, T0, a_job, a_node, a_spec

FAR = 253_402_351_199 * 1_000_000  # 9999-12-31T23:59:59-14:00
EARLY = -62_135_647_200 * 1_000_000  # 0001-01-01T00:00:00+14:00
SOUND = {"created_at": T0, "updated_at": T0, "fired_through": T0, "next_at": T0}

LISTS = {  # a command, and the route that shows the same
    "jobs list": "/api/v1/jobs?limit=200",
    "schedules list": "/api/v1/schedules",
    "tenants list": "/api/v1/tenants",
    "token list": "/api/v1/tokens",
    "nodes list": "/api/v1/nodes",
    "queues list": "/api/v1/queues",
    "stats": "/api/v1/stats",
}
FORMS = ("table", "json", "jsonl", "csv")


def a_schedule(name: str, **fields) -> Schedule:
    return Schedule(**{"id": name, "spec": a_spec(), **SOUND, **fields})


def hostile() -> list:
    jobs = [
        accept(a_job(id="late", run_at=FAR, fire_at=FAR), T0),
        accept(a_job(id="early"), EARLY),
        msgspec.structs.replace(accept(a_job(id="odd-past", run_at=T0 + DAY), T0), past=b"["),
        accept(a_job(id="sound"), T0),
    ]
    schedules = [
        a_schedule("paused", pause=Pause(T0, "", "ann", FAR)),
        a_schedule("bounded", spec=a_spec(start=EARLY, end=FAR)),
        a_schedule("zoneless", spec=a_spec(tz="Mars/Olympus", end=T0, day_bounds=("end",))),
        a_schedule("ran", last=LastRun(enqueued_at=FAR, finished_at=FAR, success_at=EARLY), next_at=FAR),
        a_schedule("sound", created_at=T0),
    ]
    entries = [
        Entry(kind="tenant", name="broken", version=1, data="{"),
        Entry(kind="tenant", name="lost", version=1, data='{"tz": "Mars/Olympus"}'),
        Entry(kind="tenant", name="paused", version=1, data=f'{{"tz": "UTC", "pause": [{T0}, "", "", {FAR}, ""]}}'),
        Entry(kind="tenant", name="sound", version=1, data='{"tz": "UTC"}'),
        Entry(kind="token", name="0123456789ab", version=1, data="nonsense"),
        Entry(
            kind="token",
            name="0123456789cd",
            version=1,
            data=f'{{"name": "far", "role": "read", "hash": "", "created_at": {EARLY}, "expires_at": {FAR}}}',
        ),
    ]
    audit_records = [
        AuditRecord(id="record-1", at=T0, by="ann", verb="changed", subject="schedule:sound", before="{", after="[1]"),
        AuditRecord(id="record-2", at=T0 + 1, by="ann", verb="changed", subject="schedule:sound", after='{"end": 5}'),
        AuditRecord(id="record-3", at=T0 + 2, by="ann", verb="changed", subject="schedule:sound", after='{"end": 5}'),
    ]
    ledger = [
        Occurrence(
            schedule_id="sound", after_at=EARLY, through_at=T0 + DAY, count=2, outcome="skipped", reason="missed"
        ),
        Occurrence(schedule_id="sound", after_at=T0 + DAY, through_at=T0 + 2 * DAY, outcome="skipped", reason="missed"),
    ]
    return [*jobs, *schedules, *entries, *audit_records, *ledger]


def spoil(place, store) -> None:
    """Write what is no JSON into the record of node-2 and of record-3, past the store's own verbs."""
    match place.kind:
        case "sqlite":
            with closing(sqlite3.connect(place.url.removeprefix("sqlite:///"))) as connection:
                run_sql(connection.execute, f"{place.namespace}_", ("audit", "record"))
                connection.execute(f"UPDATE {place.namespace}_job SET state = 'lost' WHERE id = 'odd-past'")  # noqa: S608
                connection.commit()
        case "postgres":
            with psycopg.connect(place.url) as connection:
                run_sql(connection.execute, f"{place.namespace}.", ("audit", "record"))
        case "redis":
            with redis.Redis.from_url(place.url) as client:
                client.hset(f"{{{place.namespace}}}:node", "node-2", "{")
                client.hset(f"{{{place.namespace}}}:audit", "record-3", "{")
        case "mongo" | "mongo-replica":
            store._connection.db.nodes.update_one({"_id": "node-2"}, {"$set": {"data": "{"}})
            store._connection.db.audit.update_one({"_id": "record-3"}, {"$set": {"record": "{"}})


def run_sql(execute, head: str, audit: tuple[str, str]) -> None:
    for table, column, name in (("node", "data", "node-2"), (*audit, "record-3")):
        execute(f"UPDATE {head}{table} SET {column} = '{{' WHERE id = '{name}'")  # noqa: S608 - names of this test


@pytest.fixture(params=["memory", "sqlite", *SERVED])
def place(request, tmp_path):
    return fresh_place(request.param, tmp_path)


@pytest.fixture
def app(place):
    app = App(place.url, namespace=place.namespace, name="shop")
    store = app.open()
    store.load(hostile())
    store.record_heartbeat(a_node("node-1", started_at=EARLY))
    store.record_heartbeat(a_node("node-2"))
    spoil(place, store)
    yield app
    app.close()


def client_of(app):
    client = TestClient(app.asgi(token="let-me-in"))  # noqa: S106 - of this test alone
    client.headers["Authorization"] = "Bearer let-me-in"
    return client


def test_every_route_shows_what_it_cannot_read_beside_the_rest(app, place):
    client = client_of(app)
    found = {name: client.get(path) for name, path in LISTS.items()}
    assert {name: answer.status_code for name, answer in found.items()} == dict.fromkeys(LISTS, 200)
    jobs = {job["id"]: job for job in found["jobs list"].json()["items"]}
    assert jobs.keys() == {"late", "early", "odd-past", "sound"}
    assert jobs["sound"]["problem"] is None
    assert "cannot be read: run_at=253402351199000000, fire_at=" in jobs["late"]["problem"]
    assert "cannot be read: created_at=-62135647200000000" in jobs["early"]["problem"]
    schedules = {one["id"]: one for one in found["schedules list"].json()["items"]}
    assert {name: one["state"] for name, one in schedules.items()} == {
        "bounded": "broken",
        "paused": "broken",
        "ran": "broken",
        "sound": "on",
        "zoneless": "broken",
    }
    assert all("cannot be read" in schedules[name]["last_error"] for name in ("bounded", "paused", "ran"))
    tenants = {one["name"]: one["problem"] for one in found["tenants list"].json()["items"]}
    assert tenants.pop("sound") is None
    assert tenants.keys() == {"broken", "lost", "paused"}
    assert all("cannot be read" in problem for problem in tenants.values())
    assert all("cannot be read" in one["problem"] for one in found["token list"].json()["items"])
    nodes = {one["id"]: one["problem"] for one in found["nodes list"].json()["items"]}
    assert "cannot be read" in nodes["node-1"]
    assert place.kind == "memory" or "cannot be read" in nodes["node-2"]


def test_pages_changes_and_occurrences_of_such_records_are_shown(app, place):
    client = client_of(app)
    for job_id in ("late", "early", "odd-past"):
        for tail in ("", "/history", "/logs"):
            assert client.get(f"/api/v1/jobs/{job_id}{tail}").status_code == 200, (job_id, tail)
    for name in ("paused", "bounded", "zoneless", "ran"):
        assert client.get(f"/api/v1/schedules/{name}").status_code == 200, name
    changes = client.get("/api/v1/changes").json()["items"]
    assert [change["id"] for change in changes] == ["record-3", "record-2", "record-1"]
    assert "cannot be read" in changes[2]["before"]["problem"]
    assert place.kind == "memory" or "cannot be read" in changes[0]["verb"]
    span = {"start": "2025-12-31T00:00:00Z", "end": "2026-02-01T00:00:00Z"}
    lines = client.get("/api/v1/schedules/sound/occurrences", params=span).json()["items"]
    assert [bool(line["problem"]) for line in lines].count(True) == 1
    assert len(lines) == 2


@pytest.mark.usefixtures("app")
def test_every_command_shows_what_it_cannot_read_beside_the_rest(place, monkeypatch):
    if place.kind == "memory":
        pytest.skip("another process cannot open it, nor can a command")
    monkeypatch.setenv("ROTA_NAMESPACE", place.namespace)
    words = [f"{name} -o {form}" for name in [*LISTS, "schedules changes sound"] for form in FORMS]
    words += [f"jobs show {name}" for name in ("late", "early", "odd-past")]
    words += [f"schedules show {name}" for name in ("paused", "bounded", "zoneless", "ran")]
    words += [f"tenants show {name}" for name in ("broken", "lost", "paused")]
    checks = ["top --once", "agenda", "export", "health --self", "doctor"]  # may end with 1: they found something
    ended = {word: CliRunner().invoke(main, [*word.split(), "--store", place.url]) for word in [*words, *checks]}
    failed = {word: (one.exit_code, one.stderr) for word, one in ended.items() if "itself failed" in one.stderr}
    assert failed == {}
    assert [word for word in words if ended[word].exit_code] == []
    assert "cannot be read" in ended["jobs list -o table"].stdout
    assert json.loads(ended["jobs list -o json"].stdout)[0].keys() >= {"id", "problem"}


def test_a_record_that_cannot_be_read_can_be_put_right_or_removed(app):
    assert app.tenants.put("broken", tz="Asia/Kolkata").problem is None
    assert app.tenants.remove("lost")
    assert app.tokens.check(f"rota_0123456789ab_{'x' * 43}") is None
    assert app.tokens.revoke("0123456789ab")
    assert app.jobs.cancel("late").state == "cancelled"
