"""Schedules, tenants and sources in rota.yaml: what they may say, and what is said about slips, each with its line."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from rota.config.declared import FileCollection, FileSchedule, FileTenant
from rota.config.fields import COLLECTION, SOURCE
from rota.config.nodes import MOST_STEPS
from rota.config.yaml_file import read_file
from rota.config.yaml_text import SHALLOW
from rota.operations.collections import CollectionWords, SourceWords

CRON = 'wanted cron text such as "0 9 * * mon-fri" or "@hourly"'
NAMES = "of the characters A-Z a-z 0-9 . _ : -"

WRONG = [  # text, the line, and what is said about it
    # The parts.
    ("schedules: 5", 1, "schedules: got '5', wanted names below it, as in `nightly: {task: cleanup, cron:"),
    ("schedules: [a]", 1, "schedules: got a list, wanted names below it"),
    ("tenants: x", 1, "tenants: got 'x', wanted names below it, as in `acme: {tz: Asia/Kolkata}`"),
    ("schedules:\n  a: 5", 2, "schedules.a: got '5', wanted keys below it, as in `nightly: {"),
    ("schedules:\n  a:", 2, "schedules.a: got nothing, wanted keys below it"),
    ("schedules:\n  a.b: {}", 2, "schedules.a.b: schedule id 'a.b': use 1 to 127 of the characters A-Z a-z 0-9 _ -"),
    ("schedules:\n  [a]: {}", 2, "schedules: got a list, wanted a name"),
    ("schedules:\n  a: {task: t, every: 1m}\n  a: {}", 3, "schedules.a: is said twice, first in line 2; keep one"),
    ("schedules: !x {a: {}}", 1, "schedules: got the tag !x, wanted names below it"),
    (
        "schedules:\n  a: !!python/object:os.x {task: t}",
        2,
        "schedules.a: got the tag !!python/object:os.x, wanted keys",
    ),
    ("shedules: {}", 1, "shedules: there is no such setting; did you mean schedules?"),
    # What every schedule needs.
    ("schedules:\n  a: {every: 5m}", 2, f"schedules.a: has no `task`; wanted a task's name, {NAMES}"),
    ("schedules:\n  a: {task: t}", 2, "schedules.a: says nowhere when it runs; wanted one of cron, every, calendar"),
    (
        "schedules:\n  a:\n    task: t\n    cron: '* * * * *'\n    every: 5m",
        5,
        "schedules.a.every: got cron and every, which both say when it runs; keep one of them",
    ),
    ("schedules:\n  a: {tsk: t, every: 5m, task: t}", 2, "schedules.a.tsk: there is no such key; did you mean"),
    ("schedules:\n  a: {task: t, every: 5m, zzz: 1}", 2, "schedules.a.zzz: there is no such key; there are args, cale"),
    (
        "schedules:\n  a:\n    task: a b\n    every: 5m",
        3,
        f"schedules.a.task: got 'a b', wanted a task's name, {NAMES}",
    ),
    # When it runs.
    (
        "schedules:\n  a: {task: t, cron: 99 * * * *}",
        2,
        f"schedules.a.cron: got '99 * * * *', {CRON} (minute field '99': 99 is out of range 0-59)",
    ),
    ("schedules:\n  a: {task: t, cron: 0 0 30 2 *}", 2, f"schedules.a.cron: got '0 0 30 2 *', {CRON} ("),
    ("schedules:\n  a: {task: t, cron: }", 2, f"schedules.a.cron: got nothing, {CRON}"),
    ("schedules:\n  a: {task: t, cron: [x]}", 2, f"schedules.a.cron: got a list, {CRON}"),
    ("schedules:\n  a: {task: t, every: 5}", 2, "schedules.a.every: got '5', wanted a duration such as 90s, 5m or"),
    (
        "schedules:\n  a: {task: t, once: 2026-10-14T09:00}",
        2,
        "schedules.a.once: got '2026-10-14T09:00', wanted an instant such as 2026-10-14T09:00Z (",
    ),
    (
        "schedules:\n  a:\n    task: t\n    calendar:\n      monts: 1",
        5,
        "schedules.a.calendar.monts: there is no such key; did you mean schedules.a.calendar.months?",
    ),
    ("schedules:\n  a: {task: t, calendar: {months: x}}", 2, "schedules.a.calendar: 'x' is not a whole number; wanted"),
    ("schedules:\n  a: {task: t, calendar: {months: 1, at: [1]}}", 2, "schedules.a.calendar.at: got a list, wanted a"),
    ("schedules:\n  a: {task: t, calendar: {days: 1 weeks=2}}", 2, "schedules.a.calendar.days: got '1 weeks=2', wante"),
    ("schedules:\n  a: {task: t, calendar: {}}", 2, "schedules.a.calendar: calendar() takes exactly one of days,"),
    ("schedules:\n  a: {task: t, every: 5m, dialect: unix}", 2, "schedules.a.dialect: says how cron text is read, and"),
    (
        "schedules:\n  a: {task: t, cron: '@daily', dialect: x}",
        2,
        "schedules.a.dialect: got 'x', wanted unix or quartz",
    ),
    (
        "schedules:\n  a:\n    task: t\n    cron: CRON_TZ=Asia/Tokyo 0 9 * * *\n    tz: UTC",
        5,
        "schedules.a.tz: got 'UTC', and cron says 'Asia/Tokyo'; keep one of them",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, tz: Europe/Pari}",
        2,
        "schedules.a.tz: got 'Europe/Pari', wanted a timezon",
    ),
    # Its options.
    (
        "schedules:\n  a: {task: t, every: 5m, priority: 101}",
        2,
        "schedules.a.priority: got '101', wanted a whole number",
    ),
    ("schedules:\n  a: {task: t, every: 5m, priority: hi}", 2, "schedules.a.priority: got 'hi', wanted a whole number"),
    (
        "schedules:\n  a: {task: t, every: 5m, queue: a b}",
        2,
        f"schedules.a.queue: got 'a b', wanted a queue's name, {NAMES}",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, overlap: wait}",
        2,
        "schedules.a.overlap: got 'wait', wanted skip, allow, q",
    ),
    ("schedules:\n  a: {task: t, every: 5m, catchup: none}", 2, "schedules.a.catchup: got 'none', wanted latest, skip"),
    (
        "schedules:\n  a: {task: t, every: 5m, catchup_limit: 0}",
        2,
        "schedules.a.catchup_limit: got '0', wanted a whole",
    ),
    ("schedules:\n  a: {task: t, every: 5m, grace: soon}", 2, "schedules.a.grace: got 'soon', wanted a duration"),
    (
        "schedules:\n  a: {task: t, every: 5m, key: k, key_for: 0s}",
        2,
        "schedules.a.key_for: got '0s', wanted a duration such as 90s, 1h30m or 250ms",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, lookahead: 32d}",
        2,
        "schedules.a.lookahead: got '32d', wanted a duration su",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, start: 2026-02-30}",
        2,
        "schedules.a.start: got '2026-02-30', wanted a date",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, end: 2026-02-03T09:00}",
        2,
        "schedules.a.end: got '2026-02-03T09:00', wante",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, start: 2026-02-03, end: 2026-02-02}",
        2,
        "schedules.a.end: got 2026-02-02, which lies before the start",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, max_runs: 1.5}",
        2,
        "schedules.a.max_runs: got '1.5', wanted a whole number",
    ),
    ("schedules:\n  a: {task: t, every: 5m, enabled: no}", 2, "schedules.a.enabled: got 'no', wanted true or false"),
    ("schedules:\n  a: {task: t, every: 5m, tenant: }", 2, "schedules.a.tenant: got nothing, wanted a tenant's name"),
    ("schedules:\n  a: {task: t, every: 5m, description: [x]}", 2, "schedules.a.description: got a list, wanted text"),
    # Its arguments.
    ("schedules:\n  a: {task: t, every: 5m, args: 5}", 2, "schedules.a.args: got '5', wanted a list of values"),
    (
        "schedules:\n  a: {task: t, every: 5m, kwargs: [5]}",
        2,
        "schedules.a.kwargs: got a list, wanted a mapping of nam",
    ),
    (
        "schedules:\n  a:\n    task: t\n    every: 5m\n    kwargs:\n      on: [1, {country: no}]",
        6,
        "schedules.a.kwargs.on[1].country: got no, which readers of YAML disagree on; quote it, or write true or false",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, args: [010]}",
        2,
        "schedules.a.args[0]: got a number like 010 or .nan, which readers of YAML disagree on; quote it, or write",
    ),
    (
        "redact: [pin]\nschedules:\n  a: {task: t, every: 5m, kwargs: {pin: 0123}}",
        3,
        "schedules.a.kwargs.pin: got a number like 010 or .nan, which readers",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, args: [.nan]}",
        2,
        "schedules.a.args[0]: got a number like 010 or .nan, which readers of YAML di",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, args: [!!binary aGk=]}",
        2,
        "schedules.a.args[0]: got the tag !!binary, wan",
    ),
    (
        "schedules:\n  a: {task: t, every: 5m, kwargs: {x: 1, x: 2}}",
        2,
        "schedules.a.kwargs.x: is said twice, first in l",
    ),
    # Tenants.
    ("tenants:\n  a: {queue: x}", 2, "tenants.a: has no `tz`; wanted a timezone's IANA name such as Europe/Paris"),
    ("tenants:\n  a: {tz: Mars}", 2, "tenants.a.tz: got 'Mars', wanted a timezone's IANA name such as Europe/Paris"),
    (
        "tenants:\n  a: {tz: UTC, on_zone_change: x}",
        2,
        "tenants.a.on_zone_change: got 'x', wanted recompute or keep_nex",
    ),
    ("tenants:\n  a b: {tz: UTC}", 2, "tenants.a b: tenant name 'a b': use 1 to 127"),
    # Sources.
    ("sources:\n  s: {collections: [a]}", 2, f"sources.s: has no `task`; wanted a task's name, {NAMES}"),
    ("sources:\n  s: {task: t}", 2, "sources.s: has no `collections`; wanted a list such as [{name: orders"),
    ("sources:\n  s: {task: t, collections: []}", 2, "sources.s.collections: got an empty list, wanted a list such as"),
    ("sources:\n  s: {task: t, collections: {a: 1}}", 2, "sources.s.collections: got a mapping, wanted a list such as"),
    (
        "sources:\n  s: {task: t, collections: [{}]}",
        2,
        "sources.s.collections[0]: has no `name`; wanted a collection's n",
    ),
    (
        "sources:\n  s: {task: t, collections: [[a]]}",
        2,
        "sources.s.collections[0]: got a list, wanted a mapping such as",
    ),
    (
        "sources:\n  s:\n    task: t\n    collections:\n      - {name: a, schedule: hourly}",
        5,
        f"sources.s.collections[0].schedule: got 'hourly', {CRON} (",
    ),
    (
        "sources:\n  s: {task: t, collections: [{name: a, priority: 0}]}",
        2,
        "sources.s.collections[0].priority: got '0', wanted a whole number from 1 to 50",
    ),
    (
        "sources:\n  s: {task: t, collections: [{name: a, dialect: quartz}]}",
        2,
        "sources.s.collections[0].dialect: says how a `schedule` is read, and there is none",
    ),
    (
        "sources:\n  s:\n    task: t\n    collections:\n      - a\n      - {name: a}",
        6,
        "sources.s.collections[1].name: got 'a', which is said twice, first in line 5; keep one of them",
    ),
    (
        "sources:\n  s: {task: t, collections: [{name: a, cron: x}]}",
        2,
        "sources.s.collections[0].cron: there is no such",
    ),
    (
        "sources:\n  s:\n    task: t\n    kep: 5\n    collections: [a]",
        4,
        "sources.s.kep: there is no such key; did you mean sources.s.keep?",
    ),
    (
        "sources:\n  s:\n    task: t\n    collections: [a]\n    keep: 0",
        5,
        "sources.s.keep: got '0', wanted a whole number from 1 to 100,000",
    ),
    (
        "sources:\n  s: {task: t, collections: [a], retries: -1}",
        2,
        "sources.s.retries: got '-1', wanted a whole number from 0 to 1,000",
    ),
    (
        "sources:\n  s: {task: t, collections: [a], timeout: 30}",
        2,
        "sources.s.timeout: got '30', wanted a duration such as 90s",
    ),
    ("sources:\n  s: {task: t, collections: [a], queue: a b}", 2, "sources.s.queue: got 'a b', wanted a queue's name"),
    ("sources:\n  s: {task: t, collections: [a], tz: Mars}", 2, "sources.s.tz: got 'Mars', wanted a timezone's IANA"),
    ("sources:\n  s: {task: t, collections: [a], schedule: hourly}", 2, f"sources.s.schedule: got 'hourly', {CRON} ("),
    (
        "sources:\n  s: {task: t, collections: [a], dialect: unix}",
        2,
        "sources.s.dialect: says how a `schedule` is read, and there is none",
    ),
    (
        "sources:\n  s:\n    task: t\n    collections:\n      - {name: a, tz: Mars}",
        5,
        "sources.s.collections[0].tz: got 'Mars', wanted a timezone's IANA name",
    ),
    (
        "sources:\n  s: {task: t, collections: [{name: a, enabled: maybe}]}",
        2,
        "sources.s.collections[0].enabled: got 'maybe', wanted true or false",
    ),
    # Queues of documents.
    ("documents: x", 1, "documents: got 'x', wanted names below it, as in `reminders: {source: mongodb://"),
    ("documents:\n  a b: {}", 2, "documents.a b: queue"),
    ("documents:\n  d: {source: 'm:s'}", 2, "documents.d: has no `handler`; wanted a function as module:name"),
    ("documents:\n  d: {handler: remind}", 2, "documents.d: has no `source`; wanted a URL such as mongodb://"),
    ("documents:\n  d: {handler: m:f, source: 'redis://x'}", 2, "documents.d: has no `collection`; wanted the name"),
    ("documents:\n  d: {handler: m:f, source: orders}", 2, "documents.d.source: got 'orders', wanted a URL such as"),
    ("documents:\n  d: {handler: m:f(), source: 'm:s'}", 2, "documents.d.handler: got 'm:f()', wanted a function"),
    ("documents:\n  d: {handler: m:f, source: 'm:s', tz: Mars}", 2, "documents.d.tz: got 'Mars', wanted a timezone"),
    (
        "documents:\n  d: {handler: m:f, source: 'm:s', lockfor: 1m}",
        2,
        "documents.d.lockfor: there is no such key; did",
    ),
    (
        "documents:\n  d:\n    handler: m:f\n    source: m:s\n    concurrency: 0",
        5,
        "documents.d.concurrency: got '0', wanted a whole number from 1 to 10,000",
    ),
    (
        "documents:\n  d: {handler: m:f, source: 'm:s', condition: {a: 1}}",
        2,
        "documents.d.condition: belongs to a source with a URL; m:s is made by code, so say it there",
    ),
    (
        "documents:\n  d: {handler: m:f, source: 'a://b', collection: c, condition: open}",
        2,
        "documents.d.condition: got 'open', wanted a mapping such as {status: open}",
    ),
    (
        "documents:\n  d: {handler: m:f, source: 'a://b', collection: c, fields: five}",
        2,
        "documents.d.fields: got 'five', wanted four, or a mapping",
    ),
    (
        "documents:\n  d:\n    {handler: m:f, source: 'a://b', collection: c,\n    fields: {interval: jobs.0.every}}",
        4,
        "documents.d.fields.interval: got 'jobs.0.every', wanted the path of a field",
    ),
    (
        "documents:\n  d: {handler: m:f, source: 'a://b', collection: c, fields: {sleepUntil: x}}",
        2,
        "documents.d.fields.sleepUntil: there is no such key; did you mean documents.d.fields.sleep_until?",
    ),
]


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text: str):
        (tmp_path / "rota.yaml").write_text(text)
        return read_file(tmp_path / "rota.yaml")

    return read


@pytest.mark.parametrize(("text", "line", "words"), WRONG, ids=[text for text, _, _ in WRONG])
def test_a_slip_is_told_once_with_its_line_its_key_and_what_is_wanted(read, text, line, words):
    complaints = read(text).complaints
    assert len(complaints) == 1, complaints
    assert complaints[0].startswith(f"rota.yaml:{line}: {words}"), complaints[0]


def test_everything_that_is_wrong_is_told_and_what_is_right_is_read(read):
    reading = read(
        "schedules:\n  a: {task: t}\n  b: {task: t, every: 5m}\n  c: {tsk: t, every: x}\nleese: 1\n"
        "tenants:\n  d: {}\nsources:\n  e: {task: t, collections: [{name: ' ', priority: x}]}\n"
    )
    lines = [complaint.split(":")[1] for complaint in reading.complaints]
    assert lines == ["2", "4", "4", "4", "5", "7", "9", "9"]
    assert [one.id for one in reading.declared.schedules] == ["b"]


def test_what_is_said_is_handed_on_with_where_it_was_said(read):
    declared = read(
        "schedules:\n  nightly:\n    task: mail.send\n    cron: 0 3 * * *\n    kwargs: {to: ann}\n    queue: mail\n"
        "tenants:\n  acme: {tz: Asia/Kolkata, priority: low}\n"
        "sources:\n  shop:\n    task: shop.sync\n    collections:\n      - orders\n"
        '      - {name: items, schedule: "0 0/1 * ? * *", dialect: quartz, priority: 5}\n'
    ).declared
    (schedule,) = declared.schedules
    assert schedule == FileSchedule(
        id="nightly",
        place="rota.yaml:2",
        task="mail.send",
        trigger="cron 0 3 * * *",
        kwargs={"to": "ann"},
        options={"queue": "mail"},
        places={"task": "rota.yaml:3", "cron": "rota.yaml:4", "kwargs": "rota.yaml:5", "queue": "rota.yaml:6"},
    )
    assert (schedule.at("queue"), schedule.at("tz")) == ("rota.yaml:6", "rota.yaml:2")
    assert declared.tenants == (
        FileTenant(name="acme", place="rota.yaml:8", options={"tz": "Asia/Kolkata", "priority": -10}),
    )
    (source,) = declared.sources
    assert source.collections[0] == FileCollection(name="orders", place="rota.yaml:13")
    assert declared.source_mapping() == {
        "shop": {
            "task": "shop.sync",
            "collections": [
                {"name": "orders"},
                {"name": "items", "schedule": "0 0/1 * ? * *", "dialect": "quartz", "priority": 5},
            ],
        }
    }


def test_sources_say_what_code_can_say(read):
    declared = read(
        "sources:\n  shop:\n    task: shop.sync\n    schedule: '@hourly'\n    dialect: unix\n    tz: Asia/Kolkata\n"
        "    keep: 7\n    retries: 2\n    timeout: 90s\n    queue: slow\n    collections:\n"
        "      - {name: items, tz: UTC, enabled: false, description: Things}\n"
    ).declared
    assert declared.source_mapping() == {
        "shop": {
            "task": "shop.sync",
            "schedule": "@hourly",
            "dialect": "unix",
            "tz": "Asia/Kolkata",
            "keep": 7,
            "retries": 2,
            "timeout": timedelta(seconds=90),
            "queue": "slow",
            "collections": [{"name": "items", "tz": "UTC", "enabled": False, "description": "Things"}],
        }
    }
    assert set(SOURCE) - {"task", "collections"} == set(SourceWords.__annotations__)
    assert set(COLLECTION) == set(CollectionWords.__annotations__)


@pytest.mark.parametrize("text", ["schedules:", "schedules: {}", "tenants: ~\nsources:\nschedules:\n"])
def test_a_part_whose_lines_are_all_commented_out_says_nothing(read, text):
    reading = read(text)
    assert reading.complaints == []
    assert reading.declared.schedules == reading.declared.tenants == reading.declared.sources == ()


def test_queues_of_documents_are_read_with_where_each_key_was_said(read):
    (one, four) = read(
        "documents:\n  reminders:\n    source: mongodb://ann:secret@db/shop\n    collection: orders\n"
        "    handler: shop:remind\n"
        "    condition: {status: open, total: {$gt: 5}}\n"
        "    fields: {sleep_until: job.at, locked_until: , locked_by: }\n"
        "    lock_for: 10m\n    concurrency: 16\n    tz: Asia/Kolkata\n    next_delay: 250ms\n"
        "  bills: {source: mongodb://db/shop, collection: bills, handler: pay, fields: four}\n"
    ).declared.documents
    assert (one.name, one.place, one.at("condition")) == (
        "reminders",
        "rota.yaml:2",
        "rota.yaml:6: documents.reminders.condition",
    )
    assert (one.source, one.collection, one.handler) == ("mongodb://ann:secret@db/shop", "orders", "shop:remind")
    assert one.condition == {"status": "open", "total": {"$gt": 5}}
    assert one.fields == {"sleep_until": "job.at", "locked_until": None, "locked_by": None}
    spans = {"lock_for": timedelta(minutes=10), "next_delay": timedelta(milliseconds=250)}
    assert one.options == {**spans, "concurrency": 16, "tz": "Asia/Kolkata"}
    assert four.fields == {"locked_until": None, "locked_by": None}


def test_arguments_are_what_json_makes_of_them(read):
    said = '[1, -2, 2.5, 1e3, true, False, null, ~, "no", "1", 2026-01-31, 1:30, on duty, {a: [b]}, 0x, ""]'
    (one,) = read(f"schedules:\n  a: {{task: t, every: 5m, args: {said}}}\n").declared.schedules
    plain = [1, -2, 2.5, 1000.0, True, False, None, None, "no", "1", "2026-01-31", "1:30", "on duty", {"a": ["b"]}]
    assert one.args == [*plain, "0x", ""]
    assert [type(value) for value in one.args[:6]] == [int, int, float, float, bool, bool]


def test_an_alias_is_read_wherever_it_stands(read):
    declared = read(
        "schedules:\n  a: &a {task: t, every: 5m, kwargs: &k {x: 1}}\n  b: *a\n  c: {task: t, every: 1m, kwargs: *k}\n"
    ).declared
    assert [(one.id, one.kwargs) for one in declared.schedules] == [("a", {"x": 1}), ("b", {"x": 1}), ("c", {"x": 1})]


def bomb(levels: int) -> str:
    lines = ["      - &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"      - &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "schedules:\n  a:\n    task: t\n    every: 5m\n    args:\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (bomb(9), f"rota.yaml: got more than {MOST_STEPS:,} values, each alias counted as often as it is used"),
        (
            "tenants: &t {a: {tz: UTC}}\nsources:\n"
            "  x: &x {task: t, collections: &c ["
            + ", ".join(f"c{n}" for n in range(2000))
            + "]}\n"
            + "".join(f"  x{n}: *x\n" for n in range(200)),
            f"rota.yaml: got more than {MOST_STEPS:,} values",
        ),
        ("schedules:\n  a: {task: t, every: 5m, args: &a [*a]}\n", "rota.yaml:2: schedules.a.args[0][0][0]"),
        (
            f"schedules:\n  a: {{task: t, every: 5m, args: [{'[' * 70}{']' * 70}]}}\n",
            "rota.yaml:2: schedules.a.args[0][0][0]",
        ),
        (
            f"schedules:\n  a: {{task: t, every: 5m, args: {'[' * (SHALLOW + 5)}{']' * (SHALLOW + 5)}}}\n",
            "rota.yaml:2: schedules.a.args[0][0][0]",
        ),
        ("schedules: " + "{a: " * 20_000, "rota.yaml is nested too deeply"),
        ("schedules: &s {a: *s}", "rota.yaml:1: schedules.a.a: there is no such key"),
    ],
    ids=["bomb", "wide", "circle", "deep", "deeper", "deepest", "itself"],
)
def test_a_small_file_that_stands_for_much_is_refused_at_once(read, text, words):
    began = time.process_time()
    complaints = read(text).complaints
    assert any(complaint.startswith(words) for complaint in complaints), complaints
    assert time.process_time() - began < 20


def test_arguments_larger_than_a_store_should_carry_are_refused(read):
    (said,) = read(f"schedules:\n  a: {{task: t, every: 5m, args: ['{'x' * 300_000}']}}\n").complaints
    assert said.startswith("rota.yaml:2: schedules.a.args: the arguments of the task take 300,0")
