"""Shows the agenda: a day or a week of all schedules as lanes, past and future, under their common load."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rota.errors import BadOption
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.lanes import Load, Window, read_lanes, read_load
from rota.inspector.occurrences import may_run_by
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_index import Terms, terms_from, trouble_first
from rota.model.micros import datetime_of, micros_of
from rota.web.pages.page import Page, View, Visit
from rota.web.pages.rule_words import sentence_of
from rota.web.pages.said_words import say_error

if TYPE_CHECKING:
    from rota.inspector.lanes import Bar, Lane
    from rota.inspector.schedule_index import ScheduleBrief
    from rota.store.contract import Store

LANES = 50  # on one page
WIDTH = 336  # units of the scale: half an hour each in a week
THINNEST = 1.0  # units of a bar
FARTHEST = 366 * 5  # days from today that a window may lie
SKIPPED_HEALTHS = {"broken", "disabled", "retired", "finished"}  # nothing of them is to come


def show_agenda(visit: Visit) -> View:
    store, search = visit.app.open(), visit.query.get("q", "").strip()[:1_000]
    now = store.now()
    today = datetime_of(now).astimezone(visit.words.zone).date()
    is_day, first = chosen_days(visit.query.get("day", ""), visit.query.get("week", ""), today)
    bounds = [_midnight(visit, first + timedelta(days=number)) for number in range(2 if is_day else 8)]
    window = Window(bounds[0], bounds[-1], now)
    problem, terms = "", Terms()
    try:
        terms = terms_from(search)
    except BadOption as err:
        problem = say_error(visit.words, err)
    briefs = visit.readings.index.briefs(store)
    found = trouble_first(terms.among(briefs))
    page = _page(visit.query.get("page", ""), len(found))
    shown = found[(page - 1) * LANES : page * LANES]
    records = {one.id: one for one in store.get_schedules([brief.id for brief in shown])} if shown else {}
    lanes = read_lanes(store, [records[brief.id] for brief in shown if brief.id in records], window)
    shared = (terms.words, tuple(sorted(terms.fields.items())), window.start, window.end)
    load = visit.readings.loads.get(shared, lambda: _load(store, terms, found, window))
    values = agenda_values(visit, window, bounds, lanes, load)
    values |= _places_to_go(visit, first, today, search, is_day=is_day)
    values |= {
        "search": search, "problem": problem, "queue": terms.fields.get("queue", ""), "has_schedules": bool(briefs),
        "total": len(found), "page": page, "is_day": is_day,
        "before": _url(visit, first, search, page - 1, is_day=is_day) if page > 1 else "",
        "after": _url(visit, first, search, page + 1, is_day=is_day) if page * LANES < len(found) else "",
        "first_shown": (page - 1) * LANES + 1,
    }  # fmt: skip
    return View(template="agenda.html", values=values)


def chosen_days(day: str, week: str, today: date) -> tuple[bool, date]:
    """Whether one day is shown, and the first day of the window. A date that makes no sense is today."""
    asked = _date(day) if day else _date(week)
    if asked is None or abs((asked - today).days) > FARTHEST:
        asked = today
    return (True, asked) if day else (False, asked - timedelta(days=asked.weekday()))


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def _midnight(visit: Visit, day: date) -> int:
    return micros_of(datetime(day.year, day.month, day.day, tzinfo=visit.words.zone))


def _page(text: str, total: int) -> int:
    last = max(1, -(-total // LANES))
    return min(last, max(1, int(text))) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def _load(store: Store, terms: Terms, found: list[ScheduleBrief], window: Window) -> Load:
    wanted = {brief.id for brief in found if brief.health not in SKIPPED_HEALTHS}
    near = (one for one in all_schedules(store) if one.id in wanted and may_run_by(one, window.end))
    return read_load(store, near, window, terms.fields.get("queue"), is_all=not terms.words and not terms.fields)


def agenda_values(visit: Visit, window: Window, bounds: list[int], lanes: list[Lane], load: Load) -> dict[str, Any]:
    start, end = window.start, window.end
    per_unit = (end - start) / WIDTH

    def x(at: int) -> float:
        return round((at - start) / per_unit, 2) if start < at < end else WIDTH if at >= end else 0.0

    return {
        "width": WIDTH,
        "days": _heads(visit, bounds, window),
        "grid": _grid(visit, bounds, x),
        "now_x": x(window.now) if window.start < window.now < window.end else None,
        "load": load,
        "chart": _chart(load),
        "verdict": _verdict(visit, load),
        "lanes": [_lane(visit, lane, window, x) for lane in lanes],
        "zone": visit.words.zone.key,
    }


def _heads(visit: Visit, bounds: list[int], window: Window) -> list[dict[str, Any]]:
    words = visit.words
    if len(bounds) == 2:
        return [{"name": f"{hour:02}", "minutes": ":00", "rest": "", "is_today": False} for hour in range(0, 24, 3)]
    heads = []
    for start, end in pairwise(bounds):
        local = datetime_of(start).astimezone(words.zone)
        heads.append({
            "name": words.weekday(local),
            "minutes": "",
            "rest": words.date(local),
            "is_today": start <= window.now < end,
        })  # fmt: skip
    return heads


def _grid(visit: Visit, bounds: list[int], x: Any) -> dict[str, str]:
    """The nights as areas, and the days or hours as lines."""
    nights: list[str] = []
    for start in bounds[:-1]:
        local = datetime_of(start).astimezone(visit.words.zone)
        for low, high in ((0, 7), (19, 24)):
            ends = [
                x(micros_of(local.replace(hour=hour)) if hour < 24 else _next_midnight(visit, local))
                for hour in (low, high)
            ]
            nights.append(f"M{ends[0]} 0h{round(ends[1] - ends[0], 2)}v100h-{round(ends[1] - ends[0], 2)}z")
    if len(bounds) == 2:
        local = datetime_of(bounds[0]).astimezone(visit.words.zone)
        lines = [micros_of(local.replace(hour=hour)) for hour in range(0, 24, 3)]
    else:
        lines = bounds[:-1]
    return {"nights": "".join(nights), "lines": "".join(f"M{x(at)} 0v100" for at in lines)}


def _next_midnight(visit: Visit, local: datetime) -> int:
    return _midnight(visit, local.date() + timedelta(days=1))


def _chart(load: Load) -> dict[str, Any]:
    """The load as paths of 0 to 100; what goes over the slots is drawn again, in red."""
    top = max([load.slots * 1.25, *load.coming, *load.past, 1.0])
    wide = WIDTH / max(1, len(load.coming))

    def path(levels: list[float], floor: float = 0.0, least: float = 0.0) -> str:
        parts = []
        for place, level in enumerate(levels):
            if level > floor + least:
                low, high = 100 - 100 * floor / top, 100 - 100 * level / top
                parts.append(f"M{round(place * wide, 2)} {low:.1f}V{high:.1f}h{wide:.2f}V{low:.1f}z")
        return "".join(parts)

    over = path(load.coming, float(load.slots), 0.5) if load.slots else ""
    return {
        "past": path(load.past),
        "coming": path(load.coming),
        "over": over,
        "line": round(100 - 100 * load.slots / top, 1),
    }


def _verdict(visit: Visit, load: Load) -> dict[str, Any]:
    text = visit.words.text
    if load.peak_at is None:
        return {"tone": "", "says": text("agenda.nothing")}
    at = visit.words.instant(datetime_of(load.peak_at), "minutes")
    if not load.slots:
        return {"tone": "warn", "says": text("agenda.no_places", n=load.peak, at=at)}
    if load.peak > load.slots:
        return {"tone": "bad", "says": text("agenda.over", peak=load.peak, slots=load.slots, at=at)}
    return {"tone": "", "says": text("agenda.fits", n=load.peak, slots=load.slots, at=at)}


_SHAPES = {
    "ok": ((30, 40),),
    "bad": ((8, 36), (56, 36)),
    "run": ((30, 40),),
    "late": ((50, 30),),
    "skip": ((30, 40),),
    "next": ((30, 40),),
}


def _lane(visit: Visit, lane: Lane, window: Window, x: Any) -> dict[str, Any]:
    """A lane's bars as one path for each tone; failed is broken in two, late is short."""
    parts: dict[str, list[str]] = {}
    for bar in lane.bars:
        parts.setdefault(bar.tone, []).append(_bar(bar, x))
    paths = {tone: "".join(some) for tone, some in parts.items()}
    band = _band(lane, window, x) if lane.is_often else None
    counts = {tone: lane.counts.get(tone, 0) for tone in ("ok", "bad", "late", "skip", "run")}
    key = "agenda.lane_often" if lane.is_often else "agenda.lane"
    return {
        "id": lane.schedule.id,
        "sentence": sentence_of(visit.words, KnownSchedule(lane.schedule, window.now)),
        "state": lane.state,
        "problem": lane.problem,
        "failing": lane.schedule.last.is_failing and lane.state == "on",
        "paths": [(tone, paths[tone]) for tone in ("ok", "skip", "next", "late", "run", "bad") if tone in paths],
        "band": band,
        "label": visit.words.text(
            key, id=lane.schedule.id, ran=counts["ok"], failed=counts["bad"], skipped=counts["skip"], coming=lane.coming
        ),
        "counts": counts,
        "is_uncounted": lane.is_uncounted,
        "is_often": lane.is_often,
        "coming": lane.coming,
        "next_run": lane.next_run,
    }


