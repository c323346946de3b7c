"""Shows a schedule: as a row of a list, and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.cli.change_list import change_lines
from rota.cli.columns import Column
from rota.cli.output import aligned, coloured, heading
from rota.cli.words import beside, coarse, first_line, instant, listed, local, printable, relative, span
from rota.errors import UnknownZone
from rota.inspector.calls import call
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.reading import all_schedules
from rota.model.micros import SECOND, datetime_of, span_text
from rota.model.schedules.firing import jitter_of
from rota.model.schedules.occurrence import RETRYING
from rota.model.schedules.origin import describe_origin
from rota.store.contract import ScheduleFilter
from rota.triggers import trigger_from_text
from rota.triggers.every import Every
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from rota.inspector.changes import Change
    from rota.model.schedules.schedule import Pause, ScheduleSpec
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store

SHOWN_RUNS = 5
SHOWN_CHANGES = 3
OVERLAPS = {
    "skip": "a run that is due while the last one goes on is skipped",
    "allow": "runs may overlap",
    "queue": "a run that is due while the last one goes on waits for it",
    "cancel": "a run that is due cancels the last one",
}
CATCHUPS = {
    "latest": "of missed runs, the latest is made up for",
    "skip": "missed runs are not made up for",
    "all": "every missed run is made up for",
}


class ShownSchedule(KnownSchedule):
    """A schedule with the words of the screen."""

    def explained(self) -> str:
        """What it does. An interval counts from its schedule's creation, which need not be said each time."""
        rule = trigger_from_text(self.record.spec.trigger)
        return rule.explain() if isinstance(rule, Every) else super().explained()

    def call(self, redaction: Redaction) -> str:
        made = redaction.call(self.record.spec.payload.encode())
        return call(self.record.spec.task, made.args, made.kwargs)


def read_schedules(store: Store, tenant: str | None = None) -> Iterator[ShownSchedule]:
    """All schedules by id, or all of a tenant, read a page at a time."""
    now = store.now()
    return (ShownSchedule(record, now) for record in all_schedules(store, ScheduleFilter(tenant=tenant)))


def columns(now: datetime, *, has_tenants: bool = False) -> list[Column[ShownSchedule]]:
    tenant: Column[ShownSchedule] = Column("tenant", lambda shown: shown.record.spec.tenant or "-", dropped=2)
    return [
        Column("schedule", lambda shown: shown.id),
        *([tenant] if has_tenants else []),
        Column("runs", lambda shown: shown.sentence, "wrap"),
        Column("next run", lambda shown: next_words(shown, now), "wrap at commas"),
        Column("last", lambda shown: _last_words(shown, now), "wrap at commas", dropped=1),
        Column("state", _state_words, "wrap"),
    ]


def next_words(shown: ShownSchedule, now: datetime) -> str:
    """2026-10-14 09:00 EDT, in 5 m"""
    if shown.next_run is None:
        return "-"
    late = (now - shown.next_run).total_seconds()
    away = f"overdue by {coarse(late)}" if late >= 1 else relative(shown.next_run, now)
    return f"{local(shown.next_run)}, {away}"


def page(
    shown: ShownSchedule, runs: list[datetime], changes: Sequence[Change], now: datetime, redaction: Redaction
) -> Iterator[str]:
    """Everything about one schedule."""
    yield f"{heading(shown.id)}  {coloured(shown.state)}"
    yield ""
    yield f"  {shown.sentence}"
    yield f"  {shown.call(redaction)}"
    yield ""
    yield from aligned(list(_rows(shown, now)), indent="  ")
    if runs:
        yield ""
        yield heading("next runs")
        yield from aligned([[local(run), instant(run), relative(run, now)] for run in runs], indent="  ")
    if shown.record.last.error:
        yield ""
        yield heading("last error")
        yield from (f"  {printable(line)}" for line in shown.record.last.error.splitlines())
    yield from change_lines(changes, now)


