"""A secret is planted wherever an app may hold one; then every command, every HTTP answer and every log line is read.

The commands and the routes come from their own tables, so that a new one is searched, too.
"""

from __future__ import annotations

import io
import json
import logging
import stat
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from starlette.testclient import TestClient

from app.steps import PATIENCE, work
from every_store import DURABLE, fresh_place
from rota import App, every
from rota.app import internals
from rota.cli.live_lines import LiveLines
from rota.cli.main import main
from rota.cli.target import load_target
from rota.cli.text_lines import TextLines
from rota.model.jobs.job import history_of
from rota.model.jobs.payload import REDACTED
from rota.observe.json_lines import JsonLines
from rota.operations.copy import move
from rota.store.contract import AuditFilter, JobFilter
from rota.web.table import ROUTES
from rota.web.watching import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator

CANARY = "c4nary'\"\\-of-the-mine"
PLANTED = "c4nary"  # what no output may have
JOBS = '''
import logging
from dataclasses import dataclass
from typing import Annotated

from rota import App, Secret, current_job, every

app = App(name="shop")
seen = []


@dataclass
class Login:
    user: str
    word: Annotated[str, Secret]


@app.task(name="login", retries=0)
def login(user: str, password: str) -> str:
    seen.append(password)
    return f"welcome, {password}"


@app.task(name="nested")
def nested(data: dict) -> dict:
    seen.append(data["db"]["X-Api-Key"])
    return data


@app.task(name="marked")
def marked(code: Annotated[str, Secret], login: Login) -> Annotated[str, Secret]:
    seen.append(code)
    return code


@app.task(name="told", retries=0)
def told(card: str, user: str = "", **more) -> dict:
    """Its parameter is hidden by the settings."""
    seen.append(card)
    return {"session_token": card, "bank": {"card": card}, "user": user}


@app.task(name="boom", retries=0)
def boom(code: Annotated[str, Secret]) -> None:
    print("printed", code)
    logging.getLogger("shop").warning("logged %s", code)
    current_job.progress(1, 2, code)
    raise ValueError(f"no luck with {code!r}")


@app.task(name="again", retries=1)
def again(code: Annotated[str, Secret]) -> None:
    raise ValueError(code)
'''
SETTINGS = f"""
app: jobs.py
redact: [card]
schedules:
  filed: {{task: login, every: 1h, args: [ann, {json.dumps(CANARY)}]}}
  named: {{task: told, every: 1h, kwargs: {{card: {json.dumps(CANARY)}, user: ann}}}}
"""
KIND = """

import enum


class Kind(enum.Enum):
    A = "a"
"""
WRONG = f"args: [{{token: {json.dumps(CANARY)}}}]"
SERVING = {"dev", "demo", "run", "worker", "scheduler", "web", "init"}  # they are other tests' matter


@pytest.fixture
def project(folder, rota) -> Iterator[Any]:
    """A project with a secret in everything that can hold one, and commands in it."""
    (folder / "jobs.py").write_text(JOBS)
    (folder / "rota.yaml").write_text(SETTINGS)
    app = load_target("jobs.py").app
    plant(app)
    app.close()
    return rota


@pytest.fixture
def shop(project) -> Iterator[App]:
    """The project's app."""
    app = load_target("jobs.py").app
    assert project.folder
    yield app
    app.close()


def plant(app: App) -> None:
    task = internals(app).registry.get
    app.schedules.sync()
    app.schedules.put("audited", task("login").job("ann", CANARY), every("1h"), by="ann")
    app.schedules.put("audited", task("login").job("bob", password=CANARY + "2"), every("2h"), by="ann")
    app.schedules.put("removed", task("nested").job({"token": CANARY}), every("1h"))
    app.schedules.remove("removed")
    for request in (
        task("login").job("ann", CANARY),
        task("login").job("ann", password=CANARY),
        task("nested").job({"db": {"X-Api-Key": CANARY, "list": [{"secret": CANARY}]}}),
        task("marked").job(CANARY, {"user": "ann", "word": CANARY}),
        task("marked").job(code=CANARY, login={"user": "ann", "word": CANARY}),
        task("told").job(CANARY),
        task("told").job(card=CANARY, deep=[{"card": CANARY}]),
        task("boom").job(CANARY),
        task("again").job(CANARY),
        task("login").using(meta={"token": CANARY}, delay="1h").job("ann", CANARY),
    ):
        internals(app).send([request])
    app.schedules.run_now("filed")


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name)


