"""Reads the `beat_schedule` of a Celery app.

Beat starts a run while the previous one is running, and makes up for the last missed run. The schedules keep both.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rota.errors import RotaError
from rota.importers.celery_rules import FIELDS, celery_runs, crontab_trigger, interval_trigger, priority_of
from rota.importers.found import Found, Item, UnsupportedItem, Wanted, distinct
from rota.importers.naming import id_of

if TYPE_CHECKING:
    from rota.importers.found import Tasks
    from rota.triggers import Trigger

KNOWN = {"queue", "priority"}
AS_BEAT = {"overlap": "allow", "catchup": "latest"}


class BeatEntry(Found, frozen=True, kw_only=True):
    """One entry."""

    task: str
    rule: Any  # a crontab, a schedule, a timedelta or a number of seconds
    tz: str
    args: list[Any] = []  # noqa: RUF012 - msgspec copies the defaults of its structs
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - likewise
    options: dict[str, Any] = {}  # noqa: RUF012 - likewise


def read_beat(app: Any) -> list[BeatEntry]:
    """The entries of an app, those that its code adds when it is ready included."""
    app.finalize()
    zone = str(getattr(app.timezone, "key", app.timezone))
    return [
        BeatEntry(
            name=name,
            old_text=f"{said['schedule']!r} {said.get('task', name)}",
            task=said.get("task", name),
            rule=said["schedule"],
            tz=zone,
            args=list(said.get("args") or ()),
            kwargs=dict(said.get("kwargs") or {}),
            options=dict(said.get("options") or {}),
        )
        for name, said in app.conf.beat_schedule.items()
    ]


def translate_entry(entry: BeatEntry) -> Wanted:
    """The schedule of one entry."""
    priority, warnings = priority_of(entry.options.get("priority"))
    queue = {"queue": str(entry.options["queue"])} if entry.options.get("queue") else {}
    others = sorted(set(entry.options) - KNOWN)
    if others:
        warnings.append(f"options that have no counterpart are left out: {', '.join(others)}")
    try:
        trigger = _trigger(entry.rule)
    except RotaError as err:
        raise UnsupportedItem(str(err)) from err
    if crontab_fields(entry.rule) is None:
        warnings.append("the interval is counted from the import; beat counts from its last run")
    return Wanted(
        task=entry.task,
        trigger=trigger,
        args=entry.args,
        kwargs=entry.kwargs,
        options={"tz": entry.tz, **AS_BEAT, **queue, **priority},
        warnings=tuple(warnings),
    )


def _trigger(rule: Any) -> Trigger:
    fields = crontab_fields(rule)
    if fields is not None:
        return crontab_trigger(*fields)
    if isinstance(rule, (int, float)):
        return interval_trigger(timedelta(seconds=rule))
    if isinstance(rule, timedelta):
        return interval_trigger(rule)
    if type(rule).__name__ == "schedule":
        if getattr(rule, "relative", False):
            raise UnsupportedItem("a relative interval rounds to the clock; write it as cron")
        return interval_trigger(rule.run_every)
    if any(kind.__name__ == "solar" for kind in type(rule).__mro__):
        raise UnsupportedItem("solar schedules follow the sun, and Rota has no trigger for it")
    raise UnsupportedItem(f"{type(rule).__name__} is a schedule class that Rota does not know")


def crontab_fields(rule: Any) -> tuple[str, ...] | None:
    """The text of the fields of a crontab, which may also be given as numbers and sets; None if it is none."""
    if not all(hasattr(rule, f"_orig_{name}") for name in FIELDS):
        return None
    said = [getattr(rule, f"_orig_{name}") for name in FIELDS]
    return tuple(one if isinstance(one, str) else ",".join(map(str, _numbers(one))) for one in said)


def _numbers(said: Any) -> list[int]:
    return [said] if isinstance(said, int) else sorted(said)


def beat_items(entries: list[BeatEntry], tasks: Tasks, *, prefix: str, now: datetime) -> list[Item]:
    ids = distinct(id_of(entry.name, prefix) for entry in entries)
    return [_item(name, entry, tasks, now) for name, entry in zip(ids, entries, strict=True)]


def _item(name: str, entry: BeatEntry, tasks: Tasks, now: datetime) -> Item:
    try:
        spec, warnings = tasks.spec(translate_entry(entry), entry.tz)
    except UnsupportedItem as err:
        return Item(id=name, name=entry.name, old_text=entry.old_text, reason=str(err))
    fields = crontab_fields(entry.rule)
    runs = None if fields is None else celery_runs(fields, entry.tz, now)
    return Item(id=name, name=entry.name, old_text=entry.old_text, spec=spec, warnings=warnings, old_runs=runs)
