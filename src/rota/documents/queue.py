"""Makes the documents of a collection or table one-time, deferred and recurring jobs.

The loop (`feeder.py`) locks due documents in batches and writes what becomes of them. A second thread (`renewer.py`)
renews the locks of those that still run. Plain handlers run on worker threads, async ones on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from typing import TYPE_CHECKING, Any, Self

from rota.documents.contract import Source
from rota.documents.feeder import Feeder, Hooks, Pace
from rota.documents.handlers import Handler, call_here, calling, check_type
from rota.documents.renewer import Renewer
from rota.documents.reporter import Reporter
from rota.documents.rules import Timing
from rota.documents.runs import Running, make_caller
from rota.engine.events import Events
from rota.engine.executors.loop import LoopThread
from rota.engine.store_clock import StoreClock
from rota.errors import BadOption, Refused
from rota.keywords import known_keywords
from rota.model.jobs.retry import Backoff
from rota.model.micros import SECOND, fine_span_of, timeout_of
from rota.observe.logs import log_events
from rota.triggers.zone import find_zone, zone_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType

    from rota.documents.host import AppBeside
    from rota.documents.runs import DocumentRun
    from rota.engine.events import Event

log = logging.getLogger("rota.documents")

MOST_AT_ONCE = 10_000
LEAST_LOCK = 1_000  # ms

_ELSEWHERE = {  # the options of mongodb-cron
    "collection": "give it to the source: DocumentQueue(MongoSource(collection), …)",
    "onDocument": "on_document",
    "onStart": "on_start",
    "onStop": "on_stop",
    "onIdle": "on_idle",
    "onError": "on_error",
    "nextDelay": "next_delay",
    "reprocessDelay": "reprocess_delay",
    "idleDelay": "idle_delay",
    "lockDuration": "lock_for",
    "lock_duration": "lock_for",
    "condition": "give it to the source: MongoSource(collection, condition={…})",
    "sleepUntilFieldPath": "name paths in the source: MongoSource(collection, fields=Fields(sleep_until=…))",
}


class DocumentQueue:
    """Runs a handler for every document of a source that is due.

        DocumentQueue(MongoSource(db.orders), remind).run()

    A handler gets the document and the queue; `on_error` the error, the document and the queue; the other hooks the
    queue. Each may be plain or async, and take fewer arguments.
    """

    @known_keywords("DocumentQueue()", _ELSEWHERE)
    def __init__(
        self,
        source: Source[Any],
        on_document: Callable[..., object],
        *,
        on_start: Callable[..., object] | None = None,
        on_stop: Callable[..., object] | None = None,
        on_idle: Callable[..., object] | None = None,
        on_error: Callable[..., object] | None = None,
        next_delay: str | timedelta = "0s",
        reprocess_delay: str | timedelta = "0s",
        idle_delay: str | timedelta = "1s",
        lock_for: str | timedelta = "10m",
        backoff: Backoff | None = None,
        concurrency: int = 1,
        tz: str = "UTC",
        type: Any = None,  # noqa: A002 - the word that people look for
        name: str | None = None,
        app: AppBeside | None = None,
    ) -> None:
        if not isinstance(source, Source):
            raise BadOption(f"{source!r} is not a source of documents; write MongoSource(collection) or the like")
        self.source = source
        self.name = name or source.name
        self.events = _events_of(app)
        self._handler = Handler(on_document, "on_document", 2)
        self._hooks = _hooks_of(on_start=on_start, on_stop=on_stop, on_idle=on_idle, on_error=on_error)
        check_type(type)
        self._type = type
        self._pace = Pace(
            concurrency=_count(concurrency),
            lock_for=fine_span_of(lock_for, least=LEAST_LOCK),
            next_delay=fine_span_of(next_delay),
            idle_delay=_idle_span(idle_delay),
        )
        self._timing = Timing(
            tz=_known_zone(tz), reprocess_delay=fine_span_of(reprocess_delay), backoff=backoff or Backoff()
        )
        self._clock = StoreClock(source.now)
        self._changing = threading.Lock()
        self._loop = LoopThread()
        self._feeder: Feeder | None = None
        if app is not None:
            app.documents.add(self)

    # Its state.

    @property
    def handler_name(self) -> str:
        """The function that is called with each document, as module:name."""
        function = self._handler.function
        return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended yet."""
        return self._feeder is not None and not self._feeder.has_ended.is_set()

    @property
    def is_processing(self) -> bool:
        """Whether a handler runs, or its end is being written."""
        return self.processing > 0

    @property
    def processing(self) -> int:
        """How many handlers run, or have ended and are being written."""
        return 0 if self._feeder is None else len(self._feeder.running)

    @property
    def is_turning(self) -> bool:
        """Whether its loop turns, or waits for the last handlers, or has ended."""
        feeder = self._feeder
        return feeder is None or not self.is_running or feeder.is_stopping or feeder.is_turning

    @property
    def is_idle(self) -> bool:
        """Whether it has looked, and nothing was due."""
        return self._feeder is not None and self._feeder.is_idle

    def on(self, event: str, handler: Callable[[Event], None]) -> None:
        """Call a handler for every event that matches: `queue.on("document.failed", notify)`."""
        self.events.on(event, handler)

    # Starting and stopping.

    def start(self) -> None:
        """Call `on_start`, then begin. An error of `on_start` is raised here, and nothing has begun."""
        with self._changing:
            if self.is_running:
                raise Refused(f"the queue {self.name} runs already; a queue with app= is started with its app")
            self._loop = LoopThread()
            try:
                self._call("on_start", self)
            except BaseException:
                self._loop.stop()
                raise
            self._feeder, renewer = self._make_services()
            renewer.start()
            self._feeder.start()
            threading.Thread(target=self._tell_findings, name="rota-document-check", daemon=True).start()

    def stop(self, timeout: str | timedelta | float | None = None) -> bool:
        """Lock nothing more, and wait for the handlers that run. False if they did not end in time.

        Called by a handler itself, it does not wait: the handler is one of those that must end first.
        """
        feeder = self._feeder
        if feeder is None:
            return True
        feeder.stop()
        if calling.get() is self:
            return False
        return feeder.join(None if timeout is None else timeout_of(timeout))

    def ask_to_stop(self) -> None:
        """Lock nothing more. Returns at once; `wait` waits for the end."""
        if self._feeder is not None:
            self._feeder.stop()

    def wait(self, timeout: str | timedelta | float | None = None) -> bool:
        """Wait until the queue has ended. False if it did not in time."""
        if self._feeder is None:
            return True
        if calling.get() is self:  # a handler or a hook: it must end first
            return not self.is_running
        return self._feeder.has_ended.wait(None if timeout is None else timeout_of(timeout))

    def wake(self) -> None:
        """Look for due documents now: for a caller that has just written one."""
        if self._feeder is not None:
            self._feeder.wake()

    def run(self) -> None:
        """Start, wait for Ctrl-C or SIGTERM, and stop. For a script that does nothing else."""
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, lambda *_: self.ask_to_stop()) if is_main else None
        try:
            with self:
                while not self.wait(0.5):  # a wait without an end would not see a signal
                    pass
        except KeyboardInterrupt:
            log.info("%s was interrupted and has stopped", self.name)
        finally:
            if is_main:  # a handler that was not set from Python is None, and cannot be set again
                signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # Its parts.

    def _make_services(self) -> tuple[Feeder, Renewer]:
        running, loop = Running(), self._loop
        renewer = Renewer(self.source, running, self.events, self._clock, lock_for=self._pace.lock_for)
        feeder = Feeder(
            self.source,
            make_caller(self._handler, self._type, self, loop, self._pace.concurrency, self._done),
            self.events,
            self._clock,
            running=running,
            reporter=Reporter(
                self.name, self.events, lambda err, document: self._guard("on_error", err, document, self)
            ),
            pace=self._pace,
            timing=self._timing,
            hooks=Hooks(
                on_idle=lambda: self._guard("on_idle", self),
                on_stop=lambda: self._finish(renewer, loop),
                on_fault=lambda err: self._guard("on_error", err, None, self),
            ),
        )
        return feeder, renewer

    def _done(self, run: DocumentRun) -> None:
        if self._feeder is not None:
            self._feeder.done(run)

    def _tell_findings(self) -> None:
        """Log what is wrong with the source, beside the loop: a search through many documents takes seconds."""
        try:
            findings = self.source.check()
        except Exception as err:  # noqa: BLE001 - the loop reports an outage, and a check is only advice
            log.debug("the source of %s could not be checked: %s", self.name, err)
            return
        for finding in findings:
            advice = f"; run: {finding.command}" if finding.command else ""
            log.warning("%s: %s%s", self.name, finding.message, advice)

    def _finish(self, renewer: Renewer, loop: LoopThread) -> None:
        """End the other threads of a run. If its own handler stopped the queue, no other caller does it."""
        self._guard("on_stop", self)
        renewer.stop()
        renewer.join()
        loop.stop()

    def _call(self, what: str, *offered: object) -> None:
        hook = self._hooks.get(what)
        if hook is not None:
            call_here(hook, self._loop, self, *offered)

    def _guard(self, what: str, *offered: object) -> None:
        """Call a hook whose error must not end the loop: `on_error` gets it, if that is not the one that failed."""
        try:
            self._call(what, *offered)
        except Exception as err:
            log.exception("%s of the queue %s failed; the queue goes on", what, self.name)
            if what != "on_error":
                self._guard("on_error", err, None, self)


def _events_of(app: AppBeside | None) -> Events:
    """The app's events, so that its observers see documents; without an app, events of its own that are logged."""
    if app is not None:
        return app.documents.events
    events = Events()
    log_events(events)
    return events


def _hooks_of(**hooks: Callable[..., object] | None) -> dict[str, Handler]:
    return {
        what: Handler(function, what, 3 if what == "on_error" else 1)
        for what, function in hooks.items()
        if function is not None
    }


def _known_zone(tz: str) -> str:
    name = zone_name(tz) or "UTC"
    find_zone(name)  # BadOption if there is none of this name
    return name


def _count(concurrency: object) -> int:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= MOST_AT_ONCE:
        raise BadOption(f"concurrency={concurrency!r} must be a whole number from 1 to {MOST_AT_ONCE:,}")
    return concurrency


def _idle_span(idle_delay: str | timedelta) -> int:
    span = fine_span_of(idle_delay)
    if span < SECOND:
        raise BadOption(
            f"idle_delay={idle_delay!r} would query an idle source more than once a second; the least is '1s'. "
            "A document that becomes due meanwhile is still on time, and wake() looks at once"
        )
    return span