def _bar(bar: Bar, x: Any) -> str:
    low = x(bar.at)
    wide = THINNEST if bar.through <= bar.at else max(THINNEST, round(x(bar.through) - low, 2))
    return "".join(f"M{low} {top}h{wide}v{high}h-{wide}z" for top, high in _SHAPES[bar.tone])


def _band(lane: Lane, window: Window, x: Any) -> dict[str, float]:
    begun = x(lane.schedule.created_at)
    now = x(window.now)
    first = x(micros_of(lane.next_run)) if lane.next_run else WIDTH
    last = x(lane.schedule.spec.end) if lane.schedule.spec.end is not None else WIDTH
    return {
        "x": begun,
        "w": max(0.0, round(now - begun, 2)),
        "next_x": first,
        "next_w": max(0.0, round(last - first, 2)),
    }


def _places_to_go(visit: Visit, first: date, today: date, search: str, *, is_day: bool) -> dict[str, Any]:
    step = timedelta(days=1 if is_day else 7)
    is_other = first > today or first + timedelta(days=7) <= today
    noon = datetime(first.year, first.month, first.day, 12, tzinfo=visit.words.zone)
    return {
        "day_url": _url(visit, first if is_other else today, search, 1, is_day=True),
        "week_url": _url(visit, first, search, 1, is_day=False),
        "earlier": _url(visit, first - step, search, 1, is_day=is_day),
        "later": _url(visit, first + step, search, 1, is_day=is_day),
        "this": _url(visit, today, search, 1, is_day=is_day),
        "from_day": visit.words.instant(noon, "full").partition(",")[0],
        "chosen": first.isoformat(),
    }  # fmt: skip


def _url(visit: Visit, first: date, search: str, page: int, *, is_day: bool) -> str:
    window = {"day" if is_day else "week": first.isoformat()}
    return visit.url("/agenda", q=search, page=page if page > 1 else "", **window)


PAGES = (Page(path="/agenda", role="read", handle=show_agenda),)
