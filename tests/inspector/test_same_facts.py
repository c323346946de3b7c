"""JSON of the command line and of HTTP: the same for the same thing, for every kind of fact."""

from __future__ import annotations

import importlib
import pkgutil
import shlex
import sys
from typing import Any, NamedTuple

import msgspec
import pytest
from starlette.testclient import TestClient

from alerts.stage import raised_alert
from rota import every
from rota.app import internals
from rota.cli.target import load_target
from rota.errors import JobFailed
from rota.inspector import facts
from rota.inspector.facts.trigger import CalendarFacts, TriggerFacts
from rota.model.micros import SECOND
from rota.store.contract import Node
from rota.testing.store_suite.steps import fire
from rota.web.table import ROUTES
from rota.web.trigger_body import CalendarBody, TriggerBody

JOBS = """
from datetime import date

from rota import App, calendar, cron, every

app = App(name="shop")

@app.task(name="greet")
def greet(name: str, password: str = "") -> str:
    print(f"hello {name}")
    return name.upper()

@app.task(name="fail", retries=0)
def fail() -> None:
    raise ValueError("no such order: 17")

@app.schedule(cron("0 9 * * mon-fri", tz="America/New_York"), id="report", lookahead="6h", jitter="90s", key="daily",
              description="The morning report")
def report() -> None: ...

@app.schedule(every("1h"), id="hourly", end=date(2099, 1, 1))
def hourly() -> None: ...

@app.schedule(calendar(months=1, on="tue", nth=2, at="00:05"), id="monthly", tenant="acme")
def monthly() -> None: ...

@app.task(name="sync")
def sync(source: str, collection: str) -> None: ...

app.sources.declare("store", ["orders"])(sync)

from rota.documents import DocumentQueue, MemorySource
from datetime import UTC, datetime

orders = [{"_id": 1, "sleepUntil": datetime(2020, 1, 1, tzinfo=UTC)}, {"_id": 2, "sleepUntil": "tomorrow"}]
DocumentQueue(MemorySource(orders), print, name="reminders", app=app)

app.alerts.webhook("ops", "https://hooks.example.org/rota", secret="0123456789abcdef")
app.alerts.add("mail", when="oldest", queue="mail", after="5m", channels=["ops"])
"""


class Doors(NamedTuple):
    """The two ways to ask, and the ids of what there is."""

    shell: Any
    client: TestClient
    ids: dict[str, str]

    def over_http(self, path: str) -> Any:
        response = self.client.get(path.format(**self.ids))
        assert response.status_code == 200, response.text
        return response.json()

    def in_the_shell(self, words: str) -> Any:
        return self.shell.data(*shlex.split(words.format(**self.ids)))


