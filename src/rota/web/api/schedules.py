"""Creates, changes, pauses, runs and explains schedules over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from rota.app import internals
from rota.errors import ScheduleNotFound, TenantNotFound
from rota.inspector.facts.change import ChangeFacts, change_facts
from rota.inspector.facts.job import EnqueuedFacts, enqueued_facts
from rota.inspector.facts.preview import PreviewFacts
from rota.inspector.facts.schedule import OccurrenceFacts, SavedScheduleFacts, ScheduleFacts, schedule_facts
from rota.inspector.facts.values import filled
from rota.inspector.facts.why import WhyFacts
from rota.inspector.schedule_warnings import schedule_warnings
from rota.store.contract import Page, ScheduleFilter
from rota.web.refusals import Refusal, at_fault
from rota.web.route import Answer, Ask, Route
from rota.web.schedule_body import (
    MaxRuns,
    NewScheduleBody,
    ScheduleBody,
    SchedulePatch,
    keep_hidden,
    patched,
    read_bound,
    read_schedule,
    read_when,
    with_secrets,
)
from rota.web.trigger_body import TriggerBody
from rota.web.types import (
    Body,
    Bound,
    Duration,
    Instant,
    Name,
    NamesQuery,
    NotesQuery,
    NumbersQuery,
    PauseBody,
    Query,
    ScheduleId,
    Zone,
)

if TYPE_CHECKING:
    from rota.inspector.schedule_view import ScheduleView
    from rota.model.schedules.schedule import Schedule

Number = Annotated[int, Meta(ge=1, le=200)]


class SchedulePath(Struct, frozen=True):
    """Which schedule."""

    schedule_id: ScheduleId


class SchedulesQuery(NamesQuery, frozen=True, kw_only=True):
    """Which schedules."""

    tenant: Name | None = None
    origin: Annotated[str, Meta(max_length=140, description="such as code:shop or api:")] | None = None


class NextQuery(Query, frozen=True, kw_only=True):
    """Which of the times to come."""

    n: Number = 10
    after: Instant | None = None


class OccurrencesQuery(NumbersQuery, frozen=True, kw_only=True):
    """Which of the times that have been."""

    start: Instant
    end: Instant


class WhyQuery(Query, frozen=True, kw_only=True):
    """Which time; without one, when it last was to run."""

    at: Instant | None = None


class Runs(Struct, kw_only=True):
    """The times at which it will fire, as things stand."""

    items: list[datetime]


class PreviewBody(Body, frozen=True, kw_only=True):
    """Times that a schedule might have, and the schedule whose times they would replace."""

    trigger: TriggerBody
    tz: Zone | None = None
    start: Bound | None = None
    end: Bound | None = None
    jitter: Duration | None = None
    max_runs: MaxRuns | None = None
    tenant: Name | None = None
    schedule_id: ScheduleId | None = None
    task: Name | None = None
    n: Number = 10


def preview_schedule(ask: Ask) -> PreviewFacts:
    body: PreviewBody = ask.body
    with at_fault("tenant", TenantNotFound), at_fault("schedule_id", ScheduleNotFound):
        return ask.app.schedules.preview(
            read_when(body.trigger),
            schedule_id=body.schedule_id,
            task=body.task,
            n=body.n,
            tz=body.tz,
            jitter=body.jitter,
            max_runs=body.max_runs,
            tenant=body.tenant,
            start=read_bound("start", body.start),
            end=read_bound("end", body.end),
        )


def list_schedules(ask: Ask) -> Page[ScheduleFacts]:
    query: SchedulesQuery = ask.query
    where = ScheduleFilter(tenant=query.tenant, origin=query.origin)
    store = ask.app.open()
    page, now = store.list_schedules(where, cursor=query.cursor, limit=query.limit), store.now()
    return Page([schedule_facts(record, internals(ask.app).redaction, now) for record in page.items], page.cursor)


def get_schedule(ask: Ask) -> Answer:
    return _shown(ask, _read(ask))


def create_schedule(ask: Ask) -> Answer:
    body: NewScheduleBody = ask.body
    if ask.app.open().get_schedules([body.id]):
        raise Refusal(409, "already_exists", f"there is a schedule '{body.id}'; PUT or PATCH changes it", field="id")
    return _put(ask, body.id, body, 0, 201)


def put_schedule(ask: Ask) -> Answer:
    name = ask.path.schedule_id
    status = 200 if ask.app.open().get_schedules([name]) else 201
    return _put(ask, name, ask.body, ask.expect_version, status)


def patch_schedule(ask: Ask) -> Answer:
    name, record = ask.path.schedule_id, _read(ask)
    request, trigger, keywords = patched(ask.app, record, ask.body)
    version = record.version if ask.expect_version is None else ask.expect_version
    with at_fault("tenant", TenantNotFound):
        view = ask.app.schedules.put(name, request, trigger, by=ask.by, expect_version=version, **keywords)
    return _saved(ask, view.record)


def delete_schedule(ask: Ask) -> None:
    name = ask.path.schedule_id
    if not ask.app.schedules.remove(name, by=ask.by, expect_version=ask.expect_version):
        raise ScheduleNotFound(f"no schedule has the id {name!r}")


def pause_schedule(ask: Ask) -> Answer:
    body: PauseBody = ask.body
    name = ask.path.schedule_id
    view = ask.app.schedules.pause(
        name, until=body.until, reason=body.reason, by=ask.by, expect_version=ask.expect_version
    )
    return _shown(ask, view.record)


def resume_schedule(ask: Ask) -> Answer:
    view = ask.app.schedules.resume(ask.path.schedule_id, by=ask.by, expect_version=ask.expect_version)
    return _shown(ask, view.record)


def enable_schedule(ask: Ask) -> Answer:
    view = ask.app.schedules.enable(ask.path.schedule_id, by=ask.by, expect_version=ask.expect_version)
    return _shown(ask, view.record)


def disable_schedule(ask: Ask) -> Answer:
    view = ask.app.schedules.disable(ask.path.schedule_id, by=ask.by, expect_version=ask.expect_version)
    return _shown(ask, view.record)


def run_schedule_now(ask: Ask) -> Answer:
    job = ask.app.schedules.run_now(ask.path.schedule_id, by=ask.by)
    facts = enqueued_facts(job.record, internals(ask.app).redaction, existed=job.existed)
    return Answer(facts, 200 if job.existed else 201)


def get_next(ask: Ask) -> Runs:
    query: NextQuery = ask.query
    found = ask.app.schedules.next_runs(ask.path.schedule_id, query.n, after=query.after)
    return Runs(items=[run.astimezone(UTC) for run in found])


def list_occurrences(ask: Ask) -> Page[OccurrenceFacts]:
    query: OccurrencesQuery = ask.query
    return ask.app.schedules.occurrences(_read(ask).id, query.start, query.end, limit=query.limit, cursor=query.cursor)


def get_why(ask: Ask) -> WhyFacts:
    return ask.app.schedules.why(ask.path.schedule_id, ask.query.at)


def list_schedule_changes(ask: Ask) -> Page[ChangeFacts]:
    """They outlive the schedule: one that never was has none."""
    page = ask.app.schedules.changes(ask.path.schedule_id, limit=ask.query.limit, cursor=ask.query.cursor)
    return Page([change_facts(change) for change in page.items], page.cursor)


def _put(ask: Ask, name: str, body: ScheduleBody, version: int | None, status: int) -> Answer:
    given, found = body, ask.app.open().get_schedules([name])
    for stored in found:
        body = with_secrets(ask.app, body, stored)
        if body is not given and version is None:
            version = stored.version  # a secret that another client changes meanwhile must not be undone
    request, trigger, keywords = read_schedule(ask.app, body)
    if body is not given:
        request = keep_hidden(request, found[0])
    with at_fault("tenant", TenantNotFound):
        view: ScheduleView = ask.app.schedules.put(
            name, request, trigger, by=ask.by, expect_version=version, **keywords
        )
    return _saved(ask, view.record, status)


def _read(ask: Ask) -> Schedule:
    return ask.app.schedules.get(ask.path.schedule_id).record


def _shown(ask: Ask, record: Schedule, status: int = 200) -> Answer:
    facts = schedule_facts(record, internals(ask.app).redaction, ask.app.open().now())
    return Answer(facts, status, {"ETag": f'"{record.version}"'})


def _saved(ask: Ask, record: Schedule, status: int = 200) -> Answer:
    """As it is shown, with what may surprise about its times."""
    shown, store = _shown(ask, record, status), ask.app.open()
    warnings = schedule_warnings(store, record, store.now())
    return shown._replace(body=filled(SavedScheduleFacts, shown.body, warnings=warnings))


_ALL, _ONE = "/api/v1/schedules", "/api/v1/schedules/{schedule_id}"
_MADE = {201: "Created", 409: "It is defined elsewhere, or was changed meanwhile."}

ROUTES = (
    Route(method="GET", path=_ALL, role="read", handle=list_schedules, says="Schedules by id.", query=SchedulesQuery,
          answer=Page[ScheduleFacts]),
    Route(method="POST", path=_ALL, role="operate", handle=create_schedule, body=NewScheduleBody, status=201,
          answer=SavedScheduleFacts, says="Make a schedule.", also={409: "There is one with that id."}),
    Route(method="POST", path="/api/v1/preview", role="read", handle=preview_schedule, body=PreviewBody,
          answer=PreviewFacts, changes_nothing=True,
          says="What times a schedule would have, what may surprise, and what its times are now."),
    Route(method="GET", path=_ONE, role="read", handle=get_schedule, params=SchedulePath, answer=ScheduleFacts,
          says="A schedule; its version is its ETag."),
    Route(method="PUT", path=_ONE, role="operate", handle=put_schedule, params=SchedulePath, body=ScheduleBody,
          answer=SavedScheduleFacts, is_versioned=True, also=_MADE, says="Create a schedule, or replace it."),
    Route(method="PATCH", path=_ONE, role="operate", handle=patch_schedule, params=SchedulePath, body=SchedulePatch,
          answer=SavedScheduleFacts, is_versioned=True, says="Change the given fields of a schedule; the others stay."),
    Route(method="DELETE", path=_ONE, role="operate", handle=delete_schedule, params=SchedulePath, status=204,
          is_versioned=True, says="Remove a schedule and cancel what it has waiting."),
    Route(method="POST", path=f"{_ONE}/pause", role="operate", handle=pause_schedule, params=SchedulePath,
          body=PauseBody, answer=ScheduleFacts, is_versioned=True,
          says="Stop firing until resumed, or until an instant."),
    Route(method="POST", path=f"{_ONE}/resume", role="operate", handle=resume_schedule, params=SchedulePath,
          answer=ScheduleFacts, is_versioned=True, says="Fire again from now on."),
    Route(method="POST", path=f"{_ONE}/enable", role="operate", handle=enable_schedule, params=SchedulePath,
          answer=ScheduleFacts, is_versioned=True, says="Turn a schedule on."),
    Route(method="POST", path=f"{_ONE}/disable", role="operate", handle=disable_schedule, params=SchedulePath,
          answer=ScheduleFacts, is_versioned=True, says="Turn a schedule off, whatever is deployed."),
    Route(method="POST", path=f"{_ONE}/run-now", role="operate", handle=run_schedule_now, params=SchedulePath,
          answer=EnqueuedFacts, status=201, says="One run at once; the job is answered.",
          also={200: "No job was made: the one answered holds the unique key, or syncs the same collection.",
                409: "Its state does not allow it, or it kept changing."}),
    Route(method="GET", path=f"{_ONE}/next", role="read", handle=get_next, params=SchedulePath, query=NextQuery,
          answer=Runs, says="The next times at which it will fire."),
    Route(method="GET", path=f"{_ONE}/occurrences", role="read", handle=list_occurrences, params=SchedulePath,
          query=OccurrencesQuery, answer=Page[OccurrenceFacts], says="What became of the expected times of a span."),
    Route(method="GET", path=f"{_ONE}/why", role="read", handle=get_why, params=SchedulePath, query=WhyQuery,
          answer=WhyFacts, says="Why it did or did not run at an instant."),
    Route(method="GET", path=f"{_ONE}/changes", role="read", handle=list_schedule_changes, params=SchedulePath,
          query=NotesQuery, answer=Page[ChangeFacts], says="Who changed it, when, and what."),
)  # fmt: skip
