"""Runs `documents`: runs queues whose jobs are documents of a collection or table, and shows their documents."""

from __future__ import annotations

import logging
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rota.app import App
from rota.cli.columns import Column
from rota.cli.document_service import run_queues
from rota.cli.endings import FAILED
from rota.cli.groups import Group
from rota.cli.observing import Address, observed
from rota.cli.options import app_option, config_option, output_option
from rota.cli.output import Output, aligned, heading, say
from rota.cli.run import drain_option, level_option
from rota.cli.target import load_target
from rota.cli.words import first_line, printable, relative
from rota.documents.contract import STATES
from rota.documents.facts import document_facts, queue_facts
from rota.errors import BadSettings, StoreError
from rota.inspector.facts.document import (
    DocumentFindingFacts,
    DocumentQueueFacts,
    DocumentWhyFacts,
    QueuedDocumentFacts,
)
from rota.model.micros import datetime_of, optional_datetime
from rota.observe.logs import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from rota.documents.catalogue import Catalogue, QueueSummary
    from rota.documents.contract import DocumentFacts

log = logging.getLogger("rota.documents")

NONE = "no queue of documents is declared; `documents:` in rota.yaml declares them"


def beside_an_app(function: Callable[..., None]) -> Callable[..., None]:
    """A command about document queues: it gets an app whose store is not opened, and closes it at its end."""

    @app_option
    @config_option
    @wraps(function)
    def command(*, target: str | None, **options: Any) -> None:
        app = load_target(target).app if target else App()
        try:
            function(app, **options)
        finally:
            app.close()

    return command


@click.group(cls=Group)
def documents() -> None:
    """Run queues of documents, and show what is in them."""


@documents.command("run")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@drain_option
@level_option
@observed
@beside_an_app
def run_documents(
    app: App,
    names: tuple[str, ...],
    drain: str | None,
    log_level: str | None,
    log_format: str | None,
    metrics_at: Address | None,
) -> None:
    """Run the queues of rota.yaml and of the app, or those named, until a signal."""
    known = app.documents.catalogue
    queues = [known.queue(name) for name in dict.fromkeys(names or known.names)]
    if not queues:
        raise click.UsageError(NONE)
    code = run_queues(app, queues, drain=drain, level=log_level, form=log_format, metrics_at=metrics_at)
    click.get_current_context().exit(code)


@documents.command("list")
@click.argument("name", required=False)
@click.option("--state", type=click.Choice(STATES), help="Only documents in this state.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Show this many at most."
)
@beside_an_app
@output_option
def list_documents(app: App, name: str | None, state: str | None, limit: int, out: Output) -> None:
    """List all queues, or the documents of one, oldest first."""
    known = app.documents.catalogue
    if name is None:
        if state is not None:
            raise click.UsageError("--state is about the documents of one queue; name the queue")
        _list_queues(known, out)
        return
    queue = known.get(name)
    found = queue.documents(limit, state)
    now = datetime_of(queue.source.now())
    out.rows(found, _document_columns(now), QueuedDocumentFacts, document_facts, empty=f"{name} has no such document")
    if len(found) == limit and out.form == "table":
        say(f"these are the oldest {limit}; -n shows more")


@documents.command("check")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--fix", is_flag=True, help="First create the indexes and tables that are missing.")
@beside_an_app
@output_option
def check_documents(app: App, names: tuple[str, ...], out: Output, *, fix: bool) -> None:
    """Find what keeps documents from running; exit with 1 if there is something."""
    known = app.documents.catalogue
    queues = list(dict.fromkeys(names or known.names))
    if not queues:
        raise click.UsageError(NONE)
    for name in queues if fix else ():
        _prepare(known, name)
    found = [finding for name in queues for finding in app.documents.check(name)]
    if out.form == "table":
        _say_findings(queues, found)
    else:
        out.rows(found, [], DocumentFindingFacts, lambda finding: finding, empty="")
    click.get_current_context().exit(FAILED if any(finding.is_error for finding in found) else 0)