def _rows(shown: ShownSchedule, now: datetime) -> Iterator[list[str]]:
    record, spec = shown.record, shown.record.spec
    if spec.description:
        yield ["about", printable(spec.description)]
    if shown.problem:
        yield ["problem", printable(shown.problem)]
    if record.fault:
        yield ["not fired", f"the store failed: {first_line(record.fault)}"]
    for pause in (record.pause, record.tenant_pause):
        if pause is not None:
            yield ["paused", f"since {beside(datetime_of(pause.at), now)}, {pause_words(pause)}"]
    yield ["next run", next_words(shown, now)]
    yield ["last run", _last_long(shown, now)]
    counted = f" ({record.run_count:,} of {spec.max_runs:,} by its trigger)" if spec.max_runs else ""
    yield ["runs", f"{record.runs:,}{counted}"]
    yield ["rule", spec.trigger if " tz=" in spec.trigger else f"{spec.trigger} tz={spec.tz}"]
    yield ["overlap", f"{spec.overlap}: {OVERLAPS[spec.overlap]}"]
    yield ["catch-up", f"{spec.catchup}: {CATCHUPS[spec.catchup]}"]
    if spec.jitter:
        shift, most = jitter_of(record) / SECOND, span_text(spec.jitter)
        yield ["jitter", f"{shift:,.0f} s after each of its times, always the same (of up to {most})"]
    if spec.lookahead:
        yield ["look-ahead", f"jobs are made {span_text(spec.lookahead)} before they are due"]
    yield ["queue", f"{spec.queue}, priority {spec.priority}"]
    if spec.key:
        held = f", held for {span_text(spec.key_for)}" if spec.key_for else ""
        yield ["unique key", f"{printable(spec.key)}{held}"]
    if spec.tenant:
        yield ["tenant", _tenant_words(spec)]
    yield from _bounds(spec, now)
    yield ["defined by", describe_origin(record.origin)]
    yield ["created", beside(datetime_of(record.created_at), now)]


def _bounds(spec: ScheduleSpec, now: datetime) -> Iterator[list[str]]:
    for title, name, at in (("starts", "start", spec.start), ("ends", "end", spec.end)):
        if at is not None:
            day = _day_in_zone(spec, at) if name in spec.day_bounds else ""
            yield [title, f"{day} ({relative(datetime_of(at), now)})" if day else beside(datetime_of(at), now)]


def _day_in_zone(spec: ScheduleSpec, at: int) -> str:
    """Empty if the zone is unknown: then the instant is all that can be shown."""
    try:
        return f"{find_zone(spec.tz).datetime_of(at // SECOND):%Y-%m-%d} in its zone"
    except UnknownZone:
        return ""


def _last_words(shown: ShownSchedule, now: datetime) -> str:
    last = shown.record.last
    at = last.finished_at if last.status and last.status != RETRYING else last.enqueued_at or last.finished_at
    if at is None:
        return "never"
    return f"{last.status or 'enqueued'}, {relative(datetime_of(at), now)}"


def _last_long(shown: ShownSchedule, now: datetime) -> str:
    last = shown.record.last
    if last.enqueued_at is None and last.finished_at is None:
        return "never"
    made = f"enqueued {beside(datetime_of(last.enqueued_at), now)}" if last.enqueued_at else ""
    has_ended = last.status != RETRYING  # else the duration is that of the run before
    took = f" in {span(last.duration / SECOND)}" if last.duration is not None and has_ended else ""
    ended = f"{last.status}{took}" if last.status else ""
    job = f"job {last.job_id}" if last.job_id else ""
    return ", ".join(words for words in (ended, made, job) if words)


def _state_words(shown: ShownSchedule) -> str:
    silence = shown.record.silence
    if shown.state == "paused" and silence is not None:
        return pause_words(silence)
    return f"broken: {first_line(shown.problem)}" if shown.problem else shown.state


def _tenant_words(spec: ScheduleSpec) -> str:
    """acme, whose tz and queue it follows"""
    names = listed([name for name in ("tz", "queue", "priority") if name in spec.follows])
    return f"{spec.tenant}, whose {names} it follows" if names else f"{spec.tenant}; tz, queue and priority are its own"


def pause_words(pause: Pause) -> str:
    """Who stopped it, why, and until when."""
    until = f" (until {instant(datetime_of(pause.until))})" if pause.until else ""
    return printable(f"{pause.words}{until}")
