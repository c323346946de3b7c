"""Moves one item of django-celery-beat to Rota, or back, so that no run happens twice and none is missed.

To Rota: the item is held, so that beat does not send it. Beat confirms that it has read this, and writes when it ran
the item last. The item is turned off. The schedule in Rota is turned on, and decides on all times after that last run.
Back: the schedule is turned off, with the time up to which it decided. The item is turned on, as if beat had run it at
that time.

The two databases share no transaction. So each step is recorded, each can be repeated, and the old system is always off
before the new one is on. A command that is killed may leave an item that neither system runs. The times that pass
meanwhile are made up for when the command is run again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.clock import utc_now
from rota.errors import Refused, ResultTimeout, ScheduleNotFound
from rota.failpoints import reach
from rota.importers.beat_switches import BeatSwitches
from rota.importers.django_celery_beat import interval_of
from rota.importers.take_over_record import Records, Step, TakeOver
from rota.model.audit_record import Author
from rota.model.micros import datetime_of, micros_of
from rota.model.schedules import handover
from rota.model.schedules.edit import with_audit
from rota.store.contract import Store
from rota.triggers import every, trigger_from_text

if TYPE_CHECKING:
    from rota.importers.django_celery_beat import PeriodicTask
    from rota.importers.found import Item
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule, ScheduleSpec

HOLD = timedelta(days=3650)  # how far ahead the start time of an item is put; beat adds to it, so not at its end
QUIET = timedelta(seconds=1)  # between any run and the hold, so that no message is on its way to the broker
LOOK = 0.1  # seconds between two checks for an answer
REMIND = 2.0  # seconds between two reminders
TRIES = 20
POINTS = (  # where a test may kill the command
    "take.recorded", "take.held", "take.answered", "take.decided", "take.switched", "take.off", "take.enabled",
    "back.disabled", "back.recorded", "back.switched",
)  # fmt: skip


class BeatDidNotAnswer(ResultTimeout):
    """Beat has not shown in time that it knows of a change."""


class Moved(Struct, frozen=True, kw_only=True):
    """What became of one item."""

    id: str
    state: str  # taken, back, released, unchanged or left
    says: str


class Context(Struct, frozen=True, kw_only=True):
    """What a take-over works with."""

    store: Store
    switches: BeatSwitches
    source: str
    by: str
    new_id: Callable[[], str]
    patience: float = 60.0  # seconds to wait for beat's answer
    is_beat_stopped: bool = False  # the caller states that beat does not run, so it is not asked
    sleep: Callable[[float], None] = time.sleep


def reason_to_stay(store: Store, item: Item, row: PeriodicTask, record: TakeOver | None) -> Moved | None:
    """Why --take-over does not move an item; None if it moves it."""
    record = _of_row(record, row)
    if record is not None and record.step == "taken":
        return _taken_already(store, item.id, row)
    if item.spec is None:
        return _unsaid(item)
    if (record is None or record.step == "back") and not row.enabled:
        return Moved(id=item.id, state="left", says="it is off in django-celery-beat")
    return None


def _unsaid(item: Item) -> Moved:
    return Moved(id=item.id, state="left", says=item.reason)


def _of_row(record: TakeOver | None, row: PeriodicTask) -> TakeOver | None:
    """The record, unless its item was deleted in Django and this one made under its name."""
    is_other = record is not None and record.row != row.id and record.step in {"taken", "back"}
    return None if is_other else record


def take(context: Context, item: Item, row: PeriodicTask) -> Moved:
    """Move an item to Rota, from whichever step an earlier command has left it at."""
    records = Records(context.store)
    record, version = records.find(item.id)
    record = _of_row(record, row)
    stays = reason_to_stay(context.store, item, row, record)
    if stays is not None or item.spec is None:
        return stays or _unsaid(item)
    if record is None or record.step == "back":
        record = _beginning(context, row)
        version = records.write(item.id, record, version)
        reach("take.recorded")
    if record.step == "holding":
        held = _hold(context, item, record, version)
        if held is None or (held.one_off and held.total_run_count):
            return _release(context, records, item.id, record, version, "beat has turned it off, or has run it")
        never_ran = held.last_run_at is None and not held.total_run_count
        through = ran_through(msgspec.structs.replace(held, start_time=record.before))
        record = _next(record, "held", through=through, never_ran=never_ran)
        version = records.write(item.id, record, version)
        reach("take.decided")
    return _finish(context, records, item.id, item.spec, row, record, version)


def _beginning(context: Context, row: PeriodicTask) -> TakeOver:
    until = utc_now().replace(microsecond=0) + HOLD
    return TakeOver(
        source=context.source, row=row.id, name=row.name, step="holding", before=row.start_time, until=until
    )


def _finish(
    context: Context,
    records: Records,
    schedule_id: str,
    spec: ScheduleSpec,
    row: PeriodicTask,
    record: TakeOver,
    version: int,
) -> Moved:
    """Switch the item off and the schedule on, once the boundary is known."""
    if record.step in {"releasing", "returning"}:
        raise Refused(f"schedule '{schedule_id}' is being given back; finish that first with --give-back")
    if record.step == "held":
        if not context.switches.switch_off(record.row, record.before, record.until):
            raise Refused(
                f"{record.name!r} was edited in Django during its take-over; return it to beat with --give-back, then "
                "take it over again"
            )
        reach("take.switched")
        record = _next(record, "off")
        version = records.write(schedule_id, record, version)
        reach("take.off")
    schedule = _enable(context, schedule_id, spec, row, record)
    records.write(schedule_id, _next(record, "taken"), version)
    return Moved(id=schedule_id, state="taken", says=_said(record, schedule))


def give_back(context: Context, schedule_id: str, item: Item | None, row: PeriodicTask | None) -> Moved:
    """Move an item back to beat, from whichever step an earlier command has left it at."""
    records = Records(context.store)
    record, version = records.find(schedule_id)
    if record is None or record.step == "back":
        return Moved(id=schedule_id, state="unchanged", says="it is beat's already")
    if record.step in {"holding", "releasing"} or (record.step == "held" and _is_on(context, record)):
        return _release(context, records, schedule_id, record, version, "its take-over was not finished")
    if record.step in {"held", "off"}:  # beat is off: the way back begins in Rota
        if item is None or item.spec is None or row is None:
            raise Refused(f"{record.name!r} is no longer in django-celery-beat, so it cannot be given back")
        take(context, item, row)
        record, version = records.find(schedule_id)
    if record is not None and record.step == "taken":
        if context.switches.read(record.row) is None:
            raise Refused(f"{record.name!r} is no longer in django-celery-beat, so it cannot be given back")
        end = _stop_here(context, schedule_id, record)
        if end is None:
            return Moved(id=schedule_id, state="left", says="it has run as often as it may")
        reach("back.disabled")
        record = end
        version = records.write(schedule_id, record, version)
        reach("back.recorded")
    last = None if record is None or record.never_ran else datetime_of(record.through)
    if record is None or not context.switches.switch_on(record.row, last):
        raise Refused(f"'{schedule_id}' is no longer in django-celery-beat, so it cannot be given back")
    reach("back.switched")
    records.write(schedule_id, _next(record, "back"), version)
    return Moved(id=schedule_id, state="back", says=f"{came_to(record)}{_edited(context.store, schedule_id)}")


def _stop_here(context: Context, schedule_id: str, record: TakeOver) -> TakeOver | None:
    """Turn the schedule off: the record with the boundary; None if it has no further run. One that was removed is over
    now: its remover did not want its times."""
    if not context.store.get_schedules([schedule_id]):
        return _next(record, "returning", through=context.store.now(), never_ran=False)
    schedule = _change(context, schedule_id, handover.give_back, "given back")
    if schedule.is_spent:
        return None
    never_ran = record.never_ran and schedule.fired_through == record.through
    return _next(record, "returning", through=schedule.fired_through, never_ran=never_ran)


def came_to(record: TakeOver) -> str:
    """A sentence for the report: from which time beat continues."""
    if record.never_ran:
        return "beat goes on with it, and it has not run yet"
    return f"beat goes on after {_instant(record.through)}"


def _edited(store: Store, schedule_id: str) -> str:
    """A sentence for the report, if it was edited by hand: beat does not get the edit."""
    found = store.get_schedules([schedule_id])
    is_edited = bool(found) and found[0].origin.kind != "import"
    return "; it was edited in Rota, and beat goes on with its own rule" if is_edited else ""


def check_beat(context: Context) -> None:
    """Check that beat is alive, before anything is changed."""
    if not context.is_beat_stopped and not _answers(context):
        raise BeatDidNotAnswer(
            f"beat did not answer within {context.patience:g} s, and nothing was changed; see that it runs, with the "
            "DatabaseScheduler of django-celery-beat on this database. If its beat_max_loop_interval is long, give it "
            "more time with --wait-for-beat; if it is stopped for good, pass --beat-stopped"
        )


def ran_through(row: PeriodicTask) -> int:
    """Up to when the times of an item had their turn in beat, in microseconds. One that never ran is counted from its
    last edit, as beat does; a single time is open until it has run."""
    if row.clocked is not None and not row.total_run_count:
        return micros_of(row.clocked) - 1
    return micros_of(_counted_from(row) or utc_now())


def _counted_from(row: PeriodicTask) -> datetime | None:
    """Beat's last run, or the last edit. Beat begins an interval that never ran at its start time, if it has one."""
    if row.last_run_at is None and row.start_time is not None and row.interval is not None:
        first = row.start_time - interval_of(row.interval)
        return first if row.date_changed is None else min(first, row.date_changed)
    return row.last_run_at or row.date_changed


