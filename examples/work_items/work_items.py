"""Recurring work items: each template makes one item per occurrence, at 00:05 in its project's zone.

A project is a tenant, a template is a schedule made at run time, an item is a row in a table of our own.
"""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rota import App, calendar, current_job

if TYPE_CHECKING:
    from rota.triggers import Trigger

UNITS = {"daily": "days", "weekly": "weeks", "monthly": "months", "yearly": "years"}
TABLE = """
CREATE TABLE IF NOT EXISTS item (
    template TEXT NOT NULL,
    occurrence TEXT NOT NULL,
    project TEXT NOT NULL,
    title TEXT NOT NULL,
    day TEXT NOT NULL,
    PRIMARY KEY (template, occurrence)  -- however often a job runs, its occurrence has one item
)
"""

app = App(name="work-items")


def connect() -> sqlite3.Connection:
    """Our own database, beside the one of the jobs."""
    connection = sqlite3.connect(os.environ.get("WORK_ITEMS_DB", "items.db"))
    connection.execute(TABLE)
    return connection


@app.task
def create_item(project: str, title: str) -> None:
    """Make the item of this occurrence, unless an earlier attempt has made it."""
    at = current_job.occurrence or datetime.now(UTC)  # who runs a template by hand gets an item of today
    key = current_job.occurrence.isoformat() if current_job.occurrence else current_job.id
    day = at.astimezone(ZoneInfo(app.tenants.get(project).tz)).date()
    with closing(connect()) as db, db:
        db.execute(
            "INSERT OR IGNORE INTO item VALUES (?, ?, ?, ?, ?)",
            (current_job.schedule_id, key, project, title, day.isoformat()),
        )


def put_project(name: str, tz: str) -> None:
    """Add a project, or move it to another zone: all its templates follow."""
    app.tenants.put(name, tz=tz)


def put_template(
    project: str, title: str, interval: str, *, times: int = 1, start: date | None = None, end: date | None = None
) -> str:
    """Add a template, or change it; answers its id. It begins with its start date and ends with its end date."""
    template = f"{project}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}"
    app.schedules.put(
        template,
        create_item.job(project, title),
        rule_of(interval, times, start),
        tenant=project,
        start=start,
        end=end,
        catchup="all",  # a day on which nothing was alive has its item all the same
        overlap="allow",  # items do not wait for each other
        description=title,
    )
    return template


def rule_of(interval: str, times: int, start: date | None) -> Trigger:
    """At 00:05, every so many days, weeks, months or years, counted from the start."""
    every = {UNITS[interval]: times}
    return calendar(
        days=every.get("days"),
        weeks=every.get("weeks"),
        months=every.get("months"),
        years=every.get("years"),
        at="00:05",
        start=start,
    )


def items(project: str | None = None) -> list[tuple[str, str, str]]:
    """The items by day: day, project, title."""
    with closing(connect()) as db:
        found = db.execute("SELECT day, project, title FROM item ORDER BY day, project, title").fetchall()
    return [item for item in found if project is None or item[1] == project]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("project", help="add a project, or move it to another zone")
    add.add_argument("name")
    add.add_argument("tz")
    add = commands.add_parser("template", help="add a template, or change it")
    add.add_argument("project")
    add.add_argument("title")
    add.add_argument("interval", choices=UNITS)
    add.add_argument("--times", type=int, default=1, help="every so many days, weeks, …")
    add.add_argument("--start", type=date.fromisoformat)
    add.add_argument("--end", type=date.fromisoformat)
    show = commands.add_parser("items", help="list the items")
    show.add_argument("project", nargs="?")
    run(parser.parse_args())


def run(said: argparse.Namespace) -> None:
    match said.command:
        case "project":
            put_project(said.name, said.tz)
        case "template":
            template = put_template(
                said.project, said.title, said.interval, times=said.times, start=said.start, end=said.end
            )
            print(f"{template}: next on {app.schedules.get(template).next_run}")
        case _:
            for day, project, title in items(said.project):
                print(f"{day}  {project}  {title}")


if __name__ == "__main__":
    main()
