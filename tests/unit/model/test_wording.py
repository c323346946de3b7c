"""What differs between two forms of a thing, in words."""

from __future__ import annotations

import msgspec

from rota.model.schedules import wording
from rota.model.schedules.planning import differences
from rota.model.schedules.schedule import Origin, Pause, ScheduleSpec
from rota.model.schedules.wording import OF_SCHEDULE, OF_TENANT, words_of

SPEC = ScheduleSpec(trigger="every 5m", task="a.b")
SECOND = 1_000_000


def forms(*given):
    return [str(line) for line in wording.differences(*given)]


def contents(*given):
    return [str(line) for line in wording.contents(*given)]


def changed(**fields):
    return differences(SPEC, msgspec.structs.replace(SPEC, **fields))


def test_spans_instants_and_calls_are_told_as_people_write_them():
    assert changed(lookahead=21_600 * SECOND, jitter=90 * SECOND) == ["jitter: none → 1m30s", "lookahead: none → 6h"]
    assert changed(end=1_767_225_599 * SECOND, day_bounds=("end",)) == [
        "end: none → 2025-12-31 23:59:59Z",
        "given as days: none → end",
    ]
    assert changed(payload='[["ann"],{"times":2}]') == ["arguments: () → ('ann', times=2)"]
    assert changed(payload='[[],{},{"user":1}]') == ["arguments: () → (), meta {'user': 1}"]
    assert changed(payload="[[],{},{},null,1500000]") == ["arguments: () → (), timeout 1s500ms"]
    assert changed(key="mine", key_for=1_500_000) == ["key: none → mine", "key_for: none → 1s500ms"]
    assert changed(payload="no JSON") == ["arguments: () → arguments that cannot be read"]
    assert changed(enabled=False) == ["enabled by its author: yes → no"]


def test_what_follows_a_tenant_is_told_with_what_holds_else():
    follows = {"tz": "UTC", "priority": 0}
    assert changed(tenant="acme", follows=follows) == [
        "tenant: none → acme",
        "follows its tenant in: none → tz (else UTC), priority (else 0)",
    ]


def test_two_equal_specs_do_not_differ():
    assert changed() == []


def test_what_is_left_out_is_the_default():
    assert forms({}, {"queue": "default"}, OF_SCHEDULE) == []
    assert forms({"queue": "mail"}, {}, OF_SCHEDULE) == ["queue: mail → default"]
    assert forms({"queue": "mail"}, {}, OF_TENANT) == ["queue: mail → none"]


def test_pauses_and_origins_are_told_without_what_the_label_says():
    pause = msgspec.to_builtins(Pause(0, "month end", "ann", 1_767_225_599 * SECOND, "acme"))
    assert forms({}, {"tenant_pause": pause}, OF_SCHEDULE) == [
        "pause of its tenant: none → paused by ann: month end until 2025-12-31 23:59:59Z"
    ]
    origin = msgspec.to_builtins(Origin("code", "shop", "2.4", is_retired=True))
    assert words_of("origin", origin) == "the code of app 'shop' version 2.4, retired"


def test_the_contents_of_a_thing_are_what_it_says_beyond_the_defaults():
    form = {"trigger": "every 5m", "payload": "[[]]", "queue": "default", "is_enabled": True, "runs": ["j1"]}
    assert contents(form, OF_SCHEDULE) == ["trigger: every 5m", "runs: job j1"]


def test_an_origin_that_reads_the_same_is_no_difference():
    before, after = Origin(), Origin(zone="Asia/Kolkata")  # a move keeps where the schedule was made
    said = forms(
        {"origin": msgspec.to_builtins(before)}, {"origin": msgspec.to_builtins(after), "tz": "UTC"}, OF_SCHEDULE
    )
    assert said == []
    moved = forms({"origin": msgspec.to_builtins(before)}, {"origin": ["code", "shop"]}, OF_SCHEDULE)
    assert moved == ["origin: the API → the code of app 'shop'"]
