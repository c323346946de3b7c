"""Runs `demo`: starts a sample app, with a worker, a scheduler and the dashboard."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from rota.cli import early
from rota.cli.banner import banner
from rota.cli.live_lines import LiveLines
from rota.cli.log_lines import set_up_logging
from rota.cli.options import check_duration, find_store
from rota.cli.output import say
from rota.cli.run import queues_of
from rota.cli.target import Target
from rota.cli.watching import Watching
from rota.cli.web import Beside, port_option
from rota.model.micros import SECOND, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CONCURRENCY = 8
DRAIN = "10s"  # longer than any of its jobs


@click.command()
@click.option("--for", "length", metavar="DURATION", callback=check_duration, help="Stop by itself after this long.")
@click.option("--store", "store_url", metavar="URL", help="Use this store, and keep it.  [default: a temporary file]")
@port_option
def demo(length: str | None, store_url: str | None, port: int | None) -> None:
    """Watch a sample app at work."""
    early.heed()
    from rota.cli.demo_app import make_app  # noqa: PLC0415 - no other command needs it

    # ROTA_STORE is not asked: nobody wants a sample's jobs where real ones are.
    with _store_url(store_url) as url:
        app = make_app(find_store(url, "rota"))
        set_up_logging("warning")
        lines, watching = LiveLines(app, shows_tracebacks=False), Watching()
        http = None
        try:
            app.open()
            http = Beside(app, port)
            app.schedules.sync()
            say(*banner(Target(app, "a sample shop"), queues_of(app), CONCURRENCY, is_scheduler=True))
            say(*http.greeting(), *_hints(url, is_shared=app.open().features.is_shared))
            watching.listen()
            lines.start()
            node = app.start(queues=queues_of(app), concurrency=CONCURRENCY, drain=DRAIN)
            if length:
                watching.end_after(span_of(length) / SECOND)
            watching.watch(app, node)
        finally:
            lines.stop()
            if http is not None:
                http.stop()
            app.close()


@contextmanager
def _store_url(given: str | None) -> Iterator[str]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="rota-demo-", ignore_cleanup_errors=True) as folder:
        yield f"sqlite:///{folder}/rota.db"


def _hints(url: str, *, is_shared: bool) -> Iterator[str]:
    yield ""
    if is_shared:
        yield "Look around from another shell, or press Ctrl-C to stop:"
        yield f"  export ROTA_STORE={url}"
        yield "  rota jobs list; rota schedules list; rota queues list; rota stats"
    else:
        yield "Press Ctrl-C to stop."
    yield ""
