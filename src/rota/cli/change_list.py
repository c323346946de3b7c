"""Shows changes as rows of a table: who changed what, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.options import on_a_store, output_option
from rota.cli.output import Output, heading, say, write
from rota.cli.words import beside, printable
from rota.errors import ScheduleNotFound
from rota.inspector.facts.change import WHOLE, ChangeFacts, change_facts, says_of
from rota.model.micros import datetime_of
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from rota.app import App
    from rota.inspector.changes import Change
    from rota.store.contract import Page

limit_option = click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=50,
    help="Show this many at most, newest first.  [default: 50]",
)


@click.command("changes")
@click.argument("schedule_id", metavar="[ID]", required=False)
@limit_option
@on_a_store
@output_option
def schedule_changes(app: App, schedule_id: str | None, limit: int, out: Output) -> None:
    """List who changed a schedule, when, and what; without ID, list all changes."""
    if schedule_id is None:
        found = read_changes(app.changes, limit)
        write_changes(app, found, out, limit=limit, empty="nothing was changed yet", is_of_one=False)
        return
    found = read_changes(lambda **page: app.schedules.changes(schedule_id, **page), limit)
    if not found and not app.open().get_schedules([schedule_id]):
        raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}, and no change of one is kept")
    write_changes(app, found, out, limit=limit, empty=f"no change of {schedule_id} is kept")


def read_changes(pages: Callable[..., Page[Change]], limit: int) -> list[Change]:
    """The newest changes, up to the given number."""
    page = pages(limit=min(limit, LARGEST_PAGE))
    found = list(page.items)
    while page.cursor is not None and len(found) < limit:
        page = pages(limit=min(limit - len(found), LARGEST_PAGE), cursor=page.cursor)
        found += page.items
    return found


def write_changes(
    app: App, changes: Sequence[Change], out: Output, *, limit: int, empty: str, is_of_one: bool = True
) -> None:
    if out.form != "table":
        out.rows(changes, [], ChangeFacts, change_facts, empty="")
        return
    now = datetime_of(app.open().now())
    for line in (line for change in changes for line in _lines(change, now, is_of_one=is_of_one)):
        write(line)
    if not changes:
        say(empty)
    elif len(changes) == limit:
        say(f"the newest {limit}; --limit shows more")


def change_lines(changes: Sequence[Change], now: datetime) -> Iterator[str]:
    """The part of a page that shows the last changes."""
    if not changes:
        return
    yield ""
    yield heading("last changes")
    for change in changes:
        yield from (f"  {line}" for line in _lines(change, now, is_short=True))


def _lines(change: Change, now: datetime, *, is_of_one: bool = True, is_short: bool = False) -> Iterator[str]:
    """The time, verb and author of each change, with its differences below. The short form omits creations and
    removals."""
    subject = "" if is_of_one else f"{heading(f'{change.kind} {change.name}')}: "
    yield f"{beside(change.at, now)}  {subject}{change.verb} by {printable(change.by)}"
    if not (is_short and change.verb in WHOLE):
        yield from (f"  {printable(line)}" for line in says_of(change))
