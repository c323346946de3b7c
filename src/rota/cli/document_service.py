"""Runs queues of documents in this process alone, until a signal stops them."""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING

from rota.cli.endings import INTERRUPTED
from rota.cli.log_lines import set_up_logging
from rota.cli.observing import open_own_port
from rota.cli.output import say
from rota.cli.stopping import LOOK, Stopping
from rota.documents.service import QueueGroup
from rota.model.micros import SECOND, span_of
from rota.observe.logs import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.app import App
    from rota.cli.observing import Address
    from rota.documents.queue import DocumentQueue
    from rota.engine.events import Event

log = logging.getLogger("rota.documents")


def run_queues(
    app: App,
    queues: Sequence[DocumentQueue],
    *,
    drain: str | None,
    level: str | None,
    form: str | None,
    metrics_at: Address | None,
) -> int:
    """Start the queues, wait for a signal, stop them; return the exit code."""
    form = form or app.settings.log.format
    set_up_logging(level or app.settings.log.level or "info", form)
    log_documents(app, form)
    stopping, group = Stopping(), QueueGroup()
    stopping.listen()
    port = None if metrics_at is None else open_own_port(app, group, metrics_at)
    try:
        group.start_all(queues)
        if form == "text":
            say(f"running {', '.join(queue.name for queue in queues)}; Ctrl-C stops")
        first = stopping.news()
        log.info("%s: waiting for the handlers that run; once more stops at once", signal.Signals(first).name)
        _stop(group, (span_of(drain) if drain else app.settings.drain) / SECOND, stopping)
    finally:
        if port is not None:
            port.close()
    return INTERRUPTED if first == signal.SIGINT else 0


def _stop(group: QueueGroup, seconds: float, stopping: Stopping) -> None:
    """Wait for handlers up to so long, or until a second signal."""
    waiting = threading.Thread(target=group.stop, args=(seconds,), name="rota-stop", daemon=True)
    waiting.start()
    while waiting.is_alive():
        if stopping.is_asked_again:
            group.stop_now()
        waiting.join(LOOK)


def log_documents(app: App, form: str) -> None:
    """A line for each document that is done; JSON is for programs, and they must ask for it."""
    if log.isEnabledFor(logging.DEBUG if form == "json" else logging.INFO):
        app.on("document.done", _log_done)


def _log_done(event: Event) -> None:
    data = event.data
    log.info(
        "document %s of %s is done",
        one_line(data["document_id"]),
        data["queue"],
        extra={"rota": {"event": event.name, **data}},
    )