def test_the_worker_gets_the_value_and_no_command_shows_it(project, monkeypatch, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    plain = logging.StreamHandler(stream)
    plain.setFormatter(TextLines(has_colours=False))
    logging.getLogger().addHandler(handler)
    logging.getLogger().addHandler(plain)
    monkeypatch.setattr("rota.cli.live_lines.LOOK", 0.01)
    app = load_target("jobs.py").app
    lines = LiveLines(app, shows_tracebacks=True)
    try:
        lines.start()
        logging.getLogger("rota.job").setLevel(logging.DEBUG)
        work(app)
    finally:
        lines.stop()
        logging.getLogger().removeHandler(handler)
        logging.getLogger().removeHandler(plain)
        logging.getLogger("rota.job").setLevel(logging.NOTSET)
        ids = [job.id for job in app.open().list_jobs(JobFilter(), limit=100).items]
        app.close()
    assert internals(app).registry.get("login").function.__globals__["seen"].count(CANARY) >= 8
    told = capsys.readouterr()
    assert "login" in told.err
    assert "no luck with" in stream.getvalue()
    rota_lines = "".join(record.getMessage() for record in caplog.records if record.name.startswith("rota"))
    for output in (told.out, told.err, stream.getvalue(), rota_lines):
        assert PLANTED not in output

    shown = 0
    for path in leaves(main):
        if path[0] in SERVING:
            continue
        for words in variants(path, ids):
            for form in ([], ["-o", "json"], ["-o", "jsonl"]):
                result = project_says(project, *path, *words, *form)
                assert PLANTED not in result, (path, words)
                shown += REDACTED in result
    assert shown > 40


def variants(path: tuple[str, ...], ids: list[str]) -> list[list[str]]:
    """What to ask a command, so that it shows what it can."""
    match path:
        case ("jobs", "show" | "logs"):
            return [[job_id] for job_id in ids]
        case ("jobs", "retry" | "cancel" | "delete"):
            return [["--where", "task:*", "--dry-run"]]
        case ("schedules", "show" | "changes"):
            return [[name] for name in ("filed", "named", "audited", "removed")] + [[]]
        case ("why",) | ("schedules", "run-now" | "pause" | "resume"):
            return [["audited"]]
        case ("enqueue",):
            return [["login", "ann", CANARY], ["told", f"card={CANARY}"], ["login", "ann", CANARY, "extra"]]
        case ("schedules", "add"):
            return [["made", "login", "ann", CANARY, "--every", "1h"]]
        case ("schedules", "plan" | "apply"):
            return [[]]
        case ("export",):
            return [[], ["--jobs"]]
        case ("top",):
            return [["--once"]]
        case _:
            return [[]]


def project_says(project, *words: str) -> str:
    from click.testing import CliRunner  # noqa: PLC0415

    assert project.folder
    result = CliRunner().invoke(main, [*words], prog_name="rota")
    assert not isinstance(result.exception, AssertionError)
    return f"{result.stdout}{result.stderr}"


LATE = """
import logging

from rota import App, Retry, current_job

app = App(name="shop")


@app.task(name="pay", retries=1, executor="{executor}")
def pay(card, data=None):
    value = card or data["card"]
    print("printed", value)
    logging.getLogger("shop").warning("logged %s", value)
    current_job.progress(1, 2, value)
    if current_job.attempt == 1:
        raise Retry(f"try {{value}} again", after="1ms")
    raise ValueError(f"no luck with {{value!r}}")
"""


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_name_that_is_added_later_protects_what_older_jobs_write(folder, executor):
    """By position, by keyword and inside a value: in errors, history, logs and progress."""
    (folder / "jobs.py").write_text(LATE.format(executor=executor))
    (folder / "rota.yaml").write_text("app: jobs.py\n")
    app = load_target("jobs.py").app
    pay = internals(app).registry.get("pay")
    jobs = [pay.enqueue(CANARY), pay.enqueue(card=CANARY), pay.enqueue(None, {"card": CANARY})]
    app.close()
    (folder / "rota.yaml").write_text("app: jobs.py\nredact: [card]\n")
    app = load_target("jobs.py").app
    with app.running(scheduler=False):
        for job in jobs:
            app.jobs.wait(job.id, PATIENCE)
    for job in jobs:
        (found,) = app.open().get_jobs([job.id])
        assert "no luck with" in found.error
        assert found.progress == f"1/2 {REDACTED}"
        lines = [line.text for line in app.open().list_logs(job.id)]
        assert lines == ["printed [redacted]", "logged [redacted]"] * 2
        assert PLANTED not in f"{found.error} {history_of(found)}"
    app.close()


def test_a_plan_says_that_secret_arguments_change_and_not_to_what(project, folder):
    (folder / "rota.yaml").write_text(SETTINGS.replace("of-the-mine", "of-another"))
    text = project("schedules", "plan").stdout
    assert PLANTED not in text
    assert f"arguments: ('ann', '{REDACTED}') → ('ann', '{REDACTED}')" in text


def test_no_answer_over_http_has_it(shop):
    work(shop)
    jobs = shop.open().list_jobs(JobFilter(), limit=100).items
    client = TestClient(shop.asgi())
    secret = shop.tokens.create("reader", role="read").secret
    shown = 0
    for route in ROUTES:
        if route.method != "GET" or route.path.endswith("/events"):
            continue
        for path in paths(route.path, [job.id for job in jobs]):
            answer = client.get(path, headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code < 500
            assert PLANTED not in answer.text, path
            shown += REDACTED in answer.text
    assert shown >= len(jobs)
    watcher = Watcher(shop)
    looks = [watcher.look()]
    shop.schedules.put("late", internals(shop).registry.get("login").job("ann", CANARY), every("1h"))
    looks.append(watcher.look())
    assert b"late" in looks[1]
    assert PLANTED.encode() not in b"".join(looks)


CALL = {"task": "login", "args": ["ann", CANARY], "trigger": {"every": "1h"}}
BODIES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("POST", "/api/v1/jobs"): [
        {"task": "login", "args": ["ann", CANARY]},
        {"task": "told", "kwargs": {"card": CANARY}},
        {"task": "login", "args": ["ann", CANARY, "extra"]},
    ],
    ("POST", "/api/v1/schedules"): [{"id": "made", **CALL}, {"id": "wrong", **CALL, "args": [CANARY] * 3}],
    ("PUT", "/api/v1/schedules/{schedule_id}"): [CALL],
    ("PATCH", "/api/v1/schedules/{schedule_id}"): [{"args": ["bob", CANARY]}, {"description": "new"}],
}


def test_no_answer_to_a_change_over_http_has_it(shop):
    """Enqueuing, retries, schedule writes and all the others, those that are refused too."""
    work(shop)
    ids = [job.id for job in shop.open().list_jobs(JobFilter(), limit=100).items]
    client = TestClient(shop.asgi())
    headers = {"Authorization": f"Bearer {shop.tokens.create('boss', role='admin').secret}"}
    shown = dict.fromkeys(BODIES, 0)
    for route in ROUTES:
        if route.method not in {"POST", "PUT", "PATCH"}:
            continue
        for path in paths(route.path, ids):
            for body in BODIES.get((route.method, route.path), [{}]):
                answer = client.request(route.method, path, json=body, headers=headers)
                assert answer.status_code < 500
                assert PLANTED not in answer.text, (route.method, path)
                key = (route.method, route.path)
                shown[key] = shown.get(key, 0) + (answer.status_code < 300 and REDACTED in answer.text)
    for key in (*BODIES, ("POST", "/api/v1/jobs/{job_id}/retry"), ("POST", "/api/v1/schedules/{schedule_id}/run-now")):
        assert shown[key], key


def paths(pattern: str, ids: list[str]) -> list[str]:
    things = {"{schedule_id}": ["filed", "named", "audited", "removed"], "{job_id}": ids, "{task_id}": ids}
    for name, values in things.items():
        if name in pattern:
            return [pattern.replace(name, value) for value in values]
    query = "start=2020-01-01T00:00:00Z&end=2100-01-01T00:00:00Z&source=x&cron=0+9+*+*+*"
    return [pattern, f"{pattern}?{query}", f"{pattern}?limit=200"]


def test_a_hidden_value_that_comes_back_over_http_is_the_stored_one(shop):
    client = TestClient(shop.asgi())
    headers = {"Authorization": f"Bearer {shop.tokens.create('op', role='operate').secret}"}
    where = "/api/v1/schedules/audited"
    shop.schedules.put(
        "audited", internals(shop).registry.get("nested").job({"db": {"token": CANARY}, "n": 1}), every("1h")
    )
    payload = shop.schedules.get("audited").record.spec.payload
    read = client.get(where, headers=headers).json()
    body = {name: read[name] for name in ("task", "args", "kwargs", "trigger")}
    assert client.put(where, json=body, headers=headers).status_code == 200
    assert shop.schedules.get("audited").record.spec.payload == payload
    changed = [{"db": {"token": REDACTED}, "n": 2}]
    assert client.patch(where, json={"args": changed}, headers=headers).status_code == 200
    assert f'{{"db":{{"token":{json.dumps(CANARY)}}},"n":2}}' in shop.schedules.get("audited").record.spec.payload

    other = [{"db": {"token": REDACTED, "auth": REDACTED}}]
    for ask, args, task in (("put", other, "nested"), ("patch", other, "nested"), ("put", changed, "login")):
        sent = {"args": args, "task": task, "trigger": read["trigger"]} if ask == "put" else {"args": args}
        answer = getattr(client, ask)(where, json=sent, headers=headers)
        assert answer.status_code == 422
        if task == "nested":
            assert "argument 1.db.auth of nested is '[redacted]'" in answer.json()["error"]["message"]
    answer = client.post("/api/v1/jobs", json={"task": "login", "args": ["ann", REDACTED]}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "args")


def test_a_stored_value_does_not_move_to_another_item_of_a_list(shop):
    client = TestClient(shop.asgi())
    headers = {"Authorization": f"Bearer {shop.tokens.create('op', role='operate').secret}"}
    where = "/api/v1/schedules/audited"
    hosts = [{"user": "a", "password": "of a"}, {"user": "b", "password": "of b"}]
    shop.schedules.put("audited", internals(shop).registry.get("nested").job({"hosts": hosts}), every("1h"))
    payload = shop.schedules.get("audited").record.spec.payload
    shown = client.get(where, headers=headers).json()["args"][0]["hosts"]

    answer = client.patch(where, json={"args": [{"hosts": shown[1:]}]}, headers=headers)
    assert answer.status_code == 422
    assert "argument 1.hosts.0.password of nested is '[redacted]'" in answer.json()["error"]["message"]
    assert shop.schedules.get("audited").record.spec.payload == payload

    assert client.patch(where, json={"args": [{"hosts": shown, "n": 2}]}, headers=headers).status_code == 200
    assert json.dumps(hosts, separators=(",", ":")) in shop.schedules.get("audited").record.spec.payload


def test_a_stored_value_does_not_move_to_another_task(shop):
    """A person who may change a schedule cannot make another task show what this one hides."""
    client = TestClient(shop.asgi())
    headers = {"Authorization": f"Bearer {shop.tokens.create('op', role='operate').secret}"}
    body = {"task": "told", "args": [], "kwargs": {"user": REDACTED, "card": REDACTED}, "trigger": {"every": "1h"}}
    answer = client.put("/api/v1/schedules/audited", json=body, headers=headers)
    assert answer.status_code == 422
    for patch in ({"task": "told"}, {"task": "told", "args": ["x"]}, {"task": "told", "kwargs": {}}):
        shop.schedules.put(
            "audited", internals(shop).registry.get("login").job(user="ann", password=CANARY), every("1h")
        )
        shop.schedules.put("by-place", internals(shop).registry.get("login").job("ann", CANARY), every("1h"))
        for name in ("audited", "by-place"):
            client.patch(f"/api/v1/schedules/{name}", json=patch, headers=headers)
            spec = shop.schedules.get(name).record.spec
            assert spec.task == "login" or PLANTED not in spec.payload, (name, patch)


def test_the_catalogue_says_which_parameters_are_secret(shop):
    headers = {"Authorization": f"Bearer {shop.tokens.create('reader', role='read').secret}"}
    found = TestClient(shop.asgi()).get("/api/v1/tasks", headers=headers).json()["items"]
    secret = {f"{task['name']}.{one['name']}" for task in found for one in task["parameters"] if one["secret"]}
    assert secret == {"login.password", "marked.code", "told.card", "boom.code", "again.code"}


def test_an_export_has_secrets_only_where_asked_and_in_a_file_of_its_owner(project, folder):
    assert PLANTED not in project("export").stdout
    assert "add --to FILE" in project("export", "--with-secrets", code=2).stderr
    assert PLANTED not in project("export", "--with-secrets", "--to", "all.yaml").output
    file = folder / "all.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert yaml.safe_load(file.read_text())["schedules"]["filed"]["args"] == ["ann", CANARY]
    assert "exists; name a new file" in project("export", "--to", "all.yaml", code=2).stderr
    project("export", "--jobs", "--with-secrets", "--to", "jobs.jsonl")
    assert PLANTED in (folder / "jobs.jsonl").read_text()
    project("export", "--to", "shown.yaml")
    assert PLANTED not in (folder / "shown.yaml").read_text()


def test_a_file_whose_arguments_do_not_fit_is_refused_without_their_secrets(project, folder):
    (folder / "jobs.py").write_text(KIND + JOBS.replace("def nested(data: dict)", "def nested(data: dict[str, Kind])"))
    (folder / "rota.yaml").write_text(f"app: jobs.py\nschedules:\n  filed: {{task: nested, every: 1h, {WRONG}}}\n")
    said = project("schedules", "apply", code=2).stderr
    assert "Invalid enum value" in said
    assert PLANTED not in said


def test_a_file_with_the_mark_of_a_hidden_value_is_refused_by_name(project, folder):
    (folder / "rota.yaml").write_text(SETTINGS.replace(json.dumps(CANARY), f'"{REDACTED}"'))
    said = project("schedules", "apply", code=2).stderr
    assert "schedules.filed.args" in said
    assert "argument 2" in said
    assert "schedules.named.kwargs" in said
    assert "argument card" in said


@pytest.mark.parametrize("kind", ["memory", *DURABLE])
def test_every_store_keeps_secrets_hides_them_and_copies_them(kind, tmp_path):
    place = fresh_place(kind, tmp_path) if kind != "memory" else None
    app = App(place.url, namespace=place.namespace) if place else App("memory://")
    seen = []

    @app.task(name="login", retries=0)
    def login(user: str, password: str) -> None:
        seen.append((user, password))
        raise ValueError(f"{password} is wrong")

    login.enqueue("ann", CANARY)
    waiting = login.using(delay="1h").enqueue("bob", password=CANARY)
    app.schedules.put("nightly", login.job("cid", CANARY), every("1h"), by="ann")
    work(app)
    assert seen == [("ann", CANARY)]
    (failed,) = app.jobs.list(state="failed").items
    assert PLANTED not in failed.error
    assert failed.args == ["ann", CANARY]  # the app itself may see what it sent
    assert PLANTED not in repr([failed, app.changes().items[0].after, login.job("ann", CANARY)])
    assert PLANTED not in str(app.open().list_audit_records(AuditFilter()).items)
    if place:
        other = fresh_place("sqlite", tmp_path / "other")
        with place.opened() as source, other.opened() as target:
            move(source, target)
        with other.opened() as target:
            assert json.dumps(CANARY).encode() in target.get_jobs([waiting.id])[0].payload
            assert json.dumps(CANARY) in target.get_schedules(["nightly"])[0].spec.payload
    app.close()