def continued(spec: ScheduleSpec, row: PeriodicTask, record: TakeOver) -> ScheduleSpec:
    """The definition that continues where beat stopped: an interval is counted from beat's last run, in whole seconds,
    and has no run before its own start time."""
    if row.interval is None:
        return spec
    interval = interval_of(row.interval)
    following = datetime_of(record.through) + interval
    first = math.ceil(max(following, record.before or following).timestamp())
    trigger = every(interval, start=datetime.fromtimestamp(first, UTC), tz=trigger_from_text(spec.trigger).tz)
    return msgspec.structs.replace(spec, trigger=str(trigger))


def quiet_in(row: PeriodicTask, spec: ScheduleSpec, now: datetime) -> float:
    """Seconds to wait until no run of the item is near. Beat may be killed at any time; between two runs, everything
    that it has sent is written, if it runs with `beat_sync_every = 1`."""
    if row.interval is not None:
        interval = interval_of(row.interval)
        margin = min(QUIET, interval / 4)
        since = (now - margin) - (_counted_from(row) or now)
        due = (now - margin) + interval - since % interval
    else:
        margin = QUIET
        found = trigger_from_text(spec.trigger).bound(spec.tz, start=now).next_after(now - margin)
        if found is None:
            return 0.0
        due = found
    return 0.0 if due > now + margin else (due + margin - now).total_seconds()


