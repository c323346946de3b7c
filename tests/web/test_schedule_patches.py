"""A PATCH changes what it says and nothing else, mends what is broken, and never brings back an older secret."""

from __future__ import annotations

import msgspec
import pytest

from rota import every
from rota.app import internals
from rota.model.jobs.payload import REDACTED, Call, pack_call
from rota.model.schedules.edit import Edit
from rota.web.api import schedules as handlers
from rota.web.schedule_body import read_schedule

ONE = "/api/v1/schedules/daily"
DAILY = {"task": "greet", "args": ["ann"], "trigger": {"cron": "0 9 * * *"}}


@pytest.fixture
def kind() -> str:
    return "memory"


def patch(stage, status: int = 200, **change):
    response = stage.ask("PATCH", ONE, json=change)
    assert response.status_code == status, response.text
    return response.json()


def spoil(app, **fields):
    """Store the schedule as another version, or a hand, may have left it."""
    store = app.open()
    (known,) = store.get_schedules(["daily"])
    spec = msgspec.structs.replace(known.spec, **fields)
    after = msgspec.structs.replace(known, spec=spec, version=known.version + 1)
    assert store.edit_schedules([Edit(after=after, expect_version=known.version)]) == []


def test_new_arguments_keep_how_long_the_key_was_told_to_hold(stage):
    @stage.app.task(unique="1h")
    def once(name: str) -> None: ...

    stage.app.schedules.put("daily", once.job("ann"), every("1h"), key_for="2h")
    other = patch(stage, args=["bob"])
    assert (other["key"], other["key_for"]) == (once.job("bob").key, "2h")
    assert patch(stage, task="greet")["key_for"] is None  # it has no key that could hold


def test_new_arguments_take_the_time_that_their_task_gives_its_key(stage):
    @stage.app.task(unique="1h")
    def hourly(name: str) -> None: ...

    @stage.app.task(unique="2h")
    def longer(name: str) -> None: ...

    stage.app.schedules.put("daily", hourly.job("ann"), every("1h"))
    assert patch(stage, task=longer.name)["key_for"] == "2h"


@pytest.mark.parametrize("change", [{"args": ["bob"]}, {"key": None}, {"description": "new"}])
def test_a_patch_keeps_what_the_call_says_beside_its_arguments(stage, change):
    greet = internals(stage.app).registry.get("greet")
    request = greet.using(retries=5, timeout="90s", meta={"team": "mail"}).job("ann")
    stage.app.schedules.put("daily", request, every("1h"))
    patch(stage, **change)
    call = msgspec.json.decode(stage.app.schedules.get("daily").record.spec.payload)
    assert call[2:5] == [{"team": "mail"}, 5, 90_000_000]


BROKEN = [
    ({"tz": "Mars/Olympus"}, {"tz": "UTC"}),
    ({"trigger": "cron 0 9 * * * tz=Mars/Olympus"}, {"tz": "UTC"}),
    ({"trigger": "cron 0 9 * * * tz=Mars/Olympus", "tz": "Mars/Olympus"}, {"tz": "UTC"}),
    ({"tz": "Mars/Olympus"}, {"trigger": {"cron": "0 10 * * *", "tz": "UTC"}}),
    ({"trigger": "cron 61 * * * *"}, {"trigger": {"cron": "0 10 * * *"}}),
    ({"trigger": "lunar 3"}, {"trigger": {"cron": "0 10 * * *"}}),
]


@pytest.mark.parametrize(("fields", "change"), BROKEN)
def test_a_patch_mends_a_schedule_that_cannot_be_evaluated(stage, fields, change):
    bounds = {"start": "2026-01-31", "end": "2099-12-31"}
    assert stage.ask("PUT", ONE, json={**DAILY, **bounds, "tz": "UTC"}).status_code == 201
    spoil(stage.app, **fields)
    assert stage.get(ONE).json()["state"] == "broken"
    mended = patch(stage, **change)
    assert (mended["state"], mended["tz"], mended["last_error"]) == ("on", "UTC", None)
    assert (mended["start"][:10], mended["end"][:10]) == ("2026-01-31", "2099-12-31")


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"tz": "Mars/Olympus"}, "tz"), ({"trigger": "cron 0 9 * * * tz=Mars/Olympus"}, "trigger"),
     ({"trigger": "lunar 3"}, "trigger")],
)  # fmt: skip
def test_a_patch_that_leaves_it_broken_says_what_would_mend_it(stage, fields, field):
    assert stage.ask("PUT", ONE, json={**DAILY, "tz": "UTC", "start": "2026-01-31"}).status_code == 201
    spoil(stage.app, **fields)
    error = patch(stage, 422, description="new")["error"]
    assert error["field"] == field
    assert f'send "{field}"' in error["message"]


def test_a_put_with_a_mark_never_brings_back_an_older_secret(stage, monkeypatch):
    anything = internals(stage.app).registry.get("anything")
    stage.app.schedules.put("daily", anything.job(password="old"), every("1h"))  # noqa: S106
    body = {"task": "anything", "kwargs": {"password": "[redacted]"}, "trigger": {"every": "2h"}}

    def meanwhile(*words):
        """Another client changes the secret after this request has read the schedule."""
        monkeypatch.undo()
        stage.app.schedules.put("daily", anything.job(password="new"), every("1h"))  # noqa: S106
        return read_schedule(*words)

    monkeypatch.setattr(handlers, "read_schedule", meanwhile)
    late = stage.ask("PUT", ONE, json=body)
    assert (late.status_code, late.json()["error"]["code"]) == (409, "version_conflict")
    assert '"new"' in stage.app.schedules.get("daily").record.spec.payload
    assert stage.ask("PUT", ONE, json=body).status_code == 200
    assert '"new"' in stage.app.schedules.get("daily").record.spec.payload


def test_a_new_zone_is_also_that_of_a_rule_which_names_its_own(stage):
    stage.ask("PUT", ONE, json={**DAILY, "trigger": {"cron": "0 9 * * *", "tz": "Europe/Paris"}})
    moved = patch(stage, tz="Asia/Tokyo")
    assert (moved["tz"], moved["trigger"]) == ("Asia/Tokyo", {"cron": "0 9 * * *", "tz": "Asia/Tokyo"})
    assert moved["next_run"].endswith("T00:00:00Z")
    assert patch(stage, 422, tz="Mars/Olympus")["error"]["field"] == "tz"


@pytest.mark.parametrize("verb", ["PATCH", "PUT"])
def test_a_value_that_was_hidden_stays_hidden_when_its_task_no_longer_marks_it(stage, verb):
    @stage.app.task(name="pay")
    def pay(user: str, pin: str) -> None: ...

    stage.app.schedules.put("daily", pay.job("ann", "hunter2"), every("1h"))
    packed = pack_call(Call(args=["ann", "hunter2"], secrets=[1]), what="pay")
    spoil(stage.app, payload=packed.decode())  # as an older version of the task, whose pin was marked, has made it
    change = {"args": ["bob", REDACTED]}
    whole = {"task": "pay", "trigger": {"every": "1h"}, **change}
    answer = stage.ask(verb, ONE, json=whole if verb == "PUT" else change)
    assert answer.status_code == 200, answer.text
    assert answer.json()["args"] == ["bob", REDACTED]
    assert "hunter2" in stage.app.open().get_schedules(["daily"])[0].spec.payload
