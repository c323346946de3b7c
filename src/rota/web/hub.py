"""The hub: many listeners, one look a second. It looks only while somebody listens; whoever reads too slowly goes."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from rota.errors import RotaError
from rota.web.refusals import Refusal
from rota.web.watching import EndEvent, Watcher, event, lines_after, lines_chunk, new_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rota.app import App

log = logging.getLogger("rota.web")

PACE = 1.0  # seconds between two looks
HEARTBEAT = 15  # looks between two heartbeats
MOST_LISTENERS = 1_000
MOST_WAITING = 100  # chunks that a listener may leave unread
ALIVE = b": alive\n\n"


class Listener:
    """One stream: what it is still to be sent, and of a job's log, which line it has got to."""

    def __init__(self, job_id: str | None = None, after: int = 0) -> None:
        self.job_id = job_id
        self.after = after
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING + 2)
        self.is_over = False

    def send(self, chunk: bytes) -> None:
        if not chunk or self.is_over:
            return
        if self._waiting.qsize() >= MOST_WAITING:
            self._forget()
            self.end("too slow: what happened was not read in time; connect again")
        else:
            self._waiting.put_nowait(chunk)

    def end(self, reason: str) -> None:
        """A last event, then the end."""
        if not self.is_over:
            self.is_over = True
            self._waiting.put_nowait(event("end", EndEvent(reason=reason)))
            self._waiting.put_nowait(None)

    async def next(self) -> bytes | None:
        return await self._waiting.get()

    def _forget(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait()


class Hub:
    """Streams of what happens, and of what jobs write."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._listeners: set[Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._watcher = Watcher(app)
        self._is_closed = False

    def watch(self) -> AsyncIterator[bytes]:
        """What happens from now on."""
        self._check_room()
        return self._stream(Listener())

    def follow(self, job_id: str, after: int) -> AsyncIterator[bytes]:
        """What a job has written after a line, then what it writes, until it has ended."""
        self._check_room()
        return self._stream(Listener(job_id, after))

    def close(self) -> None:
        """End all streams; no new one begins."""
        self._is_closed = True
        for listener in self._listeners:
            listener.end("the server stops; connect again later")

    async def _stream(self, listener: Listener) -> AsyncIterator[bytes]:
        yield ALIVE  # so that the other side knows at once that it is heard
        if listener.job_id is not None:
            async for chunk in self._past(listener):
                yield chunk
        self._join(listener)
        try:
            while (news := await listener.next()) is not None:
                yield news
        finally:
            self._listeners.discard(listener)

    async def _past(self, listener: Listener) -> AsyncIterator[bytes]:
        """What is there already, at the pace at which it is read."""
        while lines := await self._app.aio.call(partial(lines_after, self._app, str(listener.job_id), listener.after)):
            yield lines_chunk(lines)
            listener.after = lines[-1].number

    def _join(self, listener: Listener) -> None:
        if self._is_closed:
            listener.end("the server stops; connect again later")
        elif listener.job_id is None:
            listener.send(self._watcher.standing())
        self._listeners.add(listener)
        if self._looking is None or self._looking.done():
            self._watcher = Watcher(self._app)
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def _check_room(self) -> None:
        if len(self._listeners) >= MOST_LISTENERS or self._is_closed:
            raise Refusal(503, "too_many_listeners", "no more streams are served here now; try again later")

    async def _look(self) -> None:
        """Look once a second, as long as anybody listens."""
        looks = 0
        while self._listeners:
            try:
                await self._tell()
            except RotaError as err:
                log.warning("the store could not be looked at for those who listen: %s", err)
            looks += 1
            if looks % HEARTBEAT == 0:
                self._send_all(ALIVE)
            await asyncio.sleep(PACE)

    async def _tell(self) -> None:
        if any(listener.job_id is None for listener in self._listeners):
            news = await self._app.aio.call(self._watcher.look)
            for listener in list(self._listeners):
                if listener.job_id is None:
                    listener.send(news)
        followed = self._followed()
        if followed:
            await self._tell_lines(followed)

    async def _tell_lines(self, followed: dict[str, int]) -> None:
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

    def _send_all(self, chunk: bytes) -> None:
        for listener in list(self._listeners):
            listener.send(chunk)