def _hold(context: Context, item: Item, record: TakeOver, version: int) -> PeriodicTask | None:
    """Keep beat from sending the item, until beat has confirmed it. The row then, or None if it is off."""
    for _ in range(TRIES):
        if not _hold_once(context, item, record):
            return None
        reach("take.held")
        if not context.is_beat_stopped and not _answers(context):
            # refused if another command went on
            _release(context, Records(context.store), item.id, record, version, "")
            raise BeatDidNotAnswer(
                f"beat did not answer within {context.patience:g} s while {record.name!r} was taken over; the item is "
                "beat's again. Start beat, or give it more time with --wait-for-beat, and run the command again"
            )
        reach("take.answered")
        row = context.switches.read(record.row)
        if row is None or not row.enabled:
            return None
        if row.start_time == record.until:
            return row  # otherwise beat wrote the row that it had read before
    raise Refused(f"the start time of {record.name!r} is changed again and again in Django; stop that, and try again")


def _hold_once(context: Context, item: Item, record: TakeOver) -> bool:
    for _ in range(TRIES):
        row = context.switches.read(record.row)
        if row is None or item.spec is None or not row.enabled:
            return False
        wait = 0.0 if row.start_time == record.until else quiet_in(row, item.spec, utc_now())
        if not wait:
            break
        context.sleep(wait)
    return context.switches.hold(record.row, record.before, record.until)


