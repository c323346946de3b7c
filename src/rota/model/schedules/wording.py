"""Describes for people how two versions of a schedule or a tenant differ, one line per field.

A line has the field, the value before and the value after, each as a sentence, so that pages can translate them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rota.errors import BadPayload
from rota.model.jobs.payload import unpack_call
from rota.model.micros import datetime_of, iso_text, span_text
from rota.model.reasons import read_reason
from rota.model.schedules.origin import origin_sentence
from rota.model.schedules.schedule import Origin, Pause, ScheduleSpec
from rota.model.secrets.redaction import DEFAULT, Redaction
from rota.sentences import Said, Sentence, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_AS_NAMED = (  # fields that are called what their option is called
    *("trigger", "task", "queue", "priority", "key", "key_for", "tz", "overlap", "catchup", "catchup_limit", "grace"),
    *("jitter", "start", "end", "max_runs", "run_on_start", "description", "lookahead", "tenant", "sync", "origin"),
    *("pause", "on_zone_change", "name", "role", "is_paused", "reason", "until", "copy", "copy_of", "state", "error"),
    *("runs", "kind", "selects", "when", "after", "more_than", "channels", "app", "schedule", "node"),
)
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
    "state_before": "state before",
    **{name: name for name in _AS_NAMED},
}


def _defaults() -> dict[str, Any]:
    """The values of a schedule's fields that are left out."""
    fields = {field.name: field.default for field in msgspec.structs.fields(ScheduleSpec) if not field.required}
    said = {name: value for name, value in fields.items() if value is not msgspec.NODEFAULT}
    return {**said, "follows": {}, "is_enabled": True, "origin": msgspec.to_builtins(Origin())}


NOTHING = sentence("value.none", "none")
OF_SCHEDULE = _defaults()
OF_TENANT: dict[str, Any] = {"on_zone_change": "recompute"}


class FieldLine(NamedTuple):
    """One field of a form: its name, and its values in words."""

    label: Said
    before: Said | None  # None: there is nothing to compare with
    after: Said

    def __str__(self) -> str:
        change = self.after if self.before is None else f"{self.before} → {self.after}"
        return f"{self.label}: {change}"


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], defaults: Mapping[str, Any], redaction: Redaction = DEFAULT
) -> list[FieldLine]:
    """The differences of two forms. A field that is left out has its default."""
    old, new = {**defaults, **before}, {**defaults, **after}
    names = [name for name in {**before, **after} if old.get(name) != new.get(name) and not _is_same(name, old, new)]
    return [
        FieldLine(
            label=_label(name),
            before=words_of(name, old.get(name), redaction),
            after=words_of(name, new.get(name), redaction),
        )
        for name in names
    ]


def job_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldLine]:
    """The state of a job before it was retried or cancelled, and the reason. A field of one form alone is a fact
    about the job, not one that was taken back."""
    facts = {("state_before" if name == "state" else name): (name, before[name]) for name in before}
    facts |= {name: (name, after[name]) for name in after}
    return [
        FieldLine(label=_label(label), before=None, after=words_of(name, value))
        for label, (name, value) in facts.items()
    ]


