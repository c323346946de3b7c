"""import django-celery-beat --take-over and --give-back: moves items between beat and Rota, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from rota.app import internals
from rota.cli.import_run import finish
from rota.cli.output import Output, say, warn, write
from rota.cli.words import count, printable
from rota.importers.beat_switches import BeatSwitches
from rota.importers.bringing import origin_of
from rota.importers.django_celery_beat import PeriodicTask
from rota.importers.django_database import DjangoDatabase
from rota.importers.found import Item, distinct
from rota.importers.take_over import Context, Moved, check_beat, give_back, take
from rota.importers.take_over_record import UNDER_WAY, read_all
from rota.model.secrets.masking import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.app import App
    from rota.cli.import_run import Choices
    from rota.importers.take_over_record import TakeOver

SYSTEM = "django-celery-beat"


class Wish(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

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


def known_records(app: App, source: str) -> dict[str, TakeOver]:
    """How far the take-overs from this database have come, by the id of the schedule."""
    return read_all(app.open(), origin_of(SYSTEM, masked(source)).app)


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


def move(app: App, choices: Choices, source: str, pairs: list[Pair], records: dict[str, TakeOver], wish: Wish) -> None:
    """Take items over, or give them back, one after the other."""
    if wish.takes == wish.gives:
        raise click.UsageError("--take-over and --give-back exclude each other")
    if choices.file is not None:
        raise click.UsageError("--to writes a file, and a take-over needs the store; leave one of them out")
    if choices.retires:
        raise click.UsageError("--retire belongs to a plain import; run that on its own")
    chosen = [pair for pair in pairs if not wish.only or {pair.item.id, pair.item.name} & set(wish.only)]
    _check_known(wish.only, chosen)
    if wish.takes:
        _prepare(app, choices, source, chosen, records)
    if choices.is_dry:
        return
    database = DjangoDatabase(source)
    try:
        context = Context(
            store=app.open(),
            switches=BeatSwitches(database),
            source=origin_of(SYSTEM, masked(source)).app,
            by=choices.by,
            new_id=internals(app).new_id,
            patience=wish.patience,
            is_beat_stopped=wish.is_beat_stopped,
        )
        moves = _taken(app, context, chosen) if wish.takes else _given_back(context, chosen, records, wish)
        _report(choices, moves)
        context.switches.forget_answered()
    finally:
        database.close()


def _prepare(app: App, choices: Choices, source: str, pairs: list[Pair], records: dict[str, TakeOver]) -> None:
    """Import what is new, switched off."""
    if not len(internals(app).registry):
        raise click.UsageError("--take-over needs the app, to see that it has the tasks; name it with --app")
    off = msgspec.structs.replace(choices, is_off=True)
    finish(
        app,
        off,
        SYSTEM,
        masked(source),
        [pair.item for pair in pairs],
        left=reasons(records),
        is_shown=choices.is_dry,
        is_whole=False,
    )


def _check_known(only: Sequence[str], chosen: list[Pair]) -> None:
    known = {name for pair in chosen for name in (pair.item.id, pair.item.name)}
    for name in only:
        if name not in known:
            raise click.UsageError(f"--only names {name!r}, and no item of django-celery-beat has this name or id")


def _taken(app: App, context: Context, pairs: list[Pair]) -> Iterator[Moved]:
    check_beat(context)
    for pair in pairs:
        spec = pair.item.spec
        if spec is not None and internals(app).registry.find(spec.task) is None:
            yield Moved(id=pair.item.id, state="left", says=f"the app has no task {spec.task!r}; beat goes on with it")
        elif not _is_ours(context, pair):
            says = "the schedule of this id is not an import from here; choose another --prefix"
            yield Moved(id=pair.item.id, state="left", says=says)
        else:
            yield take(context, pair.item, pair.row)


def _is_ours(context: Context, pair: Pair) -> bool:
    """Whether the schedule is this import's, or its take-over has begun. One that cannot be imported has none."""
    found = context.store.get_schedules([pair.item.id])
    return pair.item.spec is None or (bool(found) and found[0].origin.app == context.source)


def _given_back(context: Context, pairs: list[Pair], records: dict[str, TakeOver], wish: Wish) -> Iterator[Moved]:
    by_id = {pair.item.id: pair for pair in pairs}
    names = [name for name in records if name in by_id or not wish.only]
    for name in names:
        pair = by_id.get(name)
        yield give_back(context, name, None if pair is None else pair.item, None if pair is None else pair.row)
    if names and not context.is_beat_stopped:
        _confirm(lambda: check_beat(context))


def _confirm(check: Callable[[], None]) -> None:
    try:
        check()
    except TimeoutError:
        warn("beat did not answer; it goes on with these items when it runs")


def _report(choices: Choices, moves: Iterator[Moved]) -> None:
    """Say what becomes of each item as soon as it is known."""
    done = []
    for one in moves:
        done.append(one)
        if choices.form == "table":
            write(printable(f"{one.id}  {one.state}: {one.says}"))
    if choices.form != "table":
        Output("json" if choices.form == "yaml" else choices.form).rows(done, [], Moved, lambda one: one, empty="")
    number = sum(one.state in {"taken", "back", "released"} for one in done)
    say(f"{count(number, 'item')} moved, {count(len(done) - number, 'item')} left as they are")