@documents.command("show")
@click.argument("name")
@click.argument("document_id", metavar="ID")
@beside_an_app
@output_option
def show_document(app: App, name: str, document_id: str, out: Output) -> None:
    """Show one document of the queue NAME: its state, times and last error."""
    facts = app.documents.get(name, document_id)
    out.page(facts, lambda: _document_page(facts))


@documents.command("why")
@click.argument("name")
@click.argument("document_id", metavar="ID")
@beside_an_app
@output_option
def why_document(app: App, name: str, document_id: str, out: Output) -> None:
    """Explain why the document ID of the queue NAME has not run, or what it waits for."""
    facts = app.documents.why(name, document_id)
    out.page(facts, lambda: _why_page(facts))


def _list_queues(known: Catalogue, out: Output) -> None:
    found = known.summaries()
    out.rows(found, _queue_columns(), DocumentQueueFacts, queue_facts, empty=NONE)
    if out.form == "table":
        for one in found:
            if one.error:
                say(f"{one.name} cannot be read: {printable(one.error)}")


def _queue_columns() -> list[Column[QueueSummary]]:
    return [
        Column("queue", lambda one: one.name),
        *(Column(state, _counter(state), is_number=True) for state in STATES),
        Column("handler", lambda one: one.handler, dropped=1),
        Column("source", lambda one: one.source, "wrap", dropped=2),
        Column("declared", lambda one: one.origin, dropped=3),
    ]


def _counter(state: str) -> Callable[[QueueSummary], str]:
    def cell(one: QueueSummary) -> str:
        return "-" if one.error else f"{'>' if state in one.more else ''}{one.states[state]:,}"

    return cell


def _document_columns(now: datetime) -> list[Column[DocumentFacts]]:
    return [
        Column("id", lambda one: one_line(one.id)),
        Column("state", lambda one: one.state),
        Column("due", lambda one: _when(one.sleep_until, now)),
        Column("interval", lambda one: one_line(one.interval or "-"), dropped=2),
        Column("failures", lambda one: str(one.failures), is_number=True, dropped=1),
        Column("error", lambda one: first_line(one.error) or "-", "wrap", dropped=3),
    ]


def _when(at: int | None, now: datetime) -> str:
    instant = optional_datetime(at)
    return "-" if instant is None else relative(instant, now)


def _prepare(known: Catalogue, name: str) -> None:
    """Create what is missing; what cannot be reached or loaded is one of the findings."""
    try:
        made = known.get(name).source.prepare()
    except (BadSettings, StoreError) as err:
        log.debug("%s was not prepared: %s", name, err)
        return
    for sentence in made:
        say(f"{name}: {sentence}")


def _say_findings(queues: list[str], found: list[DocumentFindingFacts]) -> None:
    for finding in found:
        word = click.style("problem" if finding.is_error else "warning", fg="red" if finding.is_error else "yellow")
        click.echo(f"{word}  {finding.queue}: {printable(finding.message)}")
        if finding.command:
            click.echo(f"         → {printable(finding.command)}")
    if not found:
        click.echo(f"nothing is wrong with {', '.join(queues)}")


def _document_page(facts: QueuedDocumentFacts) -> Iterator[str]:
    rows = [
        ["state", facts.state],
        ["due", "-" if facts.sleep_until is None else facts.sleep_until.isoformat()],
        ["interval", facts.interval or "-"],
        ["lock", f"until {facts.locked_until.isoformat()} by {facts.locked_by}" if facts.locked_until else "-"],
        ["failures", str(facts.failures)],
    ]
    yield heading(one_line(facts.id))
    yield from aligned([[name, printable(value)] for name, value in rows], indent="  ")
    if facts.error:
        yield printable(facts.error)


def _why_page(facts: DocumentWhyFacts) -> Iterator[str]:
    yield heading(facts.state)
    yield printable(facts.sentence)
    if facts.fix:
        yield f"{click.style('what to do:', fg='yellow')} {facts.fix}"
