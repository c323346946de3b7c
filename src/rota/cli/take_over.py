"""Runs `import django-celery-beat --take-over` and `--give-back`: moves items between beat and Rota one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from rota.app import internals
from rota.cli.import_run import finish
from rota.cli.output import Output, say, warn, write
from rota.cli.words import count, printable
from rota.errors import Refused
from rota.importers.beat_source import SYSTEM
from rota.importers.beat_switches import BeatSwitches
from rota.importers.django_celery_beat import PeriodicTask
from rota.importers.django_database import DjangoDatabase
from rota.importers.found import Item, distinct
from rota.importers.take_over import Context, Moved, check_beat, give_back, reason_to_stay, take
from rota.importers.take_over_record import UNDER_WAY
from rota.model.micros import datetime_of
from rota.model.secrets.masking import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.app import App
    from rota.cli.import_run import Choices
    from rota.importers.beat_source import Source
    from rota.importers.import_plan import Import
    from rota.importers.take_over_record import TakeOver
    from rota.store.contract import Store

MOVED = {"taken", "back", "released"}
NAMED = 5  # items of other sources that an error names


class MoveOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    takes: bool
    gives: bool
    only: tuple[str, ...]  # names or ids; empty: all
    patience: float  # seconds
    is_beat_stopped: bool

    @property
    def moves(self) -> bool:
        return self.takes or self.gives


class Pair(Struct, frozen=True, kw_only=True):
    """An item, and its row as it is without a take-over."""

    item: Item
    row: PeriodicTask


def restored(rows: Sequence[PeriodicTask], records: dict[str, TakeOver]) -> list[PeriodicTask]:
    """The rows, each with its own start time if a take-over has put another one."""
    held = {record.row: record for record in records.values()}
    return [
        msgspec.structs.replace(row, start_time=held[row.id].before)
        if row.id in held and row.start_time == held[row.id].until
        else row
        for row in rows
    ]


def paired(items: Sequence[Item], rows: Sequence[PeriodicTask], records: dict[str, TakeOver]) -> list[Pair]:
    """Each item under the id that its take-over knows: the item may have been renamed since."""
    there = {row.id for row in rows}
    known = {record.row: name for name, record in records.items() if record.row in there}
    named = [*known.values(), *(item.id for item, row in zip(items, rows, strict=True) if row.id not in known)]
    free = iter(distinct(named)[len(known) :])  # an item that now has the old name of another one gets its own id
    return [
        Pair(item=msgspec.structs.replace(item, id=known.get(row.id) or next(free)), row=row)
        for item, row in zip(items, rows, strict=True)
    ]


def reasons(records: dict[str, TakeOver]) -> dict[str, str]:
    """Why an import leaves these schedules alone."""
    return {name: _reason(record) for name, record in records.items()}


def _reason(record: TakeOver) -> str:
    if record.step in UNDER_WAY:
        return "its take-over is not finished; run --take-over or --give-back again"
    return "it was taken over from beat" if record.step == "taken" else "it was given back to beat"


def check_options(choices: Choices, options: MoveOptions) -> None:
    """Refuse options that contradict each other, before anything is read."""
    if options.takes and options.gives:
        raise click.UsageError("--take-over and --give-back exclude each other")
    if choices.retires and (options.moves or options.only):
        raise click.UsageError("--retire belongs to a plain import of all items; run that on its own")
    if options.moves and choices.file is not None:
        raise click.UsageError("--to writes a file, and a take-over needs the store; leave one of them out")
    if options.moves and choices.is_off:
        verb = "--take-over turns schedules on" if options.takes else "--give-back turns schedules off"
        raise click.UsageError(f"{verb}, so --disabled has no meaning with it; leave one of them out")


def choose(pairs: list[Pair], only: Sequence[str]) -> list[Pair]:
    """The items that --only names, or all."""
    chosen = [pair for pair in pairs if not only or {pair.item.id, pair.item.name} & set(only)]
    _check_known(only, chosen)
    return chosen


def warn_of_both(found: Import, pairs: list[Pair]) -> None:
    """A plain import leaves beat alone: both systems run what is on in both."""
    on = {pair.item.id for pair in pairs if pair.row.enabled}
    here = {one.item.id for one in found.items if one.state != "left" and one.after and one.after.is_enabled}
    both = on & here
    if both:
        warn(
            f"{count(len(both), 'item')} {'is' if len(both) == 1 else 'are'} on in beat and in Rota: while beat runs, "
            "both systems run what is on in both; --take-over moves it to Rota, and --disabled imports it switched off"
        )


def move(app: App, choices: Choices, url: str, source: Source, chosen: list[Pair], options: MoveOptions) -> None:
    """Take items over, or return them, one after the other."""
    _check_source(source, url, chosen, options)
    if options.takes:
        _prepare(app, choices, source, chosen)
    if choices.is_dry:
        foreseen = _would_take(app, source, chosen) if options.takes else _would_give(app, source, chosen, options)
        _report(choices, foreseen)
        return
    database = DjangoDatabase(url)
    try:
        context = Context(
            store=app.open(),
            switches=BeatSwitches(database),
            source=source.origin,
            by=choices.by,
            new_id=internals(app).new_id,
            patience=options.patience,
            is_beat_stopped=options.is_beat_stopped,
        )
        moves = (
            _taken(app, context, source, chosen)
            if options.takes
            else _given_back(context, source.records, chosen, options)
        )
        _report(choices, moves)
        context.switches.forget_answered()
    finally:
        database.close()


def _check_source(source: Source, url: str, chosen: list[Pair], options: MoveOptions) -> None:
    """Refuse another spelling of a database: its items would look as if nobody had taken them over."""
    if source.records:
        return
    wanted = {pair.item.id for pair in chosen}
    others = {
        name: one for name, one in source.others.items() if one.step != "back" and (options.gives or name in wanted)
    }
    if others:
        names = [f"{name} (from {one.source.removeprefix(f'{SYSTEM} ')})" for name, one in others.items()]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        todo = "give that URL" if options.gives else "give that URL, or choose another --prefix if this is another site"
        raise Refused(
            f"nothing was taken over from {masked(url)}, but from another source: {', '.join(names[:NAMED])}{more}; "
            f"if it is the same database, {todo}"
        )


def _prepare(app: App, choices: Choices, source: Source, pairs: list[Pair]) -> None:
    """Import what is new, switched off. What was taken over is not made again if somebody removed it."""
    if not len(internals(app).registry):
        raise click.UsageError("--take-over needs the app, to see that it has the tasks; name it with --app")
    taken = {name for name, record in source.records.items() if record.step == "taken"}
    items = [pair.item for pair in pairs if pair.item.id not in taken]
    if not items:
        return
    finish(
        app,
        msgspec.structs.replace(choices, is_off=True),
        SYSTEM,
        source.name,
        items,
        left=reasons(source.records),
        is_shown=False,
        is_whole=False,
    )


def _check_known(only: Sequence[str], chosen: list[Pair]) -> None:
    known = {name for pair in chosen for name in (pair.item.id, pair.item.name)}
    for name in only:
        if name not in known:
            raise click.UsageError(f"--only names {name!r}, and no item of django-celery-beat has this name or id")


def _taken(app: App, context: Context, source: Source, pairs: list[Pair]) -> Iterator[Moved]:
    check_beat(context)
    for pair in pairs:
        yield _kept(app, context.store, source, pair) or take(context, pair.item, pair.row)


def _would_take(app: App, source: Source, pairs: list[Pair]) -> Iterator[Moved]:
    for pair in pairs:
        record = source.records.get(pair.item.id)
        yield _kept(app, app.open(), source, pair) or Moved(id=pair.item.id, state="take", says=_plan_of(record))


def _plan_of(record: TakeOver | None) -> str:
    if record is None or record.step in {"taken", "back"}:
        return "it would go off in beat, and on in Rota"
    if record.step in {"releasing", "returning"}:
        return "it is being given back, so it would be refused; finish that first with --give-back"
    return "its take-over was not finished, and would go on"


def _kept(app: App, store: Store, source: Source, pair: Pair) -> Moved | None:
    """Why an item stays where it is; None if it is to be taken over."""
    stays = reason_to_stay(store, pair.item, pair.row, source.records.get(pair.item.id))
    spec = pair.item.spec
    if spec is None or (stays is not None and source.records.get(pair.item.id) is not None):
        return stays
    says = ""
    if internals(app).registry.find(spec.task) is None:
        goes_on = "beat goes on with it" if pair.row.enabled else "it is off in django-celery-beat"
        says = f"the app has no task {spec.task!r}; {goes_on}"
    elif not _is_ours(store, source, pair):
        says = "the schedule of this id is not an import from here; choose another --prefix"
    return Moved(id=pair.item.id, state="left", says=says) if says else stays


def _is_ours(store: Store, source: Source, pair: Pair) -> bool:
    """Whether the schedule is this import's. A dry run has made none."""
    found = store.get_schedules([pair.item.id])
    return not found or source.has(found[0].origin.app)


