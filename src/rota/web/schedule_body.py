"""Reads schedules as JSON sends them: a whole one, or only the changes of one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from rota.app import internals
from rota.errors import BadPayload, BadTrigger, RotaError, UnknownTask, UnknownZone
from rota.inspector.facts.schedule import stored_bound
from rota.inspector.facts.values import duration
from rota.model.jobs.payload import pack_call, unpack_call
from rota.model.schedules.schedule import Catchup, Overlap
from rota.model.secrets.redaction import restored_call
from rota.sentences import sentence, sentence_of
from rota.tasks.task import NOTHING_ELSE, Overrides, Request, TaskOptions
from rota.triggers import trigger_from_text
from rota.triggers.bounds import bound_from_text
from rota.triggers.text import text_in_zone
from rota.triggers.zone import find_zone
from rota.web.refusals import Refusal, at_fault, code_of
from rota.web.trigger_body import TriggerBody, read_trigger
from rota.web.types import (
    Arguments,
    Body,
    Bound,
    Duration,
    FineDuration,
    Key,
    Name,
    Named,
    Priority,
    ScheduleId,
    Text,
    Zone,
)

if TYPE_CHECKING:
    from datetime import date

    from rota.app import App
    from rota.model.schedules.schedule import Schedule, ScheduleSpec
    from rota.operations.specs import ScheduleKeywords
    from rota.triggers import Trigger

CatchupLimit = Annotated[int, Meta(ge=1, le=10_000)]
MaxRuns = Annotated[int, Meta(ge=1, le=2**53)]
PLAIN = ("overlap", "catchup", "catchup_limit", "max_runs", "run_on_start", "enabled", "description")
OTHERS = ("grace", "jitter", "priority", "queue", "tz", "lookahead", "tenant", "key", "key_for")


class ScheduleBody(Body, frozen=True, kw_only=True):
    """A schedule: which registered task it calls, when, and how."""

    task: Name
    args: Arguments = []
    kwargs: Named = {}
    trigger: TriggerBody
    overlap: Overlap = "skip"
    catchup: Catchup = "latest"
    catchup_limit: CatchupLimit = 100
    grace: Duration = "1m"
    jitter: Duration | None = None
    start: Bound | None = None
    end: Bound | None = None
    max_runs: MaxRuns | None = None
    run_on_start: bool = False
    enabled: bool = True
    description: Text = ""
    priority: Priority | None = None
    queue: Name | None = None
    tz: Zone | None = None
    lookahead: Duration | None = None
    tenant: Name | None = None
    key: Key | None = None
    key_for: FineDuration | None = None


class NewScheduleBody(ScheduleBody, frozen=True, kw_only=True):
    """A schedule under a new id."""

    id: ScheduleId


class SchedulePatch(Body, frozen=True, kw_only=True):
    """The fields to change; the others stay."""

    task: Name | UnsetType = UNSET
    args: Arguments | UnsetType = UNSET
    kwargs: Named | UnsetType = UNSET
    trigger: TriggerBody | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    catchup: Catchup | UnsetType = UNSET
    catchup_limit: CatchupLimit | UnsetType = UNSET
    grace: Duration | UnsetType = UNSET
    jitter: Duration | UnsetType | None = UNSET
    start: Bound | UnsetType | None = UNSET
    end: Bound | UnsetType | None = UNSET
    max_runs: MaxRuns | UnsetType | None = UNSET
    run_on_start: bool | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    priority: Priority | UnsetType | None = UNSET
    queue: Name | UnsetType | None = UNSET
    tz: Zone | UnsetType | None = UNSET
    lookahead: Duration | UnsetType | None = UNSET
    tenant: Name | UnsetType | None = UNSET
    key: Key | UnsetType | None = UNSET
    key_for: FineDuration | UnsetType | None = UNSET


def read_schedule(app: App, body: ScheduleBody) -> tuple[Request, Trigger, ScheduleKeywords]:
    """What app.schedules.put takes."""
    return read_call(app, body.task, body.args, body.kwargs), read_when(body.trigger), keywords_of(body)


def with_secrets(app: App, body: ScheduleBody, stored: Schedule) -> ScheduleBody:
    """The body with the stored value for each that was hidden; the same object where it has none of them."""
    args, kwargs = as_stored(app, stored, body.task, body.args, body.kwargs)
    if (args, kwargs) == (body.args, body.kwargs):
        return body
    return msgspec.structs.replace(body, args=args, kwargs=kwargs)


def as_stored(
    app: App, stored: Schedule, task: str, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with the stored value for each that was hidden when it was read.

    Only for the same task: another might show what this one keeps to itself.
    """
    if not _is_same_task(app, stored.spec.task, task):
        return args, kwargs
    try:
        made = unpack_call(stored.spec.payload.encode())
    except BadPayload:
        return args, kwargs
    shown = internals(app).redaction.shown(made)
    return restored_call(args, kwargs, made, shown)


def read_call(
    app: App, task: str, args: list[Any], kwargs: dict[str, Any], overrides: Overrides = NOTHING_ELSE
) -> Request:
    with at_fault("task"):
        found = internals(app).registry.get(task)
    with at_fault("args", BadPayload):
        return found.request(tuple(args), kwargs, overrides)


def read_when(body: TriggerBody) -> Trigger:
    with at_fault("trigger", BadTrigger):
        return read_trigger(body)


def keywords_of(body: ScheduleBody) -> ScheduleKeywords:
    fields = {name: getattr(body, name) for name in (*PLAIN, *OTHERS)}
    bounds = {"start": read_bound("start", body.start), "end": read_bound("end", body.end)}
    return cast("ScheduleKeywords", {**fields, **bounds})  # the same names, and msgspec has checked them


