"""Every instant that Python, a file or a command can name is bounded, with the option in the message."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from rota import App, every, once
from rota.app import internals
from rota.errors import BadDuration, BadInstant, BadSettings, RotaError
from rota.model.micros import check_instant, datetime_of, micros_of, outside_calendar
from rota.triggers.zone import find_zone

FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-14)))
EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def app():
    app = App("memory://")
    app.task(name="greet")(lambda: None)
    app.schedules.put("tick", internals(app).registry.get("greet").job(), every("1h"))
    app.tenants.put("acme", tz="UTC")
    yield app
    app.close()


def greet(app):
    return internals(app).registry.get("greet")


ENTRIES = {
    "at": lambda app, at: greet(app).using(at=at).enqueue(),
    "start": lambda app, at: app.schedules.put("new", greet(app).job(), every("1h"), start=at),
    "end": lambda app, at: app.schedules.put("new", greet(app).job(), every("1h"), end=at),
    "until": lambda app, at: app.schedules.pause("tick", until=at),
    "until of a tenant": lambda app, at: app.tenants.pause("acme", until=at),
    "after": lambda app, at: app.schedules.next_runs("tick", after=at),
    "at of why": lambda app, at: app.schedules.why("tick", at),
    "start of occurrences": lambda app, at: app.schedules.occurrences("tick", at, NOON),
    "end of occurrences": lambda app, at: app.schedules.occurrences("tick", NOON, at),
    "since": lambda app, at: app.jobs.list(since=at),
    "until of jobs": lambda app, at: app.jobs.list(until=at),
    "since of changes": lambda app, at: app.changes(since=at),
    "start of logs": lambda app, at: app.jobs.logs("some", start=at),
    "once": lambda app, at: app.schedules.put("new", greet(app).job(), once(at)),
}


@pytest.mark.parametrize("given", [FAR, EARLY], ids=["far", "early"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_instant_outside_the_calendar_is_refused_by_name(app, entry, given):
    with pytest.raises(RotaError, match=entry.split()[0]):
        ENTRIES[entry](app, given)
    assert app.jobs.list().items == []
    assert [one.id for one in app.schedules.list().items] == ["tick"]


@pytest.mark.parametrize("entry", ["start", "end"])
def test_a_day_outside_the_calendar_is_refused(app, entry):
    with pytest.raises(BadInstant, match=entry):
        ENTRIES[entry](app, date(9999, 12, 31))


def test_the_first_and_the_last_instant_are_taken():
    for at in (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)):
        assert check_instant("at", at) == micros_of(at)


def test_a_start_may_lie_before_1970_because_intervals_are_counted_from_it(app):
    assert app.schedules.put("old", greet(app).job(), every("1h"), start=date(1901, 1, 1)).record.spec.start < 0


@pytest.mark.parametrize("name", ["delay", "key_for", "timeout"])
def test_a_span_longer_than_a_century_is_refused(app, name):
    with pytest.raises(BadDuration, match="100 years"):
        greet(app).using(**{name: "9999999d"})


@pytest.mark.parametrize("key", ["start", "end"])
def test_a_file_that_names_such_an_instant_is_refused_with_its_line(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    body = f"schedules:\n  tick: {{task: greet, every: 1h, {key}: 9999-12-31T23:59:59-14:00}}\n"
    (tmp_path / "rota.yaml").write_text(body)
    with pytest.raises(BadSettings, match=rf"rota.yaml:2.*{key}"):
        App("memory://").schedules.sync()


@pytest.mark.parametrize("micros", [micros_of(FAR), micros_of(EARLY), 2**63 - 1, -(2**63)])
def test_a_stored_instant_outside_the_calendar_is_shown_and_told(micros):
    assert datetime_of(micros).astimezone(timezone(timedelta(hours=14))).year in {1, 9999}
    assert find_zone("Asia/Kolkata").datetime_of(micros // 1_000_000).year in {1, 9999}
    assert outside_calendar(run_at=micros, other=None).startswith(f"cannot be read: run_at={micros}")
    assert outside_calendar(run_at=0) == ""
