"""Runs `top`: a live screen with the nodes, queues, running jobs, failures and next firings of a store."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import click

from rota.app import internals
from rota.cli.keyboard import keys
from rota.cli.options import app_on_store, app_option, check_duration, output_option, store_option
from rota.cli.top_facts import Pace, TopFacts, look
from rota.cli.top_screen import drawn, plain
from rota.cli.words import first_line
from rota.errors import StoreError
from rota.model.micros import SECOND, span_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.live import Live

    from rota.app import App
    from rota.cli.output import Output

LEAST = 0.2  # seconds of rest between two looks, however slow the store: it has better things to do


@click.command(epilog="q or Ctrl-C ends it. In a pipe it prints one snapshot and ends, as with --once.")
@click.argument("named", required=False, metavar="[TARGET]")
@click.option(
    "--every",
    default="1s",
    metavar="DURATION",
    callback=check_duration,
    help="The time between two updates.  [default: 1s]",
)
@click.option("--once", is_flag=True, help="Print one snapshot and end.")
@app_option
@store_option
@output_option
def top(named: str | None, target: str | None, store_url: str | None, every: str, out: Output, *, once: bool) -> None:
    """Watch nodes, queues, jobs and schedules live."""
    app = app_on_store(named or target, store_url)
    try:
        if once or out.form != "table" or not sys.stdout.isatty():
            facts = look(app.open(), Pace(), internals(app).redaction)
            out.page(facts, lambda: plain(facts))
        else:
            watch(app, span_of(every) / SECOND)
    finally:
        app.close()


def watch(app: App, every: float) -> None:
    """Read the store and draw the screen until the user quits."""
    from rich.live import Live  # noqa: PLC0415 - only a terminal needs rich, and it is slow to import

    signals: list[int] = []  # signals; one that comes in the middle of a finalizer interrupts nothing

    def interrupt(number: int, _: object) -> NoReturn:
        signals.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:  # the terminal is put in order whatever ends this
        with keys() as wait, Live(screen=True, auto_refresh=False) as live:
            _show(app, live, wait, every, signals)
    except KeyboardInterrupt:
        pass  # one of the two ways to end it
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(app: App, live: Live, wait: Callable[[float], str], every: float, signals: list[int]) -> None:
    pace, facts, trouble = Pace(), look(app.open(), Pace(), internals(app).redaction), ""
    pressed = ""
    while not signals and "q" not in pressed.lower():
        began = time.monotonic()
        facts, trouble = _look(app, pace, facts)
        live.update(drawn(facts, trouble, live.console.height), refresh=True)
        pressed = wait(max(LEAST, every - (time.monotonic() - began)))


def _look(app: App, pace: Pace, before: TopFacts) -> tuple[TopFacts, str]:
    """The present facts; if the store cannot be read, the last ones and the reason."""
    try:
        return look(app.open(), pace, internals(app).redaction), ""
    except StoreError as err:
        return before, f"the store does not answer, this is old: {first_line(str(err))}"