def read_bound(name: str, text: str | None) -> date | None:
    with at_fault(name, BadTrigger):
        return None if text is None else bound_from_text(text)


def patched(app: App, schedule: Schedule, patch: SchedulePatch) -> tuple[Request, Trigger, ScheduleKeywords]:
    """What app.schedules.put takes for the schedule with the fields that are given; the others stay as they were."""
    spec = schedule.spec
    said = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    request = _patched_call(app, schedule, said)
    trigger = read_when(said["trigger"]) if "trigger" in said else _kept_trigger(spec, said.get("tz"))
    kept = {**_kept(spec), **_kept_key(app, spec, said, request)}
    keywords = {**kept, **{name: said[name] for name in said if name not in _CALL}}
    if "trigger" in said and trigger.tz is not None and "tz" not in said:
        keywords["tz"] = trigger.tz
    elif "tz" not in said and keywords["tz"] is not None:
        _check_kept_zone(spec)
    for name in ("start", "end"):
        if isinstance(keywords[name], str):
            keywords[name] = read_bound(name, keywords[name])
    return request, trigger, cast("ScheduleKeywords", keywords)


_NEW_CALL = frozenset({"task", "args", "kwargs"})
_CALL = (*_NEW_CALL, "trigger")


def _patched_call(app: App, schedule: Schedule, said: dict[str, Any]) -> Request:
    spec = schedule.spec
    if not said.keys() & _NEW_CALL and said.get("key", spec.key) is not None:  # without one, it is the task's again
        options = TaskOptions(queue=_open(spec, "queue", spec.queue), priority=_open(spec, "priority", spec.priority))
        return Request(spec.task, spec.payload.encode(), options)
    made = unpack_call(spec.payload.encode())
    task = said.get("task", spec.task)
    if not _is_same_task(app, spec.task, task):
        made = internals(app).redaction.shown(made)  # the other task gets what the caller can see, and no secret
        return read_call(app, task, said.get("args", made.args), said.get("kwargs", made.kwargs))
    args, kwargs = as_stored(app, schedule, task, said.get("args", made.args), said.get("kwargs", made.kwargs))
    overrides = Overrides(meta=made.meta, retries=made.retries, timeout=made.timeout)
    return keep_hidden(read_call(app, task, args, kwargs, overrides), schedule)


def keep_hidden(request: Request, stored: Schedule) -> Request:
    """A call with values of a stored one hides what that one hid, whatever the hints and the settings say by now."""
    made, call = unpack_call(stored.spec.payload.encode()), unpack_call(request.payload)
    secrets = [*call.secrets, *(entry for entry in made.secrets if entry not in call.secrets)]
    if secrets == call.secrets:
        return request
    payload = pack_call(msgspec.structs.replace(call, secrets=secrets), what=request.task)
    return msgspec.structs.replace(request, payload=payload)


def _is_same_task(app: App, one: str, other: str) -> bool:
    """Whether two names are those of one task; a bare function name may stand for a whole one."""
    with suppress(UnknownTask):
        return internals(app).registry.get(other).name == one
    return one == other


def _kept_key(app: App, spec: ScheduleSpec, said: dict[str, Any], request: Request) -> dict[str, Any]:
    """The key and how long it holds. A key that the arguments make, because the task is unique, changes with them."""
    own = _own_request(app, spec) if said.keys() & _NEW_CALL and "key" not in said else None
    if own is not None and own.unique_key == spec.key:
        is_own = request.key is None or spec.key_for == own.key_for
        return {"key": None, "key_for": None if is_own else duration(spec.key_for)}
    if said.get("key", spec.key or None) is None:
        return {"key": None, "key_for": None}
    return {"key": spec.key or None, "key_for": duration(spec.key_for)}


def _own_request(app: App, spec: ScheduleSpec) -> Request | None:
    """The call as its task makes it; None if it cannot be read, or its task is unknown here."""
    try:
        made = unpack_call(spec.payload.encode())
        return internals(app).registry.get(spec.task).job(*made.args, **made.kwargs)
    except RotaError:
        return None


def _open(spec: ScheduleSpec, name: str, value: Any) -> Any:
    """What holds where the tenant says nothing."""
    return spec.follows.get(name, value)


def _kept_trigger(spec: ScheduleSpec, tz: str | None) -> Trigger:
    """Its rule; one that names its zone names the new one now."""
    with at_fault("tz", UnknownZone):
        zone = find_zone(tz).name if tz is not None else None
    try:
        return trigger_from_text(text_in_zone(spec.trigger, zone) if zone else spec.trigger)
    except BadTrigger as err:
        reason = sentence(
            "form.stored_rule",
            'its stored rule cannot be read: {error}; send "trigger" to replace it',
            error=sentence_of(err),
        )
        raise Refusal(422, code_of(err), reason, field="trigger") from err


def _check_kept_zone(spec: ScheduleSpec) -> None:
    try:
        find_zone(spec.tz)
    except UnknownZone as err:
        reason = sentence(
            "form.stored_zone",
            'its stored zone cannot be used: {error}; send "tz" to replace it',
            error=sentence_of(err),
        )
        raise Refusal(422, code_of(err), reason, field="tz") from err


def _kept(spec: ScheduleSpec) -> dict[str, Any]:
    """The words that would make this spec; what follows the tenant stays open."""
    return {
        **{name: getattr(spec, name) for name in PLAIN},
        **{name: None if name in spec.follows else getattr(spec, name) for name in ("priority", "queue", "tz")},
        **{name: duration(getattr(spec, name)) for name in ("jitter", "lookahead")},
        "grace": duration(spec.grace) or "0s",
        "tenant": spec.tenant or None,
        "start": stored_bound(spec, "start"),
        "end": stored_bound(spec, "end"),
    }