SAME = {  # kind of fact: the command, the address, and what of its answer is compared
    "JobFacts": ("jobs list", "/api/v1/jobs", "items"),
    "JobPageFacts": ("jobs show {job}", "/api/v1/jobs/{job}", None),
    "LineFacts": ("jobs logs {job}", "/api/v1/jobs/{job}/logs", "items"),
    "JobWhyFacts": ("why {job}", "/api/v1/jobs/{job}/why", None),
    "ScheduleFacts": ("schedules list", "/api/v1/schedules", "items"),
    "PauseFacts": ("schedules show report", "/api/v1/schedules/report", None),
    "TriggerFacts": ("schedules show hourly", "/api/v1/schedules/hourly", None),
    "CalendarFacts": ("schedules show monthly", "/api/v1/schedules/monthly", None),
    "WhyFacts": ("why hourly {past}", "/api/v1/schedules/hourly/why?at={past}", None),
    "AgendaFacts": ("agenda --days 2", "/api/v1/agenda?days=2", "items"),
    "OccurrenceFacts": (
        "schedules occurrences hourly --start {past} --end 2099-01-01T00:00:00Z",
        "/api/v1/schedules/hourly/occurrences?start={past}&end=2099-01-01T00:00:00Z",
        "items",
    ),
    "CollectionFacts": ("sources list", "/api/v1/sources", "items"),
    "DocumentQueueFacts": ("documents list --app jobs.py", "/api/v1/documents", "items"),
    "QueuedDocumentFacts": ("documents list reminders --app jobs.py", "/api/v1/documents/reminders", "items"),
    "DocumentWhyFacts": (
        "documents why reminders 1 --app jobs.py",
        "/api/v1/documents/reminders/why?id=1",
        None,
    ),
    "TenantFacts": ("tenants list", "/api/v1/tenants", "items"),
    "tenant": ("tenants show acme", "/api/v1/tenants/acme", None),
    "QueueFacts": ("queues list", "/api/v1/queues", "items"),
    "NodeFacts": ("nodes list", "/api/v1/nodes", "items"),
    "ChangeFacts": ("schedules changes", "/api/v1/changes", "items"),
    "changes of one": ("schedules changes report", "/api/v1/schedules/report/changes", "items"),
    "changes of a tenant": ("tenants changes acme", "/api/v1/tenants/acme/changes", "items"),
    "StatsFacts": ("stats", "/api/v1/stats", None),
    "SeriesFacts": ("stats --last 2h", "/api/v1/stats/series?last=2h", None),
    "FailuresFacts": ("jobs failures", "/api/v1/failures", None),
    "AlertFacts": ("alerts list --app jobs.py", "/api/v1/alerts", "items"),
    "alert": ("alerts show {alert} --app jobs.py", "/api/v1/alerts/{alert}", None),
    "AlertRuleFacts": ("alerts rules --app jobs.py", "/api/v1/alerts/rules", "rules"),
    "TokenFacts": ("token list", "/api/v1/tokens", "items"),
    "SyncTaskFacts": (
        "sources tasks store",
        "/tasks?source=store&start=2000-01-01T00:00:00Z&end=2099-01-01T00:00:00Z",
        "tasks",
    ),
    "CronFacts": ("next '0 9 * * *' --tz Europe/Paris -n 3", "/api/v1/next?cron=0 9 * * *&tz=Europe/Paris&n=3", None),
}
WITHIN = {  # kinds that are a part of another's answer
    "MoveFacts": "JobPageFacts",
    "PointFacts": "SeriesFacts",
    "SpanFacts": "SeriesFacts",
    "FailureFacts": "FailuresFacts",
    "RunFacts": "CronFacts",
    "CaveatFacts": "CronFacts",
    "ParameterFacts": "TaskFacts",
    "QueuePauseFacts": "QueueFacts",
    "TimesFacts": "PreviewFacts",
    "DeliveryFacts": "AlertFacts",
    "SilenceFacts": "AlertFacts",
    "ChannelFacts": "AlertRulesFacts",
}
ONE_DOOR = {  # kinds that only one of the two can be asked for
    "TaskFacts": "/api/v1/tasks",
    "PreviewFacts": "/api/v1/preview",
    "SavedScheduleFacts": "/api/v1/schedules",
    "AlertRulesFacts": "/api/v1/alerts/rules",
    "AlertTestFacts": "/api/v1/alerts/test",
}
CHANGES = {"EnqueuedFacts", "NewTokenFacts"}  # answers to something that was asked to be done, compared below
FAILING = {"DocumentFindingFacts"}  # answers of a command that ends with 1, compared below
IN_FILES = {"ExportedSchedule"}  # what `rota export` writes and `rota import` reads


@pytest.fixture
def doors(rota, folder) -> Doors:
    (folder / "jobs.py").write_text(JOBS)
    app = load_target("jobs.py").app
    app.tenants.put("acme", tz="Asia/Kolkata", queue="slow", priority=3, by="ann")
    app.schedules.sync()
    greet = internals(app).registry.get("greet")
    job = greet.enqueue("bo", "hunter2")
    with app.running(scheduler=False):
        job.result(timeout=60)
    failing = internals(app).registry.get("fail").enqueue()
    with app.running(scheduler=False), pytest.raises(JobFailed):
        failing.result(timeout=60)
    greet.enqueue("cy")
    app.sources.run("store", "orders", by="ann")
    app.schedules.put("greeting", greet.job("ann", "hunter2"), every("2h", tz="Asia/Tokyo"), by="ann")
    fire(app.open(), "hourly", now=app.schedules.get("hourly").record.next_at or 0)
    app.schedules.pause("report", reason="month end", by="ann")
    app.tenants.pause("acme", reason="invoice", by="ann")
    app.queues.pause("mail", reason="month end", by="ann")
    app.tokens.create("oncall", role="operate", ttl="90d", by="ann")
    node = Node(id="gone", host="h", pid=1, roles=("worker",), queues=("default",), started_at=SECOND, beat_at=SECOND)
    app.open().record_heartbeat(node, now=SECOND)  # it stays silent however long the test takes
    alert = raised_alert(app, "mail", "mail").id
    secret = app.tokens.create("root", role="admin", by="ann").secret
    app.close()
    del sys.modules["jobs"]
    served = load_target("jobs.py").app
    client = TestClient(served.asgi(), headers={"Authorization": f"Bearer {secret}"})
    past = "2020-01-01T00:00:00Z"
    yield Doors(rota, client, {"job": job.id, "past": past, "alert": alert})
    served.close()


