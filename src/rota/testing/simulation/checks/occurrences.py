"""Checks that each expected time of a schedule has exactly one record, by an oracle that does not use the engine.

The oracle counts seconds for the few triggers that the simulation uses. It shares no code with the triggers, nor with
the decisions about firing.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.testing.simulation.history import Call, History

ONCE_EACH = "I2: each occurrence has exactly one record"
DAY = 86_400_000_000
MICROS = 1_000_000

_EVERY = re.compile(r"every (\d+)(s|m)")
_CRON = re.compile(r"cron \*(?:/(\d+))? \* \* \* \*")


def expected_slots(schedule: Schedule, after: int, through: int) -> list[int]:
    """The nominal times in after < t <= through by the schedule's timing."""
    spec = schedule.spec
    first = after + 1 if spec.start is None else max(after + 1, spec.start)
    last = through if spec.end is None else min(through, spec.end)
    step, anchor = _rhythm(schedule)
    k = max(0, -((anchor - first) // step))  # the first k with anchor + k * step >= first
    return [at for at in range(anchor + k * step, last + 1, step) if not _is_told(schedule, at)]


def _is_told(schedule: Schedule, at: int) -> bool:
    """Whether it lies in a pause over missed times: its record was made when the pause ended."""
    detours = () if schedule.ahead is None else schedule.ahead.detours
    return any(one.after < at <= one.through for one in detours)


def _rhythm(schedule: Schedule) -> tuple[int, int]:
    """Step and anchor in microseconds."""
    text = schedule.spec.trigger
    if every := _EVERY.fullmatch(text):
        seconds = int(every[1]) * (60 if every[2] == "m" else 1)
        start = schedule.spec.start
        begun = schedule.created_at // MICROS if start is None else -(-start // MICROS)  # a start is never early
        return seconds * MICROS, begun * MICROS
    if cron := _CRON.fullmatch(text):
        minutes = int(cron[1] or 1)
        return minutes * 60 * MICROS, 0
    raise ValueError(f"the oracle does not know {text!r}")


def check_firings(history: History) -> list[Violation]:
    """Every step forward of a schedule accounts for exactly the expected times that it passes."""
    violations: list[Violation] = []
    for call in history.calls:
        for before, after in call.schedules:
            if before is not None and after is not None and after.fired_through != before.fired_through:
                violations += _advance_faults(call, before, after)
            elif before is not None and after is not None:
                violations += _silence_faults(call, before, after)
    return violations


def _silence_faults(call: Call, before: Schedule, after: Schedule) -> Iterator[Violation]:
    """Each time that a pause over missed times removes has a record from that step on."""
    silent = _silent_slots(before, after)
    if silent and len(silent) != _skipped(call, before.id):
        text = f"{before.id} left out {silent}: {_skipped(call, before.id)} were recorded as skipped"
        yield Violation(ONCE_EACH, call.step, f"{call.verb}: {text}")


def check_doubles(history: History) -> list[Violation]:
    """No two jobs have the same nominal time of the same life of a schedule."""
    made: set[tuple[str, int, int]] = set()
    violations: list[Violation] = []
    births: dict[str, int] = {}
    for call in history.calls:
        births.update((after.id, call.number) for before, after in call.schedules if before is None and after)
        for before, after in call.jobs:
            if before is not None or after is None or after.schedule_id is None or after.fire_at is None:
                continue
            name = after.schedule_id, births[after.schedule_id], after.fire_at
            if name in made:
                violations.append(Violation(ONCE_EACH, call.step, f"{after.schedule_id} fired {after.fire_at} twice"))
            made.add(name)
    return violations


def check_ledger(schedule: Schedule, slots: Iterable[int], lines: Iterable[Occurrence], step: int) -> list[Violation]:
    """The ledger shows each expected time once, and no other."""
    expected = list(slots)
    shown: Counter[int] = Counter()
    violations: list[Violation] = []
    for line in lines:
        covered = [line.through_at] if line.job_id else [at for at in expected if line.after_at < at <= line.through_at]
        shown.update(covered)
        if len(covered) != line.count:
            text = f"{schedule.id}: a line counts {line.count} times where {len(covered)} are: {line}"
            violations.append(Violation(ONCE_EACH, step, text))
    wrong = {at: shown[at] for at in {*expected, *shown} if shown[at] != (at in set(expected))}
    if wrong:
        violations.append(Violation(ONCE_EACH, step, f"{schedule.id}: records per time: {wrong}"))
    return violations


def life_slots(history: History, schedule_id: str) -> list[int]:
    """Every time that a schedule has passed since it was made, by the timing that it had then."""
    slots: list[int] = []
    for call in history.calls:
        for before, after in call.schedules:
            if after is None or after.id != schedule_id:
                continue
            if before is None:
                slots = [slot for slot in _begun(after) if (schedule_id, slot) not in _made_before(history, call)]
            elif not _is_spent(before):
                slots += expected_slots(before, before.fired_through, after.fired_through)
                slots += _silent_slots(before, after)
    return slots


def _silent_slots(before: Schedule, after: Schedule) -> list[int]:
    """The times that a step removes before the schedule passes them."""
    known = () if before.ahead is None else before.ahead.detours
    added = () if after.ahead is None else [one for one in after.ahead.detours if one not in known]
    return [at for one in added for at in expected_slots(before, one.after, one.through)]


def _begun(made: Schedule) -> list[int]:
    """The run of a start that lies earlier on the day on which the schedule was made."""
    start, now = made.spec.start, made.created_at
    if start is None or start > now or start // DAY != now // DAY or not made.is_enabled:
        return []
    return expected_slots(made, start - 1, now)[-1:]


def _made_before(history: History, birth: Call) -> set[tuple[str | None, int | None]]:
    """The times that an earlier namesake's jobs stand for when a schedule is made: no second job is made for one."""
    made: set[tuple[str | None, int | None]] = set()
    for call in takewhile(lambda call: call is not birth, history.calls):
        for before, after in call.jobs:
            if after is not None:
                made.add((after.schedule_id, after.fire_at))
            elif before is not None:
                made.discard((before.schedule_id, before.fire_at))
    return made


def _advance_faults(call: Call, before: Schedule, after: Schedule) -> Iterator[Violation]:
    if after.fired_through < before.fired_through:
        yield Violation(ONCE_EACH, call.step, f"{before.id} went back from {before.fired_through}")
        return
    expected = [] if _is_spent(before) else expected_slots(before, before.fired_through, after.fired_through)
    made = [
        job.fire_at
        for _, job in call.jobs
        if job is not None and job.schedule_id == before.id and job.fire_at and job.fire_at > before.fired_through
    ]
    if not set(made) <= set(expected) or len(made) + _skipped(call, before.id) != len(expected):
        text = (
            f"{before.id} ({before.spec.trigger}) passed {expected}: made {made}, skipped {_skipped(call, before.id)}"
        )
        yield Violation(ONCE_EACH, call.step, f"{call.verb}: {text}")


def _skipped(call: Call, schedule_id: str) -> int:
    if call.verb == "fire":
        return sum(fired.skipped for fired in call.reply if fired.schedule_id == schedule_id and fired.is_accepted)
    edits = [edit for edit in call.args[0] if edit.id == schedule_id and edit.id not in call.reply]
    return sum(skip.count for edit in edits for skip in edit.skips)


def _is_spent(schedule: Schedule) -> bool:
    return schedule.spec.max_runs is not None and schedule.run_count >= schedule.spec.max_runs
