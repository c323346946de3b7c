"""Writes imported schedules as a part of rota.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.jobs.payload import unpack_call
from rota.model.micros import iso_text, span_text
from rota.model.schedules.schedule import ScheduleSpec
from rota.triggers import trigger_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.importers.found import Item

_DEFAULT = ScheduleSpec(trigger="", task="")
_SPANS = ("key_for", "grace", "jitter", "lookahead")
_BOUNDS = ("start", "end")
_PLAIN = ("queue", "priority", "key", "overlap", "catchup", "catchup_limit", "max_runs", "run_on_start", "enabled")


def fragment_of(items: Sequence[Item], source: str) -> str:
    """The text of `schedules:`. Keys that have their default are left out."""
    import yaml  # noqa: PLC0415 - only this needs it

    found = {item.id: entry_of(item.spec) for item in items if item.spec is not None}
    head = f"# Imported from {source if source.isprintable() else ascii(source)}\n"
    return head + str(yaml.safe_dump({"schedules": found}, sort_keys=False, allow_unicode=True, width=1_000_000))


def unsaid_in_yaml(spec: ScheduleSpec) -> list[str]:
    """What rota.yaml has no key for."""
    call = unpack_call(spec.payload.encode())
    own = [name for name in ("meta", "retries", "timeout") if getattr(call, name)]
    return own + (["sync"] if spec.sync is not None else [])


def entry_of(spec: ScheduleSpec) -> dict[str, Any]:
    """One schedule by the keys of rota.yaml."""
    call = unpack_call(spec.payload.encode())
    entry: dict[str, Any] = {"task": spec.task, **_trigger_of(spec)}
    if call.args:
        entry["args"] = call.args
    if call.kwargs:
        entry["kwargs"] = call.kwargs
    for name in msgspec.structs.fields(ScheduleSpec):
        value = getattr(spec, name.name)
        if value == getattr(_DEFAULT, name.name) or name.name in spec.follows:
            continue
        if name.name in _PLAIN or name.name in {"tenant", "description"}:
            entry[name.name] = value
        elif name.name in _SPANS:
            entry[name.name] = span_text(value)
        elif name.name in _BOUNDS:
            entry[name.name] = iso_text(value)
    return entry


def _trigger_of(spec: ScheduleSpec) -> dict[str, Any]:
    """The rule by its kind; the zone has a key of its own, unless the tenant says it."""
    kind, _, text = spec.trigger.partition(" ")
    words = text.split()
    said: dict[str, Any] = {}
    if kind == "cron":
        options = dict(word.split("=", 1) for word in words if "=" in word)
        said = {"cron": " ".join(word for word in words if "=" not in word)}
        if "dialect" in options:
            said["dialect"] = options["dialect"]
    else:
        said = {kind: " ".join(word for word in words if not word.startswith("tz="))}
    zone = trigger_from_text(spec.trigger).tz or spec.tz
    return said if "tz" in spec.follows else {**said, "tz": zone}
