"""Defines the options of a schedule, and makes or changes its definition by them."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.cli.options import check_duration, check_fine_duration
from rota.errors import BadOption, BadTrigger, UnknownZone
from rota.inspector.wall_times import DAY_LENGTH, day_or_time_from, in_zone
from rota.model.micros import fine_span_of, span_of
from rota.model.names import check_key, check_name, check_priority
from rota.model.schedules.schedule import CATCHUPS, OVERLAPS, check_spec
from rota.model.tenant import followed
from rota.operations.specs import bound_instant, one_zone
from rota.triggers import trigger_from_text
from rota.triggers.text import text_in_zone
from rota.triggers.zone import find_zone, zone_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.schedules.schedule import ScheduleSpec
    from rota.triggers import Trigger

KINDS = ("cron", "every", "calendar", "once")
FOLLOWED = ("tz", "queue", "priority")  # what a tenant may say


def rule_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options of a schedule, besides its task."""
    options = [
        click.option("--cron", metavar="TEXT", help='Such as "0 9 * * mon-fri".'),
        click.option("--every", metavar="DURATION", help="Such as 90s or 1h30m."),
        click.option("--calendar", metavar="TEXT", help='Such as "months=1 at=00:05 start=2026-01-31".'),
        click.option("--once", metavar="TIME", help='Such as 2026-10-14T09:00Z, or "2026-10-14 09:00" in its zone.'),
        click.option("--tz", metavar="ZONE", help="An IANA name such as Europe/Paris."),
        click.option("--tenant", metavar="NAME", help="Whose zone, queue and priority it follows."),
        click.option("--overlap", type=click.Choice(OVERLAPS), help="What happens if the run before has not ended."),
        click.option("--catchup", type=click.Choice(CATCHUPS), help="Which missed runs are made up for."),
        click.option(
            "--grace", metavar="DURATION", callback=_span, help="How late a run may be before it counts as missed."
        ),
        click.option(
            "--jitter",
            metavar="DURATION",
            callback=_span,
            help="Move all its runs by one fixed offset of at most this.",
        ),
        click.option(
            "--lookahead", metavar="DURATION", callback=_span, help="Create its jobs this long before they are due."
        ),
        click.option(
            "--start", metavar="TIME", callback=_bound, help="No run before this time (as --once), or this day."
        ),
        click.option("--end", metavar="TIME", callback=_bound, help="No run after this time (as --once), or this day."),
        click.option("--max-runs", type=click.IntRange(1), metavar="N", help="Stop after this many runs."),
        click.option("--queue", metavar="NAME", help="Another queue than the task's own."),
        click.option("--priority", metavar="N", callback=read_priority, help="From -100 to 100, or low, normal, high."),
        click.option("--key", metavar="TEXT", callback=_key, help="The unique key of its jobs."),
        click.option(
            "--key-for", metavar="DURATION", callback=_fine_span, help="How long the key holds after a job was created."
        ),
        click.option("--description", metavar="TEXT", help="A text for people."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def trigger_of(options: dict[str, Any], zone: Callable[[], str]) -> Trigger | None:
    """The rule that was given; it is taken out of the options. Times that name no zone are wall times in `zone`."""
    for bound in ("start", "end"):
        if isinstance(options[bound], date):
            options[bound] = _in_zone_of(options[bound], zone)
    if options["once"]:
        options["once"] = _once_text(options["once"], zone)
    said = {kind: options.pop(kind) for kind in KINDS}
    given = {kind: text for kind, text in said.items() if text is not None}
    if len(given) > 1:
        raise click.UsageError(f"--{' and --'.join(given)} both say when; give one of them")
    return next((trigger_from_text(f"{kind} {text}") for kind, text in given.items()), None)


def _once_text(text: str, zone: Callable[[], str]) -> str:
    """The text of the trigger; what is no time is left for the trigger to refuse."""
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        return text
    if len(text.strip()) == DAY_LENGTH:
        raise BadOption(f"--once {text} names a day; add the time, as in --once '{text.strip()} 09:00'")
    return _in_zone_of(given, zone).isoformat()


def _in_zone_of(given: date, zone: Callable[[], str]) -> date:
    is_wall = isinstance(given, datetime) and given.tzinfo is None
    return in_zone(given, zone()) if is_wall else given


def given_of(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def reworded(spec: ScheduleSpec, trigger: Trigger | None, given: dict[str, Any]) -> ScheduleSpec:
    """The definition with what was said; an empty text takes something back."""
    said = dict(given)
    if trigger is not None:
        one_zone(trigger, said.get("tz"))
        spec = msgspec.structs.replace(spec, trigger=str(trigger))
    zone = _zone_of(spec.trigger)
    if trigger is not None and trigger.tz and "tz" not in said:
        said["tz"] = trigger.tz
    own = {name for name in FOLLOWED if said.get(name)} | ({"tz"} if zone else set())
    if "tenant" in said:
        spec = _with_tenant(spec, said.pop("tenant"), own)
    for name in FOLLOWED:
        if name in said:
            spec = _with_new_value(spec, name, said.pop(name))
    changed = msgspec.structs.replace(_bounded(spec, said), **{name: _read(name, said[name]) for name in said})
    if changed.key_for and not changed.key:
        raise BadOption("--key-for needs a key to hold: this schedule has none; add --key TEXT")
    return check_spec(changed)


def _zone_of(text: str) -> str | None:
    """The zone that a rule names itself; a rule that cannot be read may still be reworded."""
    try:
        return trigger_from_text(text).tz
    except BadTrigger:
        return next((word.removeprefix("tz=") for word in text.split() if word.startswith("tz=")), None)


def _with_tenant(spec: ScheduleSpec, tenant: str, own: set[str]) -> ScheduleSpec:
    """A schedule that joins a tenant follows it in everything that the command does not give. One that changes its
    tenant keeps its values."""
    if not tenant:
        return msgspec.structs.replace(spec, tenant="", follows={})
    joining = {name: getattr(spec, name) for name in FOLLOWED if name not in own}
    return msgspec.structs.replace(
        spec, tenant=check_name("tenant", tenant), follows=spec.follows if spec.tenant else joining
    )


def _with_new_value(spec: ScheduleSpec, name: str, value: Any) -> ScheduleSpec:
    """Its own zone, queue or priority; taken back, its tenant says it again."""
    if value == "" and not spec.tenant:
        raise click.UsageError(f"--{name} '' leaves it to the schedule's tenant, and this one has none; give a value")
    if value == "":
        return msgspec.structs.replace(spec, follows={name: getattr(spec, name), **spec.follows})
    follows = {other: kept for other, kept in spec.follows.items() if other != name}
    if name == "tz":
        return msgspec.structs.replace(_in_zone(spec, value), follows=follows)
    read = check_name("queue", value) if name == "queue" else check_priority(value)
    return msgspec.structs.replace(spec, follows=follows, **{name: read})


def _in_zone(spec: ScheduleSpec, tz: str) -> ScheduleSpec:
    """In another zone, with its bounds on the same local days; a rule that names its zone names this one now."""
    name = find_zone(zone_name(tz) or "UTC").name
    text = text_in_zone(spec.trigger, name)
    if not _is_known(spec.tz):  # then its days are unknown too, and the new zone cannot keep them
        return msgspec.structs.replace(spec, trigger=text, tz=name)
    return followed(msgspec.structs.replace(spec, trigger=text, follows={"tz": name}), None)


def _is_known(tz: str) -> bool:
    try:
        find_zone(tz)
    except UnknownZone:
        return False
    return True


def _bounded(spec: ScheduleSpec, said: dict[str, Any]) -> ScheduleSpec:
    """With the bounds that were given, which are taken out: instants, or days in its zone."""
    for name in ("start", "end"):
        if name not in said:
            continue
        bound = said.pop(name)
        is_day = isinstance(bound, date) and not isinstance(bound, datetime)
        days = {*spec.day_bounds, name} if is_day else set(spec.day_bounds) - {name}
        at = bound_instant(name, bound, spec.tz) if bound else None
        kept = tuple(bounded for bounded in ("start", "end") if bounded in days)
        spec = msgspec.structs.replace(spec, day_bounds=kept, **{name: at})
    return spec


def _read(name: str, value: Any) -> Any:
    if name in {"grace", "jitter", "lookahead"}:
        return span_of(value) if value else 0
    if name == "key_for":
        return fine_span_of(value, least=1) if value else 0
    return value


def _span(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Refuse a duration that is none, before anything is done; only an edit may take one back."""
    return text if _is_taken_back(context, text) else check_duration(context, option, text)


def _fine_span(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Like _span, but also accepts less than a second."""
    return text if _is_taken_back(context, text) else check_fine_duration(context, option, text)


def _is_taken_back(context: click.Context, text: str | None) -> bool:
    return text == "" and context.info_name == "edit"


def _key(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    return None if text is None else check_key(text)


def _bound(_context: click.Context, _option: click.Parameter, text: str | None) -> date | str | None:
    """A day, an instant or wall time; an empty text takes it back."""
    return day_or_time_from(text) if text else text


def read_priority(_context: click.Context, _option: click.Parameter, text: str | None) -> int | str | None:
    """The number, if the text is one; a name is looked up later."""
    try:
        return int(text) if text else text
    except ValueError:
        return text
