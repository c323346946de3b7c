"""Reads what `rota export` writes, as YAML, JSON or JSON lines."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import RotaError
from rota.importers.found import Found, Item, UnsupportedItem, check_size
from rota.inspector.facts.exported import FORMAT, ExportedSchedule
from rota.model.collection import Sync
from rota.model.jobs.payload import REDACTED, Call, pack_call
from rota.model.micros import fine_span_of, micros_of, span_of
from rota.model.names import check_schedule_id
from rota.model.schedules.schedule import ScheduleSpec, check_spec
from rota.operations.specs import make_spec
from rota.tasks.task import Request, TaskOptions
from rota.triggers import every, trigger_from_text
from rota.triggers.every import Every

if TYPE_CHECKING:
    from pathlib import Path

    from rota.tasks.task import Registry


class Unreadable(RotaError):
    """The file as a whole cannot be read."""


class ExportedRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One stored alert rule of the file, by the keys of rota.yaml."""

    when: str
    schedule: str | None = None
    queue: str | None = None
    node: str | None = None
    after: str | None = None
    more_than: int | None = None
    channels: list[str] | None = None


class ExportedFound(Found, frozen=True, kw_only=True):
    """One schedule of the file."""

    said: dict[str, Any]


def read_export(path: Path) -> list[ExportedFound]:
    """The schedules of a file."""
    text = _text_of(path)
    schedules = _lines_of(text) if path.suffix == ".jsonl" else _parts_of(_document_of(text, path), "schedules")
    return [ExportedFound(name=name, old_text=str(said.get("trigger", "")), said=said) for name, said in schedules]


def read_alert_rules(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The names and options of the stored alert rules of a file. Lines of JSON have none."""
    return [] if path.suffix == ".jsonl" else _parts_of(_document_of(_text_of(path), path), "alerts")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise Unreadable(f"{path} cannot be read: {err}; name a file that `rota export` wrote") from err


def _parts_of(document: dict[str, Any], part: str) -> list[tuple[str, dict[str, Any]]]:
    found = document.get(part)
    if not isinstance(found, dict):
        return []
    return [(str(name), said) for name, said in found.items() if isinstance(said, dict)]


def _lines_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for number, line in enumerate(text.split("\n"), start=1):  # other line breaks may stand in a value
        if not line.strip():
            continue
        try:
            said = msgspec.json.decode(line, type=dict[str, Any])
            found.append((str(said.pop("id")), said))
        except (msgspec.DecodeError, KeyError, RecursionError) as err:
            raise Unreadable(f"line {number} is no schedule as `rota export -o jsonl` writes it: {err}") from err
    return found


def _document_of(text: str, path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - only this needs it

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # both are safe
        """Merges nothing: an export has no `<<`, and a few lines with it can stand for billions of keys."""

        def flatten_mapping(self, node: Any) -> None:
            if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
                raise yaml.YAMLError("`<<` is not allowed here")
            super().flatten_mapping(node)

    try:
        document = yaml.load(text, Loader=Loader)  # noqa: S506 - it is safe
    except (yaml.YAMLError, ValueError, RecursionError) as err:  # ValueError: a date or number that does not exist
        raise Unreadable(f"{path} is no YAML: {' '.join(str(err).split())}") from err
    if not isinstance(document, dict) or not isinstance(document.get("schedules"), dict):
        raise Unreadable(f"{path} has no `schedules:`; name a file that `rota export` wrote")
    if document.get("format") != FORMAT:
        raise Unreadable(f"{path} has format {document.get('format')!r}, and this Rota reads {FORMAT}; export it again")
    return document


def translate_export(found: ExportedFound, registry: Registry) -> tuple[ScheduleSpec, ExportedSchedule]:
    """The definition that was written; UnsupportedItem says why there is none."""
    try:
        check_schedule_id(found.name)
        check_size(found.name, found.said)
        said = msgspec.convert(found.said, ExportedSchedule)
        if said.retired:
            raise UnsupportedItem("it is retired there: its app no longer has it")
        return _spec_of(said, registry), said
    except (RotaError, msgspec.ValidationError) as err:
        more = "; write the file with `rota export --with-secrets --to FILE`" if REDACTED in str(err) else ""
        raise UnsupportedItem(f"{err}{more}") from err


def _spec_of(said: ExportedSchedule, registry: Registry) -> ScheduleSpec:
    timeout = None if said.timeout is None else fine_span_of(said.timeout)
    task = registry.find(said.task)
    hidden = [] if task is None else task.signature.secrets(tuple(said.args), said.kwargs, task.sender.redaction.extra)
    call = Call(
        args=said.args, kwargs=said.kwargs, meta=said.meta, retries=said.retries, timeout=timeout, secrets=hidden
    )
    request = Request(said.task, pack_call(call, what=said.task), TaskOptions())
    spec = make_spec(
        trigger_from_text(said.trigger),
        request,
        default_tz=said.tz,
        overlap=said.overlap,  # type: ignore[arg-type]  # checked there
        catchup=said.catchup,  # type: ignore[arg-type]  # likewise
        catchup_limit=said.catchup_limit,
        queue=said.queue,
        priority=said.priority,
        key=said.key,
        key_for=said.key_for,
        max_runs=said.max_runs,
        run_on_start=said.run_on_start,
        enabled=said.enabled,
        description=said.description,
        start=said.start,
        end=said.end,
    )
    return check_spec(
        msgspec.structs.replace(
            spec,
            grace=fine_span_of(said.grace),
            jitter=span_of(said.jitter) if said.jitter else 0,
            lookahead=span_of(said.lookahead) if said.lookahead else 0,
            tenant=said.tenant or "",
            follows=said.follows,
            day_bounds=tuple(said.day_bounds),
            sync=None if said.sync is None else msgspec.convert(said.sync, Sync),
        )
    )


def anchored(spec: ScheduleSpec, created_at: datetime) -> ScheduleSpec:
    """An interval is counted from the schedule's creation. In another store that is said, so that its times stay."""
    trigger = trigger_from_text(spec.trigger)
    if not isinstance(trigger, Every) or trigger.start is not None or spec.start is not None:
        return spec
    start = created_at.replace(microsecond=0)
    again = every(timedelta(seconds=trigger.interval), start=start, tz=trigger.tz)
    return msgspec.structs.replace(spec, trigger=str(again))


def export_items(found: list[ExportedFound], known: dict[str, int], registry: Registry) -> list[Item]:
    """Every schedule of the file. `known` has those of the store, each with its creation."""
    return [_item(one, known, registry) for one in found]


def _item(found: ExportedFound, known: dict[str, int], registry: Registry) -> Item:
    try:
        spec, said = translate_export(found, registry)
    except UnsupportedItem as err:
        return Item(id=found.name, name=found.name, old_text=found.old_text, reason=str(err))
    is_same = known.get(found.name) == micros_of(said.created_at)
    pause = None if said.paused is None else (str(said.paused.get("reason", "")), _until(said.paused))
    return Item(
        id=found.name,
        name=found.name,
        old_text=found.old_text,
        spec=spec if is_same else anchored(spec, said.created_at),
        pause=pause,
    )


def _until(paused: dict[str, Any]) -> datetime | None:
    until = paused.get("until")
    return None if until is None else msgspec.convert(until, datetime)
