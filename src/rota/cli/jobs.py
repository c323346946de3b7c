"""Runs `jobs`: lists and shows them, reads their logs, and retries, cancels or deletes one or all that match."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from rota.app import internals
from rota.cli.endings import FAILED
from rota.cli.failures import show_failures
from rota.cli.groups import Group
from rota.cli.job_page import columns, page
from rota.cli.naming import one_job_id
from rota.cli.options import by_option, on_a_store, output_option
from rota.cli.output import Output, say, write
from rota.cli.words import count, instant_with_millis, printable
from rota.errors import BadOption, JobNotFound
from rota.inspector.facts.job import JobFacts, LineFacts, job_facts, job_page_facts, line_facts
from rota.inspector.search import LOOKED_THROUGH, found_jobs, has_older, search_from
from rota.model.micros import datetime_of
from rota.operations.bulk import BATCH, CANCEL, DELETE, RETRY, Verb, carry_out, check_ids, fitting, matching_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rota.app import App
    from rota.client.jobs import LogEntry
    from rota.inspector.search import Search
    from rota.operations.bulk import Tally
    from rota.store.contract import Store

SHOWN_BEFORE = 10  # of the jobs that a dry run names
LOOK = 0.5  # seconds between two looks for new log lines

WHERE_HELP = (
    "Only jobs for which every term holds: 'state:failed,cancelled task:mail.* queue:q schedule:id key:k since:2h "
    "attempts:>1 args.user_id:42'."
)


class BulkFacts(Struct, kw_only=True):
    """The result of a change to many jobs, or of its dry run."""

    action: str
    matched: int
    changed: int
    left: int
    dry_run: bool


@click.group(cls=Group)
def jobs() -> None:
    """List and show jobs; retry, cancel or delete them."""


@jobs.command("list")
@click.option("--where", default="", metavar="FILTER", help=WHERE_HELP)
@click.option(
    "-n", "--limit", type=click.IntRange(1), metavar="N", default=50, help="Show this many at most.  [default: 50]"
)
@click.option("--all", "is_all", is_flag=True, help=f"Search arguments in all jobs, not the newest {LOOKED_THROUGH:,}.")
@on_a_store
@output_option
def list_jobs(app: App, where: str, limit: int, out: Output, *, is_all: bool) -> None:
    """List jobs, newest first."""
    store, shown = app.open(), internals(app).redaction
    search = search_from(where, store.now())
    parameters, look = internals(app).registry.parameters_of, None if is_all else LOOKED_THROUGH
    found = list(found_jobs(store, search, shown, parameters, most=limit + 1, look=look))
    now = datetime_of(store.now())
    is_cut = look is not None and len(found) <= limit and has_older(store, search)
    newest = f"newest {LOOKED_THROUGH:,} jobs that the other terms find"
    among = f" among the {newest}" if is_cut else ""
    empty = f"no job matches{among}{_full_name(search)}" if where else f"{store.describe()} has no jobs"
    out.rows(found[:limit], columns(now, shown), JobFacts, lambda job: job_facts(job, shown), empty=empty)
    if is_cut:
        say(f"only the {newest} were searched; --all searches the older ones too")
    if len(found) > limit:
        say(f"these are the newest {limit:,}; there are more: raise --limit, or narrow --where")


def _full_name(search: Search) -> str:
    """A hint for a task's name without its module: `rota enqueue` accepts it, a search needs the whole name."""
    task = search.where.task
    return "" if task is None or "." in task else f"; write the task's whole name, for example task:jobs.{task}"


@jobs.command("show")
@click.argument("job_id", metavar="ID")
@on_a_store
@output_option
def show_job(app: App, job_id: str, out: Output) -> None:
    """Show everything about one job. The beginning of an id is enough if it names one job."""
    record = app.jobs.read(one_job_id(app.open(), job_id))
    now = datetime_of(app.open().now())
    out.page(job_page_facts(record, internals(app).redaction), lambda: page(record, now, internals(app).redaction))


@jobs.command("logs")
@click.argument("job_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Continue until the job ends.")
@on_a_store
@output_option
def show_logs(app: App, job_id: str, out: Output, *, follow: bool) -> None:
    """Show what a job wrote. The beginning of an id is enough if it names one job."""
    job_id = one_job_id(app.open(), job_id)
    if follow and out.form not in {"table", "jsonl"}:
        raise click.UsageError(f"--follow writes line by line, which {out.form} cannot; use -o jsonl")
    lines = _follow(app, job_id) if follow else _lines(app, job_id)
    if out.form == "table":
        _write_lines(lines)
    elif follow:
        for line in lines:
            out.page(line_facts(line), list)
    else:
        out.rows(list(lines), [], LineFacts, line_facts, empty="")


jobs.add_command(show_failures)


def bulk_command(verb: Verb) -> Callable[[Callable[..., None]], click.Command]:
    """A command that changes the jobs which are named, or all that match."""

    def make(function: Callable[..., None]) -> click.Command:
        for option in reversed(_BULK_OPTIONS):
            function = option(function)
        return jobs.command(verb.name)(function)

    return make


_BULK_OPTIONS = (
    click.argument("ids", nargs=-1, metavar="[ID]..."),
    click.option("--where", metavar="FILTER", help=WHERE_HELP),
    click.option("--dry-run", is_flag=True, help="Only show what would be done."),
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option("--reason", default=None, help="Why; recorded in the job's history."),
    by_option,
)


@bulk_command(RETRY)
@on_a_store
@output_option
def retry_jobs(app: App, out: Output, **options: Any) -> None:
    """Put failed or cancelled jobs back into their queue. The beginning of an id is enough if it names one job.

    With --where it asks first. In a script or a pipe it needs --yes.
    """
    _change(app, RETRY, out, **options)