def _is_same(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only a part of a field has changed that is not shown: an origin also keeps where a schedule was made."""
    return name == "origin" and words_of(name, old.get(name)) == words_of(name, new.get(name))


def contents(form: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[FieldLine]:
    """The fields of a form that differ from the defaults."""
    said = [name for name in form if words_of(name, form[name]) != words_of(name, defaults.get(name))]
    return [FieldLine(label=_label(name), before=None, after=words_of(name, form[name])) for name in said]


def words_of(name: str, value: Any, redaction: Redaction = DEFAULT) -> Said:
    """One field's value."""
    if value is None or value in ("", [], {}, ()):
        return NOTHING
    if isinstance(value, bool):
        return sentence("value.yes", "yes") if value else sentence("value.no", "no")
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
    return {name: str(_origin(value))}


def _plain_call(_name: str, payload: str) -> dict[str, Any]:
    call = unpack_call(payload.encode())
    own = {"meta": call.meta, "retries": call.retries, "timeout": span_text(call.timeout) if call.timeout else None}
    return {"args": call.args, "kwargs": call.kwargs, **own}


def _plain_spans(name: str, spans: list[list[int]]) -> dict[str, Any]:
    return {name: [[iso_text(after), iso_text(through)] for after, through in spans]}


_INSTANTS = ("start", "end", "until", "expires_at", "fired_through", "created_at", "silent_since")
_SPANS = ("grace", "jitter", "lookahead", "key_for")
_PLAIN: dict[str, Callable[[str, Any], dict[str, Any]]] = {
    **dict.fromkeys(_INSTANTS, _plain_instant),
    **dict.fromkeys(_SPANS, _plain_span),
    **dict.fromkeys(("pause", "tenant_pause"), _plain_pause),
    "origin": _plain_origin,
    "payload": _plain_call,
    "taken": _plain_spans,
}


def _label(name: str) -> Said:
    return Sentence(f"field.{name}", LABELS[name], {}) if name in LABELS else name


def _instant(micros: int) -> str:
    return f"{datetime_of(micros):%Y-%m-%d %H:%M:%S}Z"


def _span(micros: int) -> Said:
    return span_text(micros) if micros else NOTHING


def _pause(value: Any) -> Said:
    pause = msgspec.structs.replace(msgspec.convert(value, Pause), tenant="")  # the label names the tenant
    said = read_reason(pause.words)
    return sentence("value.until", "{pause} until {at}", pause=said, at=_instant(pause.until)) if pause.until else said


def _origin(value: Any) -> Sentence:
    origin = msgspec.convert(value, Origin)
    said = origin_sentence(origin)
    if origin.version:
        said = sentence("origin.version", "{origin} version {version}", origin=said, version=origin.version)
    return sentence("origin.retired", "{origin}, retired", origin=said) if origin.is_retired else said


def _arguments(payload: str, redaction: Redaction) -> Said:
    try:
        call = redaction.shown(unpack_call(payload.encode()))
    except BadPayload:
        return sentence("value.unreadable", "arguments that cannot be read")
    words = [repr(value) for value in call.args] + [f"{name}={value!r}" for name, value in call.kwargs.items()]
    beside = {"meta": call.meta, "retries": call.retries, "timeout": span_text(call.timeout) if call.timeout else None}
    extra = [f"{name} {value}" for name, value in beside.items() if value not in (None, {})]
    return ", ".join([f"({', '.join(words)})", *extra])


def _followed(name: str, own: Any) -> Sentence:
    return sentence("value.followed", "{name} (else {own})", name=_label(name), own=words_of(name, own))


def _between(after: int, through: int) -> Sentence:
    return sentence("value.between", "{first} to {last}", first=_instant(after), last=_instant(through))


def _listed(said: list[Sentence]) -> Said:
    """One after the other, with commas."""
    return reduce(lambda first, other: sentence("value.and", "{first}, {other}", first=first, other=other), said)


_READERS: dict[str, Callable[[Any], Said]] = {
    **dict.fromkeys(_SPANS, _span),
    **dict.fromkeys(_INSTANTS, _instant),
    "taken": lambda value: _listed([_between(after, through) for after, through in value]),
    "pause": _pause,
    "tenant_pause": _pause,
    "origin": _origin,
    "follows": lambda value: _listed([_followed(name, own) for name, own in value.items()]),
    "day_bounds": ", ".join,
    "channels": ", ".join,
    "runs": lambda value: _listed([sentence("value.job", "job {job}", job=job_id) for job_id in value]),
    "state": lambda value: sentence("value.state", "{state}", state=value),
    "reason": lambda value: read_reason(str(value)),
}
