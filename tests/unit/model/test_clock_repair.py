"""Whatever a store's clock does, no occurrence happens twice, and each that has come has one record."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.model.audit_record import Author
from rota.model.clock.record import ClockRecord, ClockStep, missed_step, recent_steps, with_step, wrong_time_at
from rota.model.clock.repair import MOST_SPANS, is_ahead_of_clock, repair_schedule, with_repair_audit
from rota.model.micros import SECOND, datetime_of, iso_text
from rota.model.schedules.edit import disable, enable, follow_pause, pause, resume
from rota.model.schedules.firing import plan
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Pause
from rota.model.schedules.wording import OF_SCHEDULE, differences, plain_form
from rota.store.contract import Retention
from rota.store.memory import MemoryStore
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, fresh_id
from rota.testing.store_suite.steps import add_schedule, claim, ledger, new_schedule, read_schedule, succeed

SPECS = st.fixed_dictionaries(
    {
        "trigger": st.sampled_from(["every 1m", "cron */2 * * * *", "every 7m"]),
        "catchup": st.sampled_from(["latest", "skip", "all"]),
        "catchup_limit": st.sampled_from([1, 3, 100]),
        "overlap": st.sampled_from(["skip", "allow"]),
        "grace": st.sampled_from([0, 90 * SECOND]),
        "lookahead": st.sampled_from([0, 0, 5 * MINUTE, 2 * HOUR]),
    }
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pass", "pass", "pass", "jump", "prune"]),
        st.integers(min_value=-90, max_value=90),
    ),
    max_size=12,
)


class World:
    """A store, one scheduler and one worker under a clock that somebody sets; every job that ever ran is known."""

    def __init__(self, spec: dict[str, object]) -> None:
        self.store = MemoryStore()
        self.now = T0
        self.ran: Counter[int] = Counter()
        add_schedule(self.store, **spec)

    def fire(self) -> None:
        while due := self.store.due_schedules(10, now=self.now).schedules:
            firings = [plan(schedule, self.now, fresh_id) for schedule in due]
            self.store.fire(firings, now=self.now)
        for job in claim(self.store, 500, now=self.now):
            self.ran[job.fire_at or 0] += 1
            succeed(self.store, job, now=self.now)

    def jump(self, minutes: int) -> None:
        self.now = max(self.now + minutes * MINUTE, T0 + MINUTE)  # an earlier one would move where the rule begins
        if minutes >= 0:
            return
        schedule = read_schedule(self.store)
        lines = [line for line in ledger(self.store) if line.through_at > self.now]
        lines = [line for line in lines if line.earliest_at <= schedule.made_through]
        edit = repair_schedule(schedule, lines, self.now) if is_ahead_of_clock(schedule, self.now) else None
        if edit is not None:
            assert self.store.edit_schedules([edit], now=self.now) == []

    def step(self, what: str, minutes: int) -> None:
        match what:
            case "pass":
                for _ in range(abs(minutes) // 10 + 1):
                    self.now += MINUTE
                    self.fire()
            case "jump":
                self.jump(minutes)
                self.fire()
            case _:
                self.store.prune(Retention(succeeded_for=0), 1_000, now=self.now)


@settings(max_examples=100, deadline=None)
@given(spec=SPECS, steps=STEPS)
def test_no_occurrence_happens_twice_and_none_is_forgotten(
    spec: dict[str, object], steps: list[tuple[str, int]]
) -> None:
    check_world(spec, steps)


@pytest.mark.parametrize("lookahead", [5 * MINUTE, 2 * HOUR])
def test_a_clock_that_goes_back_and_forth_leaves_no_time_without_a_record(lookahead: int) -> None:
    spec: dict[str, object] = {
        "trigger": "every 1m",
        "catchup": "skip",
        "catchup_limit": 1,
        "overlap": "skip",
        "grace": 0,
        "lookahead": lookahead,
    }
    check_world(spec, [("jump", 3), ("jump", -2), ("jump", 4), ("jump", -2)])


def check_world(spec: dict[str, object], steps: list[tuple[str, int]]) -> None:
    world = World(spec)
    for what, minutes in steps:
        world.step(what, minutes)
    world.jump(200)  # beyond every time that was ever shown
    world.fire()
    assert [at for at, number in world.ran.items() if number > 1] == []
    schedule = read_schedule(world.store)
    lines = ledger(world.store)
    last = schedule.trigger.second_before(world.now // SECOND + 1) or 0
    second = schedule.trigger.next_second(T0 // SECOND)
    while second is not None and second <= last:
        at = second * SECOND
        found = [line for line in lines if line.earliest_at <= at <= line.through_at]
        assert len(found) == 1, (at - T0) // MINUTE
        second = schedule.trigger.next_second(second)


def a_line(minute: float, reason: str = "overlap", outcome: str = "skipped") -> Occurrence:
    at = T0 + round(minute * MINUTE)
    return Occurrence(schedule_id="tick", after_at=at - 1, through_at=at, outcome=outcome, reason=reason)


SILENCES = {
    "paused": (lambda one, now: pause(one, now, reason="", by="ann", until=now + HOUR), resume),
    "paused with its tenant": (
        lambda one, now: follow_pause(one, Pause(now, "", "ann", None, "acme"), now),
        lambda one, now: follow_pause(one, None, now),
    ),
    "disabled": (disable, enable),
}


@pytest.mark.parametrize(("begin", "end"), SILENCES.values(), ids=SILENCES)
@pytest.mark.parametrize("was_fired", [True, False])
def test_a_silence_that_began_under_a_wrong_clock_holds_from_when_the_clock_is_right(begin, end, was_fired) -> None:
    schedule = new_schedule("tick", trigger="every 1m", catchup="all").after
    wrong = T0 + HOUR
    if was_fired:
        schedule = msgspec.structs.replace(schedule, fired_through=wrong)
    schedule = begin(schedule, wrong).after
    right = T0 + 30 * SECOND
    assert is_ahead_of_clock(schedule, right)
    repaired = repair_schedule(schedule, [], right)
    assert repaired is not None
    assert [at for at, _ in repaired.after.silences] == [right]
    audit = with_repair_audit(repaired, schedule, Author(record_id="r", by="a node", verb="moved back")).audit
    assert audit is not None
    assert (f'"silent_since":{wrong}' in audit.before, f'"silent_since":{right}' in audit.after) == (True, True)
    assert repair_schedule(repaired.after, [], right + SECOND) is None
    resumed = end(repaired.after, right + 5 * MINUTE)
    assert sum(skip.count for skip in resumed.skips) == 5  # they fell into the silence: none of them is caught up
    assert plan(resumed.after, right + 5 * MINUTE, fresh_id).shots == []


def test_spans_are_bounded() -> None:
    """Every second time was decided: there are more spans than a schedule keeps."""
    schedule = new_schedule("tick").after
    lines = [a_line(number) for number in range(2, 1_000, 2)]
    ahead = plan(schedule, T0 + 2_000 * MINUTE, fresh_id).fired_through
    edit = repair_schedule(msgspec.structs.replace(schedule, fired_through=ahead), lines, T0)
    assert edit is not None
    taken = edit.after.taken
    assert len(taken) == MOST_SPANS
    assert all(any(low < line.through_at <= high for low, high in taken) for line in lines)


def test_what_was_not_read_counts_as_taken() -> None:
    schedule = msgspec.structs.replace(new_schedule("tick").after, fired_through=T0 + HOUR)
    edit = repair_schedule(schedule, [a_line(5)], T0, is_whole=False)
    assert edit is not None
    assert edit.after.next_at == T0 + MINUTE
    assert edit.after.taken == ((T0 + 5 * MINUTE - 1, T0 + HOUR),)


def test_the_record_of_a_repair_is_shown_in_instants() -> None:
    before = msgspec.structs.replace(new_schedule("tick").after, fired_through=T0 + HOUR, created_at=T0 + HOUR)
    edit = repair_schedule(before, [a_line(5)], T0, is_whole=False)
    assert edit is not None
    audit = with_repair_audit(edit, before, Author(record_id="n1", by="node", verb="repaired")).audit
    assert audit is not None
    was, became = msgspec.json.decode(audit.before), msgspec.json.decode(audit.after)
    span = [iso_text(T0 + 5 * MINUTE - 1), iso_text(T0 + HOUR)]
    wanted = {"fired_through": iso_text(edit.after.fired_through), "created_at": iso_text(T0), "taken": [span]}
    assert plain_form(became) == wanted
    assert plain_form(was) == {"fired_through": iso_text(T0 + HOUR), "created_at": iso_text(T0 + HOUR)}
    said = "; ".join(map(str, differences(was, became, OF_SCHEDULE)))
    assert f"created: {datetime_of(T0 + HOUR):%Y-%m-%d %H:%M:%S}Z → {datetime_of(T0):%Y-%m-%d %H:%M:%S}Z" in said
    assert str(T0) not in said
    assert str(T0 + HOUR) not in said


def a_step(was: int, at: int, by: str = "n") -> ClockStep:
    return ClockStep(was=T0 + was * SECOND, at=T0 + at * SECOND, by=by)


def test_a_step_that_two_nodes_see_is_recorded_once() -> None:
    record = with_step(ClockRecord(), a_step(3600, 0))
    assert with_step(record, a_step(3602, 2, by="m")) == record
    assert len(with_step(record, a_step(2, 3602)).steps) == 2


@pytest.mark.parametrize(("latest", "is_missed"), [(3600, True), (1, False), (-60, False)])
def test_the_latest_time_shows_a_step_that_nobody_saw(latest: int, *, is_missed: bool) -> None:
    found = missed_step(ClockRecord(latest=T0 + latest * SECOND), T0, "n")
    assert (found is not None) is is_missed


def test_steps_are_told_of_for_a_day() -> None:
    record = with_step(ClockRecord(), a_step(3600, 0))
    assert recent_steps(record, T0 + 23 * HOUR)
    assert recent_steps(record, T0 + 25 * HOUR) == []


def test_a_time_that_the_clock_showed_twice_is_explained() -> None:
    steps = [a_step(-6, 3594), a_step(3600, 0)]
    said = "The store's clock stood 1h ahead from 2025-12-31 23:59:54 UTC until 2026-01-01 00:00:00 UTC."
    assert wrong_time_at(steps, T0 + 30 * MINUTE) == said
    assert wrong_time_at(steps[1:], T0 + 30 * MINUTE) == said.replace(" from 2025-12-31 23:59:54 UTC", "")
    assert wrong_time_at(steps, T0 + 2 * HOUR) is None
    assert wrong_time_at(steps[:1], T0 + 30 * MINUTE) is None
