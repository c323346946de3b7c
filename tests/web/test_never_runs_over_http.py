"""What can never run is refused over HTTP, with its field, and leaves nothing behind."""

from __future__ import annotations

import pytest

SCHEDULES = "/api/v1/schedules"
PAST = "2020-01-01T00:00:00Z"
NEVER = {
    "once": {"trigger": {"once": PAST}},
    "an end": {"trigger": {"every": "1h"}, "end": PAST},
    "between its bounds": {
        "trigger": {"cron": "0 0 29 2 *"},
        "start": "2097-01-01T00:00:00Z",
        "end": "2099-01-01T00:00:00Z",
    },
}


@pytest.mark.parametrize("body", NEVER.values(), ids=NEVER)
@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_a_new_schedule_that_can_never_run_is_refused(stage, verb, body):
    named = {"task": "greet", "args": ["ann"], **body}
    if verb == "POST":
        answer = stage.post(SCHEDULES, json={"id": "late", **named})
    else:
        answer = stage.ask("PUT", f"{SCHEDULES}/late", json=named)
    assert answer.status_code == 422
    assert "schedule 'late' would never run: " in answer.json()["error"]["message"]
    assert stage.get(f"{SCHEDULES}/late").status_code == 404


def test_a_pause_that_is_over_is_refused(stage):
    stage.app.schedules.sync()
    stage.app.tenants.put("acme", tz="UTC")
    for path in (f"{SCHEDULES}/hourly/pause", "/api/v1/tenants/acme/pause"):
        answer = stage.post(path, json={"until": PAST})
        assert answer.status_code == 422
        assert "so the pause would stop nothing" in answer.json()["error"]["message"]
    assert not stage.app.schedules.get("hourly").is_paused
