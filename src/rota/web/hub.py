"""Serves event streams: many listeners, two looks at the store a second, and only while somebody listens.

Logs that are followed are looked at four times a second: a worker keeps a printed line for a while, too.

Every stream counts from its first byte to its last, also while it replays a log. One token or address has a share of
the streams, and some are kept for admins. A stream ends when its token is revoked or expires, when its session ends,
when the site must vouch for its person again, or when its client is slow.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from rota.errors import RotaError
from rota.web.refusals import Refusal
from rota.web.sessions import live_ids
from rota.web.watching import EndEvent, Watcher, event, lines_after, lines_chunk, new_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from rota.app import App
    from rota.client.tokens import Identity
    from rota.inspector.facts.job import LineFacts

log = logging.getLogger("rota.web")

PACE = 0.25  # seconds between two looks at followed logs: a printed line is seen within a second
LOOKS = 2  # of them to one look at everything else
HEARTBEAT = 60  # looks between two heartbeats
MOST_LISTENERS = 1_000
MOST_OF_ONE = 100  # streams of one token, or of one address that has none
RESERVED = 50  # streams that only admins get
MOST_WAITING = 100  # chunks that a listener may leave unread …
MOST_BYTES = 256 * 1024  # … and bytes
REPLAYED = 50  # lines of a log that are read at once while it is replayed
ALIVE = b": alive\n\n"
AWAY = b"event: away\ndata: {}\n\n"  # for pages alone: clients of the API learn it from their next request


class Listener:
    """One stream: what it is still to be sent, and of a job's log, which line it has got to."""

    def __init__(
        self,
        who: Identity,
        address: str = "",
        job_id: str | None = None,
        after: int = 0,
        *,
        session_id: str = "",
        is_page: bool = False,
        lasts: float | None = None,
    ) -> None:
        self.who = who
        self.ends_at = None if lasts is None else time.monotonic() + lasts  # None: when its credential ends
        self.is_page = is_page
        self.session_id = session_id  # of a page; empty if a token or nothing let the visitor in
        self.owner = who.token_id or f"{who.name} from {address}"
        self.job_id = job_id
        self.after = after
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING + 2)
        self._size = 0
        self.is_over = False

    def send(self, chunk: bytes) -> None:
        if not chunk or self.is_over:
            return
        if self._waiting.qsize() >= MOST_WAITING or (self._size and self._size + len(chunk) > MOST_BYTES):
            self._forget()
            self.end("too slow: what happened was not read in time; connect again")
        else:
            self._size += len(chunk)
            self._waiting.put_nowait(chunk)

    def end(self, reason: str) -> None:
        """A last event, then the end."""
        if not self.is_over:
            self.is_over = True
            self._waiting.put_nowait(event("end", EndEvent(reason=reason)))
            self._waiting.put_nowait(None)

    async def next(self) -> bytes | None:
        chunk = await self._waiting.get()
        self._size -= min(self._size, len(chunk or b""))
        return chunk

    def _forget(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._size = 0


class Hub:
    """Streams of what happens, and of what jobs write."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._open: set[Listener] = set()  # all streams, also those that still replay a log
        self._listeners: set[Listener] = set()  # those that hear of what happens
        self._looking: asyncio.Task[None] | None = None
        self._watcher = Watcher(app)
        self._is_closed = False

    def stream(self, listener: Listener) -> AsyncIterator[bytes]:
        """What happens from now on; or what a job has written, then what it writes, until it has ended."""
        self._check_room(listener)
        return self._stream(listener)

    def close(self) -> None:
        """End all streams; no new one begins."""
        self._is_closed = True
        for listener in self._open:
            listener.end("the server stops; connect again later")

    async def _stream(self, listener: Listener) -> AsyncIterator[bytes]:
        try:
            self._check_room(listener)  # many may have asked before any of them began
        except Refusal as refusal:
            yield event("end", EndEvent(reason=refusal.fault.message))
            return
        self._open.add(listener)
        self._look_on()
        try:
            yield ALIVE  # so that the other side knows at once that it is heard
            if listener.job_id is not None:
                async for chunk in self._past(listener):
                    yield chunk
            self._join(listener)
            while (news := await listener.next()) is not None:
                yield news
        finally:
            self._open.discard(listener)
            self._listeners.discard(listener)

    async def _past(self, listener: Listener) -> AsyncIterator[bytes]:
        """What is there already, at the pace at which it is read."""
        while not listener.is_over and (lines := await self._app.aio.call(partial(self._lines, listener))):
            yield lines_chunk(lines)
            listener.after = lines[-1].number

    def _lines(self, listener: Listener) -> Sequence[LineFacts]:
        return lines_after(self._app, str(listener.job_id), listener.after, REPLAYED)

    def _join(self, listener: Listener) -> None:
        if self._is_closed:
            listener.end("the server stops; connect again later")
        elif listener.job_id is None:
            listener.send(self._watcher.standing())
        self._listeners.add(listener)

    def _look_on(self) -> None:
        if self._looking is None or self._looking.done():
            self._watcher = Watcher(self._app)
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def _check_room(self, listener: Listener) -> None:
        own = sum(other.owner == listener.owner for other in self._open)
        if own >= MOST_OF_ONE:
            owner = "this token" if listener.who.token_id else "this address"
            message = f"{owner} has {own} streams open, which is as many as one may have; close some of them"
            raise Refusal(429, "too_many_streams", message)
        room = MOST_LISTENERS if listener.who.role == "admin" else MOST_LISTENERS - RESERVED
        if len(self._open) >= room or self._is_closed:
            raise Refusal(503, "too_many_listeners", "no more streams are served here now; try again later")

    async def _look(self) -> None:
        """Look as long as anybody listens."""
        looks, is_away = 0, False
        while self._open:
            is_whole = looks % LOOKS == 0
            try:
                if is_whole:
                    self._end_old()
                    await self._end_revoked()
                    await self._end_logged_out()
                    await self._tell()
                await self._tell_lines()
                is_away = is_away and not is_whole  # the others may ask the store nothing
            except Exception as err:  # a look that ended for good would leave all streams silent
                if not is_away:
                    trace = None if isinstance(err, RotaError) else err
                    log.warning("event streams cannot read the store: %s", err, exc_info=trace)
                    self._send_pages(AWAY)
                is_away = True
            looks += 1
            if looks % HEARTBEAT == 0:
                self._send_all(ALIVE)
            await asyncio.sleep(PACE)

    def _end_old(self) -> None:
        """End the streams whose people the site must vouch for again."""
        now = time.monotonic()
        for listener in [one for one in self._open if one.ends_at is not None and one.ends_at <= now]:
            listener.end("the login of this stream is checked again; connect again")

    async def _end_revoked(self) -> None:
        """End the streams whose tokens let nobody in any more."""
        held = {listener.who.token_id for listener in self._open if listener.who.token_id}
        if not held:
            return
        good = await self._app.aio.call(partial(self._app.tokens.good_ids, held))
        for listener in [one for one in self._open if one.who.token_id in held - good]:
            listener.end("the token of this stream was revoked, or has expired")

    async def _end_logged_out(self) -> None:
        """End the streams of pages whose session is over."""
        held = {listener.session_id for listener in self._open if listener.session_id}
        if not held:
            return
        live = await self._app.aio.call(partial(live_ids, self._app, held))
        for listener in [one for one in self._open if one.session_id in held - live]:
            listener.end("the session of this stream has ended")

    async def _tell(self) -> None:
        if any(listener.job_id is None for listener in self._listeners):
            news = await self._app.aio.call(self._watcher.look)
            for listener in list(self._listeners):
                if listener.job_id is None:
                    listener.send(news)

    async def _tell_lines(self) -> None:
        followed = self._followed()
        if not followed:
            return
        found = await self._app.aio.call(partial(new_lines, self._app, followed))
        for listener in list(self._listeners):
            lines, end = found.get(str(listener.job_id), ((), None))
            if lines and lines[-1].number > listener.after:
                listener.send(lines_chunk(lines, listener.after))
                listener.after = lines[-1].number
            if end is not None:
                listener.end(end)

    def _followed(self) -> dict[str, int]:
        """The jobs that are followed, and the first line that somebody is yet to get."""
        after: dict[str, int] = {}
        for listener in self._listeners:
            if listener.job_id is not None and not listener.is_over:
                after[listener.job_id] = min(after.get(listener.job_id, listener.after), listener.after)
        return after

    def _send_pages(self, chunk: bytes) -> None:
        for listener in [one for one in self._listeners if one.is_page]:
            listener.send(chunk)

    def _send_all(self, chunk: bytes) -> None:
        for listener in list(self._listeners):
            listener.send(chunk)
