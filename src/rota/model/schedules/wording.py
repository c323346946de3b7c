"""Describes for people how two versions of a schedule or a tenant differ, one line per field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadPayload
from rota.model.jobs.payload import unpack_call
from rota.model.micros import datetime_of, iso_text, span_text
from rota.model.schedules.edit import describe_origin
from rota.model.schedules.schedule import Origin, Pause, ScheduleSpec
from rota.model.secrets.redaction import DEFAULT, Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LABELS = {
    "payload": "arguments",
    "enabled": "enabled by its author",
    "is_enabled": "enabled",
    "tenant_pause": "pause of its tenant",
    "follows": "follows its tenant in",
    "day_bounds": "given as days",
    "fired_through": "fired through",
    "silent_since": "silent since",
    "created_at": "created",
    "expires_at": "expires",
    "taken": "times that ran under a wrong clock",
}


def _defaults() -> dict[str, Any]:
    """What holds for a schedule where its fields are left out."""
    fields = {field.name: field.default for field in msgspec.structs.fields(ScheduleSpec) if not field.required}
    said = {name: value for name, value in fields.items() if value is not msgspec.NODEFAULT}
    return {**said, "follows": {}, "is_enabled": True, "origin": msgspec.to_builtins(Origin())}


OF_SCHEDULE = _defaults()
OF_TENANT: dict[str, Any] = {"on_zone_change": "recompute"}


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], defaults: Mapping[str, Any], redaction: Redaction = DEFAULT
) -> list[str]:
    """What one form says otherwise than the other; what is left out says what the default says."""
    old, new = {**defaults, **before}, {**defaults, **after}
    names = [name for name in {**before, **after} if old.get(name) != new.get(name) and not _is_same(name, old, new)]
    return [
        f"{_label(name)}: {words_of(name, old.get(name), redaction)} → {words_of(name, new.get(name), redaction)}"
        for name in names
    ]


def deed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What a job was, and why it was retried or cancelled. A field of one form alone is a fact about the job, not one
    that was taken back."""
    facts = {("state before" if name == "state" else _label(name)): (name, before[name]) for name in before}
    facts |= {_label(name): (name, after[name]) for name in after}
    return [f"{label}: {words_of(name, value)}" for label, (name, value) in facts.items()]


def _is_same(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only a part of a field has changed that is not shown: an origin also keeps where a schedule was made."""
    return name == "origin" and words_of(name, old.get(name)) == words_of(name, new.get(name))


def contents(form: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """What a form says beyond the defaults."""
    said = [name for name in form if words_of(name, form[name]) != words_of(name, defaults.get(name))]
    return [f"{_label(name)}: {words_of(name, form[name])}" for name in said]


def words_of(name: str, value: Any, redaction: Redaction = DEFAULT) -> str:
    """One field's value."""
    if value is None or value in ("", [], {}, ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _arguments(value, redaction) if name == "payload" else _READERS.get(name, str)(value)


def plain_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """A form for programs, as the facts of schedules and tenants have it: instants are ISO text, spans are "1h30m"."""
    shown: dict[str, Any] = {}
    for name, value in form.items():
        try:
            shown |= _PLAIN[name](name, value) if name in _PLAIN and value is not None else {name: value}
        except (BadPayload, msgspec.ValidationError, TypeError, ValueError):  # written by another version, or by hand
            shown[name] = value
    return shown


def _plain_instant(name: str, micros: int) -> dict[str, Any]:
    return {name: iso_text(micros)}


def _plain_span(name: str, micros: int) -> dict[str, Any]:
    return {name: span_text(micros) if micros else ("0s" if name == "grace" else None)}


def _plain_pause(name: str, value: Any) -> dict[str, Any]:
    pause = msgspec.structs.asdict(msgspec.convert(value, Pause))
    until = pause["until"]
    return {name: {**pause, "at": iso_text(pause["at"]), "until": None if until is None else iso_text(until)}}


def _plain_origin(name: str, value: Any) -> dict[str, Any]:
    return {name: _origin(value)}


def _plain_call(_name: str, payload: str) -> dict[str, Any]:
    call = unpack_call(payload.encode())
    own = {"meta": call.meta, "retries": call.retries, "timeout": span_text(call.timeout) if call.timeout else None}
    return {"args": call.args, "kwargs": call.kwargs, **own}


def _plain_spans(name: str, spans: list[list[int]]) -> dict[str, Any]:
    return {name: [[iso_text(after), iso_text(through)] for after, through in spans]}


_INSTANTS = ("start", "end", "expires_at", "fired_through", "created_at", "silent_since")
_SPANS = ("grace", "jitter", "lookahead", "key_for")
_PLAIN: dict[str, Callable[[str, Any], dict[str, Any]]] = {
    **dict.fromkeys(_INSTANTS, _plain_instant),
    **dict.fromkeys(_SPANS, _plain_span),
    **dict.fromkeys(("pause", "tenant_pause"), _plain_pause),
    "origin": _plain_origin,
    "payload": _plain_call,
    "taken": _plain_spans,
}


def _label(name: str) -> str:
    return LABELS.get(name, name)


def _instant(micros: int) -> str:
    return f"{datetime_of(micros):%Y-%m-%d %H:%M:%S}Z"


def _span(micros: int) -> str:
    return span_text(micros) if micros else "none"


def _pause(value: Any) -> str:
    pause = msgspec.structs.replace(msgspec.convert(value, Pause), tenant="")  # the label says whose it is
    return pause.words + (f" until {_instant(pause.until)}" if pause.until else "")


def _origin(value: Any) -> str:
    origin = msgspec.convert(value, Origin)
    version = f" version {origin.version}" if origin.version else ""
    return f"{describe_origin(origin)}{version}{', retired' if origin.is_retired else ''}"


def _arguments(payload: str, redaction: Redaction) -> str:
    try:
        call = redaction.shown(unpack_call(payload.encode()))
    except BadPayload:
        return "arguments that cannot be read"
    words = [repr(value) for value in call.args] + [f"{name}={value!r}" for name, value in call.kwargs.items()]
    beside = {"meta": call.meta, "retries": call.retries, "timeout": span_text(call.timeout) if call.timeout else None}
    extra = [f"{name} {value}" for name, value in beside.items() if value not in (None, {})]
    return ", ".join([f"({', '.join(words)})", *extra])


_READERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(_SPANS, _span),
    **dict.fromkeys(_INSTANTS, _instant),
    "taken": lambda value: ", ".join(f"{_instant(after)} to {_instant(through)}" for after, through in value),
    "pause": _pause,
    "tenant_pause": _pause,
    "origin": _origin,
    "follows": lambda value: ", ".join(f"{name} (else {words_of(name, own)})" for name, own in value.items()),
    "day_bounds": ", ".join,
    "runs": lambda value: ", ".join(f"job {job_id}" for job_id in value),
}
