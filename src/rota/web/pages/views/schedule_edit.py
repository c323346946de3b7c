"""Shows the editor of a schedule: a form, and a preview of what the server makes of it before it is saved.

Of two operators who edit one schedule, the second is shown what the first changed, and nothing that either typed is
lost: fields that only one of them touched have that one's value.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rota.app import internals
from rota.errors import BadTrigger, RotaError, VersionConflict
from rota.sentences import sentence
from rota.triggers.zone import find_zone
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.rule_words import origin_words, rule_sentence
from rota.web.pages.schedule_call import AS_JSON, CallProblem, call_values, sent_values
from rota.web.pages.schedule_form import (
    DEFAULTS,
    FIELDS,
    FormProblem,
    body_of,
    only_times,
    patch_of,
    stored_values,
    values_of,
)
from rota.web.pages.views.schedule import SchedulePath, read_schedule
from rota.web.pages.why_words import warned
from rota.web.refusals import Refusal, misfit, refusal_of
from rota.web.schedule_body import (
    NewScheduleBody,
    ScheduleBody,
    SchedulePatch,
    keywords_of,
    patched,
    read_when,
)
from rota.web.schedule_body import (
    read_schedule as read_body,
)
from rota.web.types import Body

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.inspector.facts.preview import PreviewFacts, TimesFacts
    from rota.model.schedules.schedule import Schedule
    from rota.web.pages.schedule_form import Values
    from rota.web.pages.words import Words

R = TypeVar("R")
B = TypeVar("B", bound=Body)

TRIES = 3
MOST_TASKS = 500  # names that a field offers


def show_new(visit: Visit) -> View:
    given = {name: visit.query[name][:300] for name in ("task", "queue") if visit.query.get(name)}
    return _new_view(visit, {**DEFAULTS, **given}, visit.query.get("id", "")[:127], None)


def make_schedule(visit: Visit) -> View | GoTo:
    name = visit.form.get("id").strip()
    try:
        mine = sent_values(visit, None)
    except CallProblem as problem:
        return _new_view(visit, values_of(visit.form), name, problem)
    if "preview" in visit.form:
        return _new_view(visit, mine, name, None)
    try:
        made = _make(visit, mine, name)
    except FormProblem as problem:
        return _new_view(visit, mine, name, problem)
    visit.readings.index.look_again(visit.app.open(), made)
    return GoTo(path=f"/schedules/{made}", flash=Flash(key="schedule_made", values={"id": made}))


def _make(visit: Visit, mine: Values, name: str) -> str:
    body = _fitted({**body_of(mine, _zone(visit, mine)), "id": name}, NewScheduleBody)
    if visit.app.open().get_schedules([body.id]):
        raise FormProblem("id", str(visit.words.text("edit.exists", id=body.id)))
    request, trigger, keywords = _read(lambda: read_body(visit.app, body))
    _read(lambda: visit.app.schedules.put(body.id, request, trigger, by=visit.by, expect_version=0, **keywords))
    return body.id


def show_edit(visit: Visit) -> View:
    schedule = read_schedule(visit)
    values = stored_values(visit.app, schedule)
    return _edit_view(visit, schedule, values, values)


def save_schedule(visit: Visit) -> View | GoTo:
    schedule = read_schedule(visit)
    now = stored_values(visit.app, schedule)
    base = values_of(visit.form, "base.") if "base.kind" in visit.form else now
    try:
        mine = sent_values(visit, base)
    except CallProblem as problem:
        return _edit_view(visit, schedule, {**values_of(visit.form), **_call_of(base)}, base, problem)
    if "preview" in visit.form:
        return _edit_view(visit, schedule, mine, base)
    for _ in range(TRIES):  # a firing in between raises the version, and changes nothing that is edited here
        if now != base:
            return _conflict(visit, schedule, mine, base, now)
        try:
            if not _save(visit, schedule, mine, base):
                return GoTo(
                    path=f"/schedules/{schedule.id}", flash=Flash(key="schedule_same", values={"id": schedule.id})
                )
            visit.readings.index.look_again(visit.app.open(), schedule.id)
            return GoTo(path=f"/schedules/{schedule.id}", flash=Flash(key="schedule_saved", values={"id": schedule.id}))
        except VersionConflict:
            schedule = read_schedule(visit)
            now = stored_values(visit.app, schedule)
        except FormProblem as problem:
            return _edit_view(visit, schedule, mine, base, problem)
    raise VersionConflict(
        sentence("refused.schedule_changing", "schedule '{schedule}' kept changing; try again", schedule=schedule.id)
    )


def _call_of(base: Values) -> Values:
    return {name: base[name] for name in AS_JSON}


def _save(visit: Visit, schedule: Schedule, mine: Values, base: Values) -> bool:
    """Change what was changed in the form; False if nothing was."""
    patch = _fitted(patch_of(mine, base, schedule.spec.tz), SchedulePatch)
    if patch == SchedulePatch():
        return False
    request, trigger, keywords = _read(lambda: patched(visit.app, schedule, patch))
    put = visit.app.schedules.put
    _read(lambda: put(schedule.id, request, trigger, by=visit.by, expect_version=schedule.version, **keywords))
    return True


def _conflict(visit: Visit, schedule: Schedule, mine: Values, base: Values, now: Values) -> View:
    """Somebody else has changed it meanwhile: their values beside mine, and a form that holds both changes."""
    merged = {name: mine[name] if mine[name] != base[name] else now[name] for name in FIELDS}
    theirs = [name for name in FIELDS if now[name] != base[name]]
    changes = visit.app.schedules.changes(schedule.id, limit=1).items
    last = changes[0] if changes else None
    rows = [
        {"name": name, "base": base[name], "theirs": now[name], "mine": mine[name], "is_both": mine[name] != base[name]}
        for name in theirs
    ]
    conflict = {"rows": rows, "by": last.by if last else "", "at": last.at if last else None}
    return _edit_view(visit, schedule, merged, now, conflict=conflict)


# What is shown.


def _new_view(visit: Visit, values: Values, name: str, problem: FormProblem | None) -> View:
    shown = {"id": name, "is_new": True, "origin": None, "base": {}, "conflict": None, "zone": _zone(visit, values)}
    return _view(visit, shown, values, problem, lambda: _preview_of_new(visit, values))


def _edit_view(
    visit: Visit,
    schedule: Schedule,
    values: Values,
    base: Values,
    problem: FormProblem | None = None,
    conflict: dict[str, Any] | None = None,
) -> View:
    is_own = schedule.origin.is_by_hand
    shown = {
        "id": schedule.id,
        "is_new": False,
        "origin": None if is_own else origin_words(visit.words, schedule.origin),
        "base": base,
        "conflict": conflict,
        "zone": schedule.spec.tz,
    }
    return _view(visit, shown, values, problem, lambda: _preview_of_edit(visit, schedule, values, base))


def _view(
    visit: Visit,
    shown: dict[str, Any],
    values: Values,
    problem: FormProblem | None,
    preview: Callable[[], PreviewFacts],
) -> View:
    seen, preview_problem = None, problem
    try:
        seen = preview()
    except FormProblem as err:
        preview_problem = problem or err
    names = internals(visit.app).registry.names()
    data = {
        **shown,
        "f": values,
        "problem": problem,
        "preview": None if seen is None else preview_values(visit.words, seen),
        "preview_problem": preview_problem,
        "is_time_missing": problem is None and values["kind"] == "once" and not values["once"],
        "tasks": list(names)[:MOST_TASKS],
        **call_values(visit, values, problem),
        "signature": _signature(visit, values["task"]),
        "changed": [name for name in FIELDS if shown["base"] and values[name] != shown["base"][name]],
    }
    status = 409 if shown["conflict"] else 422 if problem else 200
    return View(template="schedule_edit.html", values=data, status=status)


def preview_values(words: Words, seen: PreviewFacts) -> dict[str, Any]:
    """The runs before and after as one list: what stays, what comes, what goes."""
    before = {run.utc for run in seen.before.runs} if seen.before else set()
    after = {run.utc for run in seen.runs}
    rows = [
        {
            "at": datetime.fromisoformat(run.local),
            "utc": run.utc,
            "change": "added" if seen.before and run.utc not in before else "",
        }
        for run in seen.runs
    ]
    horizon = max(after, default=None)
    gone = [
        run
        for run in (seen.before.runs if seen.before else [])
        if run.utc not in after and (horizon is None or run.utc <= horizon)
    ]
    rows += [{"at": datetime.fromisoformat(run.local), "utc": run.utc, "change": "gone"} for run in gone]
    return {
        "sentence": rule_sentence(words, seen.rule, seen.sentence),
        "tz": seen.tz,
        "warnings": [warned(words, one) for one in seen.warnings],
        "rows": sorted(rows, key=lambda row: row["utc"]),
        "has_gone": bool(gone),
        "week": seen.week,
        "before": seen.before,
        "sentence_before": rule_sentence(words, seen.before.rule, seen.before.sentence) if seen.before else "",
        "is_changed": seen.before is not None and _differs(seen, seen.before),
    }


def _differs(seen: PreviewFacts, before: TimesFacts) -> bool:
    return (seen.sentence, seen.tz, seen.runs) != (before.sentence, before.tz, before.runs)


def _preview_of_new(visit: Visit, values: Values) -> PreviewFacts:
    said = {**only_times(body_of(values, _zone(visit, values))), "task": "preview"}
    body = _fitted(said, ScheduleBody)
    return _read(
        lambda: visit.app.schedules.preview(read_when(body.trigger), task=values["task"] or None, **keywords_of(body))
    )


def _preview_of_edit(visit: Visit, schedule: Schedule, values: Values, base: Values) -> PreviewFacts:
    said = only_times(patch_of(values, base, schedule.spec.tz))
    patch = _fitted(said, SchedulePatch)
    _, trigger, keywords = _read(lambda: patched(visit.app, schedule, patch))
    return _read(lambda: visit.app.schedules.preview(trigger, schedule_id=schedule.id, task=values["task"], **keywords))


def _read(make: Callable[[], R]) -> R:
    """What is made of the form, or the problem with the field at fault."""
    try:
        return make()
    except Refusal as refusal:
        found = refusal
    except VersionConflict:
        raise
    except (BadTrigger, RotaError) as err:
        found = refusal_of(err)
        if found.status >= 500:
            raise
    raise FormProblem((found.fault.field or "").partition(".")[0], found.sentence)


def _fitted(said: dict[str, Any], kind: type[B]) -> B:
    """The body of the API that the form stands for."""
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError as err:
        found = misfit(err, 422, "bad_form", kind, said)
        raise FormProblem((found.fault.field or "").partition(".")[0], found.sentence) from err


def _zone(visit: Visit, values: Values) -> str:
    """The zone in which wall times of the form are meant."""
    try:
        return find_zone(values["tz"] or visit.app.settings.tz).name
    except BadTrigger:
        return "UTC"


def _signature(visit: Visit, task: str) -> str:
    try:
        found = internals(visit.app).registry.get(task) if task else None
    except RotaError:
        return ""
    return "" if found is None else f"{found.name}{found.signature.shape}"


_EDIT = "/schedules/{schedule_id}/edit"
PAGES = (
    Page(path="/schedules/new", role="operate", handle=show_new),
    Page(method="POST", path="/schedules/new", role="operate", handle=make_schedule),
    Page(path=_EDIT, role="operate", handle=show_edit, params=SchedulePath),
    Page(method="POST", path=_EDIT, role="operate", handle=save_schedule, params=SchedulePath),
)
