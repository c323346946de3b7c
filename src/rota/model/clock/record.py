"""Records the latest time that the store's own clock has shown, and when it was set.

The record lives in the store, so that a node which starts after the clock was set still finds out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.model.clock.repair import TOLERANCE
from rota.model.entry import Entry
from rota.model.micros import SECOND, datetime_of, span_text
from rota.model.why.time_words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND, NAME = "clock", "store"  # the entry that holds the record
MOST_STEPS = 10  # that are kept, the newest last
SAME_WITHIN = 60 * SECOND  # two nodes that see a step so close together see one step
TOLD_FOR = 24 * 3600 * SECOND  # how long `rota health` and `rota doctor` mention a step


class ClockStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The store's clock was set. Without that it would have shown `was`; it showed `at`."""

    was: int
    at: int
    by: str = ""  # the node that saw it
    is_repaired: bool = False  # everything that the wrong time left behind was moved back, leases included
    schedules: int = 0  # how many of them
    jobs: int = 0

    @property
    def size(self) -> int:
        """How far it was set: negative if it was set back."""
        return self.at - self.was

    @property
    def is_back(self) -> bool:
        return self.size < 0

    @property
    def span(self) -> str:
        """How far, in whole seconds: 1h6s."""
        return span_text(round(abs(self.size) / SECOND) * SECOND)

    @property
    def words(self) -> str:
        """The step as a sentence without its full stop."""
        way = "back" if self.is_back else "ahead"
        return f"the store's clock was set {way} by {self.span}, from {_time(self.was)} to {_time(self.at)}"

    @property
    def repair_words(self) -> str:
        """The result of the repair, in words."""
        number = f"{counted(self.schedules, 'schedule')} and {counted(self.jobs, 'job')}"
        moved = f"{number} that were ahead of it were moved back"
        return moved if self.is_repaired else f"{moved} so far; the repair has not ended"


class ClockRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The latest time that the clock has shown since it was last set, and the last times it was set."""

    latest: int = 0
    steps: tuple[ClockStep, ...] = ()


def is_clock_record(thing: object) -> bool:
    return isinstance(thing, Entry) and (thing.kind, thing.name) == (KIND, NAME)


def pack_record(record: ClockRecord) -> str:
    return msgspec.json.encode(record).decode()


def unpack_record(data: str) -> ClockRecord:
    """The record; an empty one if an edit by hand made it unreadable."""
    try:
        return msgspec.json.decode(data, type=ClockRecord)
    except msgspec.MsgspecError:
        return ClockRecord()


def missed_step(record: ClockRecord, now: int, by: str) -> ClockStep | None:
    """The step that the record shows and that no node has recorded: the clock once showed a later time than now."""
    return ClockStep(was=record.latest, at=now, by=by) if record.latest > now + TOLERANCE else None


def with_step(record: ClockRecord, step: ClockStep) -> ClockRecord:
    """The record with a step, unless another node has recorded the same one."""
    if any(is_same_step(kept, step) for kept in record.steps):
        return msgspec.structs.replace(record, latest=step.at) if record.latest > step.at else record
    return ClockRecord(latest=step.at, steps=(*record.steps, step)[-MOST_STEPS:])


def unfinished_steps(record: ClockRecord, now: int) -> list[ClockStep]:
    """The steps whose repair has not ended. Once the time that the clock showed has come, no instant is ahead of it."""
    return [step for step in record.steps if step.is_back and not step.is_repaired and step.was > now + TOLERANCE]


def with_repair(record: ClockRecord, step: ClockStep, schedules: int, jobs: int, *, is_last: bool) -> ClockRecord:
    """The record after one pass over what a step left behind. Only the last pass ends the repair: a node that dies
    before it leaves the rest to another."""
    steps = tuple(
        msgspec.structs.replace(
            kept,
            is_repaired=kept.is_repaired or is_last,
            schedules=kept.schedules + schedules,
            jobs=kept.jobs + jobs,
        )
        if is_same_step(kept, step)
        else kept
        for kept in record.steps
    )
    return msgspec.structs.replace(record, steps=steps)


def is_same_step(one: ClockStep, other: ClockStep) -> bool:
    """Whether two records describe one step: in one direction, and at about one time."""
    return one.is_back is other.is_back and abs(one.at - other.at) < SAME_WITHIN


def recent_steps(record: ClockRecord, now: int) -> list[ClockStep]:
    """The steps of the last day, by the clock as it is now."""
    return [step for step in record.steps if abs(now - step.at) < TOLD_FOR]


def wrong_time_at(steps: Sequence[ClockStep], at: int) -> str | None:
    """A sentence about an instant at which the clock was wrong; None if it was right.

    The clock showed times up to `was` and was then set back to `at`: between the two, it has shown each time twice.
    """
    for number, step in enumerate(steps):
        if not step.is_back or not step.at - TOLERANCE < at <= step.was + TOLERANCE:
            continue
        before = steps[number - 1] if number else None
        began = f" from {_time(before.was)}" if before is not None and not before.is_back else ""
        return f"The store's clock stood {step.span} ahead{began} until {_time(step.at)}."
    return None


def _time(micros: int) -> str:
    return datetime_of(micros).strftime("%Y-%m-%d %H:%M:%S UTC")