def test_every_kind_of_fact_is_the_same_in_the_shell_and_over_http(doors):
    for kind, (words, path, part) in SAME.items():
        shown, answered = doors.in_the_shell(words), doors.over_http(path)
        answered = answered if part is None else answered[part]
        assert shown, kind
        assert _without_the_moment(shown) == _without_the_moment(answered), kind


def _without_the_moment(answer: Any) -> Any:
    """The same without the instant at which the question was asked."""
    match answer:
        case {"store": _}:
            return {**answer, "at": None}
        case {"points": points}:
            moments = {"start": None, "end": None, "whole": _numbers(answer["whole"])}
            return {**answer, **moments, "points": [_numbers(point) for point in points if point["ran"]["count"]]}
        case {"since": _}:
            return {**answer, "since": None}
        case _:
            return answer


def _numbers(point: Any) -> Any:
    return {**point, "at": None}


def test_no_kind_of_fact_is_forgotten_here():
    assert {*_kinds()} == {
        *(kind for kind in SAME if kind.endswith("Facts")),
        *WITHIN,
        *ONE_DOOR,
        *CHANGES,
        *FAILING,
        *IN_FILES,
    }


def _kinds() -> set[str]:
    modules = [
        importlib.import_module(f"{facts.__name__}.{info.name}") for info in pkgutil.iter_modules(facts.__path__)
    ]
    return {
        name
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
    }


def test_no_answer_over_http_has_facts_of_its_own():
    answers = {kind for route in ROUTES if route.answer for kind in _structs_in(route.answer)}
    own = {kind.__name__ for kind in answers if kind.__module__.startswith("rota.web") and "Facts" in kind.__name__}
    assert own == {"QueuesFacts", "NodesFacts", "TasksFacts", "SourcesFacts"}  # lists of the same facts


def _structs_in(kind: Any) -> set[type]:
    return {found for found in (kind, *getattr(kind, "__args__", ())) if isinstance(found, type)}


def test_what_was_asked_to_be_done_is_answered_alike(doors):
    sent = doors.shell.data("enqueue", "greet", "dee", "--app", "jobs.py")
    posted = doors.client.post("/api/v1/jobs", json={"task": "greet", "args": ["dee"]}).json()
    assert sent.keys() == posted.keys()
    assert (sent["args"], sent["existed"]) == (posted["args"], posted["existed"]) == (["dee"], False)
    by_hand = doors.shell.data("schedules", "run-now", "hourly")
    again = doors.client.post("/api/v1/schedules/hourly/run-now").json()
    assert by_hand.keys() == again.keys() == sent.keys()
    made = doors.shell.data("token", "create", "--name", "ci")
    created = doors.client.post("/api/v1/tokens", json={"name": "ci"}).json()
    assert made.keys() == created.keys()
    assert (made["name"], made["role"], made["state"]) == (created["name"], created["role"], created["state"])


def test_what_is_wrong_with_documents_is_answered_alike(doors):
    shown = doors.shell("documents", "check", "--app", "jobs.py", "-o", "json", code=1).stdout
    answered = doors.over_http("/api/v1/documents/reminders/check")["items"]
    assert msgspec.json.decode(shown) == answered
    assert [finding["kind"] for finding in answered] == ["not-a-time"]


def test_health_has_the_same_form_in_the_shell_and_over_http(doors):
    shown, answered = doors.in_the_shell("health"), doors.over_http("/ready")
    assert {name: shown[name] for name in answered} == answered == {"status": "ok", "checks": {"store": "ok"}}
    assert shown.keys() - answered.keys() == {"reason", "beat_at"}


def test_a_trigger_is_answered_in_the_form_in_which_it_is_sent():
    for sent, answered in ((TriggerBody, TriggerFacts), (CalendarBody, CalendarFacts)):
        assert sent.__struct_fields__ == answered.__struct_fields__
        assert sent.__struct_defaults__ == answered.__struct_defaults__
