"""Shows the first page: the state of the system in one sentence, the numbers, the next runs and the last failures."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rota.inspector.coming import next_hour, next_runs
from rota.inspector.facts.failure import read_failures
from rota.inspector.facts.series import read_series
from rota.inspector.standing import MOST_NAMED, read_standing
from rota.web.pages.charts import latency, ribbon, throughput
from rota.web.pages.page import Page, View, Visit
from rota.web.pages.words import with_code

if TYPE_CHECKING:
    from rota.inspector.coming import NextRun
    from rota.inspector.facts.failure import FailureFacts, FailuresFacts
    from rota.inspector.facts.series import SeriesFacts
    from rota.inspector.standing import StandingFacts

DAY, SPANS = "24h", ("1h", "6h", "24h")
NEXT = 10
FAILURES = 8


def show_home(visit: Visit) -> View:
    store = visit.app.open()
    standing = read_standing(store, visit.readings.summary.get())
    day = read_series(store, DAY)
    asked = visit.query.get("span", "")
    asked = asked if asked in SPANS else usual_span(day)
    series = day if asked == DAY else read_series(store, asked)
    values = home_values(visit, standing, next_runs(store, NEXT), read_failures(store, DAY))
    values |= chart_values(visit, series, day, asked)
    values["hour"] = hour_values(visit, standing, next_hour(store))
    return View(template="home.html", values=values)


def usual_span(day: SeriesFacts) -> str:
    """An hour for a system that has just begun to work, so that its chart shows something; else a day."""
    recent = day.points[-max(1, 3_600 // day.step_seconds) :]
    is_young = all(point.waited.count == 0 for point in day.points[: -len(recent)])
    return SPANS[0] if is_young else DAY


def hour_values(visit: Visit, standing: StandingFacts, minutes: list[int] | None) -> dict[str, Any] | None:
    """The runs of the next hour as a strip; none if there are none, or too many to compute here."""
    if not minutes or not any(minutes):
        return None
    strip = ribbon(minutes)
    ticks = [standing.at + timedelta(minutes=number) for number in (15, 30, 45, 60)]
    busiest = standing.at + timedelta(minutes=strip["most_in"])
    said = {"n": strip["total"], "at": visit.words.instant(busiest, "minutes")}
    return {**strip, "says": said, "ticks": [visit.words.instant(tick, "tick") for tick in ticks]}


def chart_values(visit: Visit, series: SeriesFacts, day: SeriesFacts, asked: str) -> dict[str, Any]:
    """The two charts, and how many jobs ended within a day."""
    return {
        "throughput": throughput(series),
        "latency": latency(series),
        "spans": [(name, visit.url("/", span=name), name == asked) for name in SPANS],
        "ended": day.whole.succeeded + day.whole.failed + day.whole.cancelled,
    }


def home_values(visit: Visit, standing: StandingFacts, runs: list[NextRun], failures: FailuresFacts) -> dict[str, Any]:
    return {
        "standing": standing,
        "tone": _tone(standing),
        "sentence": _sentence(visit, standing),
        "more": _more(visit, standing, failures.count),
        "title": _title(visit, standing),
        "runs": [_run(run, standing) for run in runs],
        "failed": failures.count,
        "failed_more": failures.truncated,
        "failures": [_failure(cause) for cause in failures.items[:FAILURES]],
    }


def _tone(standing: StandingFacts) -> str:
    match standing.standing:
        case "well":
            return "ok"
        case "empty":
            return "still"
        case "late" | "sealed" | "alerting":
            return "warn"
        case _:
            return "bad"


def _sentence(visit: Visit, standing: StandingFacts) -> Markup:
    text, schedules = visit.words.text, standing.schedules
    name = standing.standing
    match name:
        case "failing":
            first = schedules.failing[0]
            well = standing.on_time
            if len(schedules.failing) == 1:
                since = visit.words.instant(first.since, "minutes") if first.since else None
                key = "standing.failing_since" if since else "standing.failing_always"
                linked = _schedule_link(visit, first.schedule_id)
                return text(key, well=well, total=schedules.on, schedule=linked, since=since)
            return text("standing.failing_many", n=len(schedules.failing), well=well, total=schedules.on)
        case "broken":
            return text("standing.broken", n=len(schedules.broken), first=_schedule_link(visit, schedules.broken[0]))
        case "late":
            return text("standing.late", n=standing.late, worst=visit.words.span(standing.worst_seconds))
        case "alerting":
            return text("standing.alerting", n=standing.alerts)
        case "well":
            return text("standing.well" if schedules.on else "standing.well_without", n=schedules.on)
        case _:
            return text(f"standing.{name}")


def _more(visit: Visit, standing: StandingFacts, failed: int) -> Markup:
    """What is behind the first sentence, what to do, and what the first sentence does not count."""
    said = [_behind(visit, standing, failed)]
    if standing.schedules.paused:
        said.append(visit.words.text("standing.paused", n=standing.schedules.paused))
    if standing.alerts and standing.standing != "alerting":
        said.append(_link(visit, "/alerts", visit.words.text("standing.alerting", n=standing.alerts)))
    return Markup(" ").join(said)


def _behind(visit: Visit, standing: StandingFacts, failed: int) -> Markup:
    text, schedules = visit.words.text, standing.schedules
    match standing.standing:
        case "failing":
            names = [_schedule_link(visit, one.schedule_id) for one in schedules.failing[:MOST_NAMED]]
            if len(schedules.failing) == 1:
                return text("standing.failing_why", error=schedules.failing[0].error)
            return text("standing.failing_names", names=Markup(", ").join(names))
        case "no_scheduler" | "no_worker":
            commands = {name: with_code(f"`rota {name}`") for name in ("run", "scheduler", "worker")}
            is_worker = standing.standing == "no_worker"
            since = standing.last_worker_at if is_worker else standing.last_scheduler_at
            if since is None:
                return text(f"standing.{standing.standing}_never", **commands)
            return text(f"standing.{standing.standing}_more", since=visit.words.time(since), **commands)
        case "late":
            return text("standing.late_more")
        case "alerting":
            return text("standing.alerting_more", alerts=_link(visit, "/alerts", text("nav.alerts")))
        case "empty":
            return text("standing.empty_more")
        case "sealed":
            return text("standing.sealed_more")
        case _:
            rest = text("standing.well_failed", n=failed) if failed else text("standing.well_quiet")
            return Markup(" ").join((text("standing.well_more", n=standing.nodes), rest))


def _title(visit: Visit, standing: StandingFacts) -> Markup:
    if standing.standing == "failing":
        return visit.words.text("standing.title_failing", n=len(standing.schedules.failing))
    if standing.standing == "alerting":
        return visit.words.text("standing.alerting", n=standing.alerts)
    return visit.words.text(f"standing.title_{standing.standing}")


def _schedule_link(visit: Visit, schedule_id: str) -> Markup:
    return _link(visit, f"/schedules/{schedule_id}", schedule_id)


def _link(visit: Visit, path: str, shown: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(visit.url(path), shown)


def _run(run: NextRun, standing: StandingFacts) -> dict[str, Any]:
    return {
        "schedule": run.schedule_id,
        "at": run.at,
        "in": (run.at - standing.at).total_seconds(),
        "queue": run.queue,
        "takes": run.usual_seconds,
        "overdue": run.overdue_for,
        "cause": run.cause,
        "since": run.since,
    }


def _failure(cause: FailureFacts) -> dict[str, Any]:
    kind, _, rest = cause.error.partition(":")
    return {
        "id": cause.id,
        "kind": kind,
        "rest": rest.strip(),
        "tasks": ", ".join(cause.tasks),
        "place": cause.place,
        "n": cause.count,
        "first": cause.first_at,
        "last": cause.last_at,
        "job": cause.job_id,
    }


PAGES = (Page(path="/", role="read", handle=show_home),)
