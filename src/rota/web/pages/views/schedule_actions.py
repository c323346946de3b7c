"""Runs, pauses, resumes, enables, disables and removes one schedule. Actions that destroy something ask first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.errors import BadOption
from rota.inspector.wall_times import time_from
from rota.model.jobs.job import State
from rota.model.micros import datetime_of
from rota.store.contract import JobFilter
from rota.triggers.zone import find_zone
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.rule_words import origin_words
from rota.web.pages.views.schedule import SchedulePath, read_schedule, zone_of

if TYPE_CHECKING:
    from datetime import datetime

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store


def act_on_schedule(visit: Visit) -> GoTo:
    """Run it now, pause, resume, enable, disable or remove it."""
    schedule_id, form, schedules = visit.path["schedule_id"], visit.form, visit.app.schedules
    verb, back = form.get("verb"), f"/schedules/{schedule_id}"
    values: dict[str, str | int] = {"id": schedule_id}
    match verb:
        case "run":
            job = schedules.run_now(schedule_id, by=visit.by)
            key, values = "schedule_held" if job.existed else "schedule_run", {**values, "job": job.id}
        case "pause":
            until = _until(visit, schedule_id)
            schedules.pause(schedule_id, reason=form.get("reason").strip()[:500], until=until, by=visit.by)
            key = "schedule_paused"
        case "resume":
            schedules.resume(schedule_id, by=visit.by)
            key = "schedule_resumed"
        case "enable":
            schedules.enable(schedule_id, by=visit.by)
            key = "schedule_enabled"
        case "disable":
            schedules.disable(schedule_id, by=visit.by)
            key = "schedule_disabled"
        case "remove":
            schedules.remove(schedule_id, by=visit.by, force=form.get("force") == "1")
            key, back = "schedule_removed", "/schedules"
        case _:
            raise BadOption(f"{verb!r} is nothing that can be done with a schedule")
    visit.readings.index.look_again(visit.app.open(), schedule_id)
    if form.get("from") == "/schedules":
        back = "/schedules"
    return GoTo(path=back, flash=Flash(key=key, values=values, tone="warn" if key == "schedule_held" else "ok"))


def _until(visit: Visit, schedule_id: str) -> datetime | None:
    """The end of a pause, typed in the schedule's zone."""
    text = visit.form.get("until").strip()
    if not text:
        return None
    found = visit.app.open().get_schedules([schedule_id])
    zone = zone_of(found[0]) if found else find_zone("UTC")
    return time_from(text, zone, datetime_of(visit.app.open().now()))


def ask_to_pause(visit: Visit) -> View:
    schedule = read_schedule(visit)
    return View(template="confirm_schedule.html", values={"verb": "pause", **confirm_values(visit, schedule)})


def ask_to_remove(visit: Visit) -> View:
    schedule = read_schedule(visit)
    return View(template="confirm_schedule.html", values={"verb": "remove", **confirm_values(visit, schedule)})


def confirm_values(visit: Visit, schedule: Schedule) -> dict[str, Any]:
    waiting = waiting_jobs(visit.app.open(), schedule)
    return {
        "id": schedule.id,
        "tz": schedule.spec.tz,
        "waiting": waiting,
        "runs_made": schedule.runs,
        "origin_kind": schedule.origin.kind,
        "origin_words": origin_words(visit.words, schedule.origin),
        "is_retired": schedule.origin.is_retired,
    }


def waiting_jobs(store: Store, schedule: Schedule) -> int:
    """How many of its jobs have not begun; at most 200 are counted."""
    states = (State.QUEUED, State.SCHEDULED, State.HELD)
    return len(store.list_jobs(JobFilter(states=states, schedule_id=schedule.id), limit=200).items)


_ONE = "/schedules/{schedule_id}"
PAGES = (
    Page(path=f"{_ONE}/pause", role="operate", handle=ask_to_pause, params=SchedulePath),
    Page(path=f"{_ONE}/remove", role="operate", handle=ask_to_remove, params=SchedulePath),
    Page(method="POST", path=f"{_ONE}/act", role="operate", handle=act_on_schedule, params=SchedulePath),
)