def _answers(context: Context) -> bool:
    """Ask beat, and wait for its answer."""
    question = context.switches.ask()
    began = reminded = time.monotonic()
    while not context.switches.is_answered(question):
        now = time.monotonic()
        if now - began > context.patience:
            return False
        if now - reminded > REMIND:
            context.switches.remind()
            reminded = now
        context.sleep(LOOK)
    context.switches.forget_answered()
    return True


def _is_on(context: Context, record: TakeOver) -> bool:
    row = context.switches.read(record.row)
    return row is not None and row.enabled


def _release(context: Context, records: Records, schedule_id: str, record: TakeOver, version: int, why: str) -> Moved:
    """Release the item: beat has its last run in memory or in its table."""
    if record.step != "releasing":
        version = records.write(schedule_id, _next(record, "releasing"), version)
    context.switches.release(record.row, record.before, record.until)
    records.write(schedule_id, None, version)
    return Moved(id=schedule_id, state="released", says=f"{why}; it is beat's".removeprefix("; "))


def _enable(context: Context, schedule_id: str, spec: ScheduleSpec, row: PeriodicTask, record: TakeOver) -> Schedule:
    said = continued(spec, row, record)

    def decide(schedule: Schedule, now: int) -> Edit | None:
        is_on = schedule.is_enabled and not schedule.origin.is_retired
        is_done = is_on and schedule.spec == said and schedule.fired_through >= record.through
        return None if is_done else handover.take_over(schedule, said, record.through, now)

    schedule = _change(context, schedule_id, decide, "taken over")
    reach("take.enabled")
    return schedule


def _change(context: Context, schedule_id: str, decide: Callable[[Schedule, int], Edit | None], verb: str) -> Schedule:
    """Decide on the schedule as it is, and apply it if it still is."""
    for _ in range(TRIES):
        found = context.store.get_schedules([schedule_id])
        if not found:
            raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}; import it first")
        edit = decide(found[0], context.store.now())
        if edit is None:
            return found[0]
        author = Author(record_id=context.new_id(), by=context.by, verb=verb)
        if not context.store.edit_schedules([with_audit(edit, found[0], author)]):
            return edit.after
    raise Refused(f"schedule '{schedule_id}' kept changing; try again")


def _next(record: TakeOver, step: Step, **fields: int | bool) -> TakeOver:
    return msgspec.structs.replace(record, step=step, **fields)


def _taken_already(store: Store, schedule_id: str, row: PeriodicTask) -> Moved:
    """What became of an item that was taken over."""
    found = store.get_schedules([schedule_id])
    stopped = _why_stopped(schedule_id, found[0] if found else None)
    if stopped:
        runs = "beat alone runs it, because it is on in Django again" if row.enabled else "no system runs it"
        says = f"it was taken over, and {stopped[0]}: {runs}; {stopped[1]}"
        return Moved(id=schedule_id, state="left", says=says)
    if row.enabled:
        says = "it is on in Django again, so both systems run it; switch it off there, or pass --give-back"
        return Moved(id=schedule_id, state="unchanged", says=says)
    return Moved(id=schedule_id, state="unchanged", says="it is Rota's already")


def _why_stopped(schedule_id: str, schedule: Schedule | None) -> tuple[str, str] | None:
    """Why Rota does not run what it took over, and what to do; None if it does."""
    back = "pass --give-back to return it to beat, then --take-over to start it here"
    if schedule is None:
        return "its schedule was removed in Rota", back
    if schedule.origin.is_retired:
        return "its schedule was retired in Rota", back
    if not schedule.is_enabled:
        return "its schedule is disabled in Rota", (
            f"`rota schedules enable {schedule_id}` starts it here, and --give-back returns it to beat"
        )
    return None


def _said(record: TakeOver, schedule: Schedule) -> str:
    ran = "beat has not run it" if record.never_ran else f"beat ran it up to {_instant(record.through)}"
    next_at = "none" if schedule.next_at is None else _instant(schedule.next_at)
    return f"{ran}; Rota's next run: {next_at}"


def _instant(micros: int) -> str:
    return f"{datetime_of(micros):%Y-%m-%d %H:%M:%S} UTC"