def _names(records: dict[str, TakeOver], pairs: list[Pair], options: MoveOptions) -> list[str]:
    chosen = {pair.item.id for pair in pairs}
    return [name for name in records if name in chosen or not options.only]


def _given_back(
    context: Context, records: dict[str, TakeOver], pairs: list[Pair], options: MoveOptions
) -> Iterator[Moved]:
    by_id = {pair.item.id: pair for pair in pairs}
    is_changed = False
    for name in _names(records, pairs, options):
        pair = by_id.get(name)
        moved = give_back(context, name, None if pair is None else pair.item, None if pair is None else pair.row)
        is_changed = is_changed or moved.state in MOVED
        yield moved
    if is_changed and not context.is_beat_stopped:
        _confirm(lambda: check_beat(context))


def _would_give(app: App, source: Source, pairs: list[Pair], options: MoveOptions) -> Iterator[Moved]:
    rows = {pair.row.id for pair in pairs}
    for name in _names(source.records, pairs, options):
        record = source.records[name]
        yield _would_give_one(app.open(), name, record, is_there=record.row in rows)


def _would_give_one(store: Store, name: str, record: TakeOver, *, is_there: bool) -> Moved:
    if record.step == "back":
        return Moved(id=name, state="unchanged", says="it is beat's already")
    if not is_there:
        says = f"{record.name!r} is no longer in django-celery-beat, so it cannot be given back"
        return Moved(id=name, state="left", says=says)
    if record.step in {"holding", "releasing"}:
        return Moved(id=name, state="release", says="its take-over was not finished; beat would go on with it")
    found = store.get_schedules([name])
    if found and found[0].is_spent:
        return Moved(id=name, state="left", says="it has run as often as it may")
    has_run = bool(found) and not (record.never_ran and found[0].fired_through == record.through)
    through = f" after {datetime_of(found[0].fired_through):%Y-%m-%d %H:%M:%S} UTC" if has_run else " with it"
    return Moved(id=name, state="give back", says=f"it would go off in Rota, and beat would go on{through}")


def _confirm(check: Callable[[], None]) -> None:
    try:
        check()
    except TimeoutError:
        warn("beat did not answer; it goes on with these items when it runs")


def _report(choices: Choices, moves: Iterator[Moved]) -> None:
    """Print what becomes of each item as soon as it is known."""
    done = []
    for one in moves:
        done.append(one)
        if choices.form == "table":
            write(printable(f"{one.id}  {one.state}: {one.says}"))
    if choices.form != "table":
        Output("json" if choices.form == "yaml" else choices.form).rows(done, [], Moved, lambda one: one, empty="")
    if choices.is_dry:
        number = sum(one.state in {"take", "give back", "release"} for one in done)
        left = f"{count(len(done) - number, 'item')} left as they are"
        say(f"nothing was written: {count(number, 'item')} would be moved, {left}")
        return
    number = sum(one.state in MOVED for one in done)
    say(f"{count(number, 'item')} moved, {count(len(done) - number, 'item')} left as they are")