@bulk_command(CANCEL)
@on_a_store
@output_option
def cancel_jobs(app: App, out: Output, **options: Any) -> None:
    """Cancel waiting jobs; ask running ones to stop. The beginning of an id is enough if it names one job.

    With --where it asks first. In a script or a pipe it needs --yes.
    """
    _change(app, CANCEL, out, **options)


@bulk_command(DELETE)
@on_a_store
@output_option
def delete_jobs(app: App, out: Output, **options: Any) -> None:
    """Delete jobs that have ended. The beginning of an id is enough if it names one job.

    With --where it asks first. In a script or a pipe it needs --yes.
    """
    _change(app, DELETE, out, **options)


def _change(
    app: App,
    verb: Verb,
    out: Output,
    *,
    ids: tuple[str, ...],
    where: str | None,
    dry_run: bool,
    yes: bool,
    reason: str | None,
    by: str,
) -> None:
    store = app.open()
    chosen = _choose(app, verb, ids, where)
    if dry_run:
        _show_plan(app, verb, chosen, out)
        return
    if where is not None and chosen and not yes:
        _ask(verb, len(chosen))
    tally = carry_out(store, verb, chosen, reason or "", by, _progress(verb, len(chosen)))
    facts = BulkFacts(action=verb.name, matched=len(chosen), changed=tally.changed, left=tally.left, dry_run=False)
    out.page(facts, lambda: [_sentence(verb, tally)])
    if where is not None and not chosen and (hint := _full_name(search_from(where, store.now()))):
        say(f"no job matches{hint}")
    if tally.left:
        say(f"{count(tally.left, 'job')} moved meanwhile and stayed as they were; run it again for those")
        click.get_current_context().exit(FAILED)


def _sentence(verb: Verb, tally: Tally) -> str:
    """retried 3 jobs"""
    ended = tally.changed - tally.stopping
    words = [f"{verb.done} {count(ended, 'job')}"] if ended or not tally.stopping else []
    if tally.stopping:
        words.append(f"asked {count(tally.stopping, 'running job')} to stop")
    return "; ".join(words)


def _choose(app: App, verb: Verb, ids: tuple[str, ...], where: str | None) -> list[str]:
    store = app.open()
    if bool(ids) == (where is not None):
        raise click.UsageError(f"say which jobs to {verb.name}: name their ids, or give --where (not both)")
    if where is None:
        return check_ids(store, verb, list(dict.fromkeys(_named(store, verb, name) for name in ids)))
    if not where.strip():
        raise click.UsageError(f"--where is empty, which would {verb.name} every job; give a filter such as queue:mail")
    inner = internals(app)
    search = search_from(where, store.now())
    chosen = matching_ids(store, verb, search, inner.redaction, inner.registry.parameters_of)
    if has_older(store, fitting(verb, search)):
        say(
            f"only the newest {LOOKED_THROUGH:,} jobs that the other terms find were searched; for older ones, add a "
            "term such as until:2h"
        )
    return chosen


def _named(store: Store, verb: Verb, name: str) -> str:
    try:
        return one_job_id(store, name)
    except (BadOption, JobNotFound) as err:
        raise type(err)(f"{err}. Nothing was {verb.done}") from err


def _show_plan(app: App, verb: Verb, ids: list[str], out: Output) -> None:
    facts = BulkFacts(action=verb.name, matched=len(ids), changed=0, left=0, dry_run=True)
    if out.form == "table" and ids:
        store, shown = app.open(), internals(app).redaction
        first = store.get_jobs(ids[:SHOWN_BEFORE])
        at = datetime_of(store.now())
        out.rows(first, columns(at, shown), JobFacts, lambda job: job_facts(job, shown), empty="")
        if len(ids) > len(first):
            say(f"… and {len(ids) - len(first):,} more")
    out.page(facts, lambda: [f"{count(len(ids), 'job')} would be {verb.done}; nothing was changed"])


def _ask(verb: Verb, number: int) -> None:
    """Ask for confirmation. Without a terminal nobody can answer: a change to all that match needs --yes then."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            f"--where matches {count(number, 'job')}, and nobody can be asked here whether to {verb.name} "
            f"{'it' if number == 1 else 'them'}; add --yes, or look first with --dry-run"
        )
    if not click.confirm(f"{verb.name} {count(number, 'job')}?", err=True):
        say("nothing was changed")
        click.get_current_context().exit(FAILED)


def _progress(verb: Verb, total: int) -> Callable[[int], None]:
    """Show the progress, if it takes long."""
    seen = 0

    def show(number: int) -> None:
        nonlocal seen
        seen += number
        if total > BATCH * 5 and seen % (BATCH * 5) == 0:
            say(f"{verb.name}: {seen:,} of {total:,}")

    return show


def _lines(app: App, job_id: str, after: int = 0) -> Iterator[LogEntry]:
    while lines := app.jobs.logs(job_id, after=after):
        yield from lines
        after = lines[-1].number


def _follow(app: App, job_id: str) -> Iterator[LogEntry]:
    """Lines as they come, until the job has ended and all were shown."""
    after = 0
    while True:
        has_ended = app.jobs.read(job_id).state.is_final
        for line in _lines(app, job_id, after):
            after = line.number
            yield line
        if has_ended:
            return
        time.sleep(LOOK)


def _write_lines(lines: Iterable[LogEntry]) -> None:
    line = None
    for line in lines:
        write(f"{instant_with_millis(line.at)} {line.level:<7} {printable(line.text)}")
    if line is None:
        say("the job wrote nothing")
