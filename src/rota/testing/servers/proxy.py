"""A TCP proxy in front of a server: what passes through it can be cut, held up, swallowed, or robbed of its answers.

It runs in a thread of its own and changes its ways from one chunk of bytes to the next:

    with Proxy(server.port) as proxy:
        store = store_from_url(proxy.in_front_of(server.url()))
        proxy.lose_replies()   # what is asked happens, and nobody hears of it
        proxy.mend()
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Self

from rota.testing.servers.process import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

CHUNK = 65_536
HERE = "127.0.0.1"

Ways = Literal["open", "closed", "black hole", "no replies"]


class Proxy:
    """One port in front of another. Links that lost bytes are cut when the proxy is mended: nobody can go on there."""

    def __init__(self, server_port: int) -> None:
        self.port = free_port()
        self.faults = 0  # links that were cut, and chunks that were lost
        self._server_port = server_port
        self._ways: Ways = "open"
        self._delay = 0.0
        self._links: set[Link] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._listening = threading.Event()

    def in_front_of(self, url: str) -> str:
        """A server's URL with this proxy in its place."""
        return url.replace(f":{self._server_port}", f":{self.port}", 1)

    # Faults.

    def cut(self) -> None:
        """Break every link at once; new ones are let through."""
        self._do(self._cut)

    def close_door(self) -> None:
        """Break every link, and every new one as soon as it comes, until mended."""
        self._ways = "closed"
        self.cut()

    def black_hole(self) -> None:
        """Keep the links, and let nothing pass in either direction, until mended."""
        self._ways = "black hole"

    def lose_replies(self) -> None:
        """Let questions pass and swallow the answers, until mended."""
        self._ways = "no replies"

    def delay(self, seconds: float) -> None:
        """Hold every chunk up for so long."""
        self._delay = seconds

    def mend(self) -> None:
        """Let everything pass again, on whole links and on new ones."""
        self._ways, self._delay = "open", 0.0
        self._do(self._cut_poisoned)

    # Its life.

    def start(self) -> Self:
        self._thread.start()
        self._listening.wait()
        return self

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # In its thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, HERE, self.port))
        self._listening.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    def _do(self, deed: Callable[[], None]) -> None:
        """Have a deed done in the proxy's thread, and wait until it is."""
        done = threading.Event()

        def do() -> None:
            deed()
            done.set()

        self._loop.call_soon_threadsafe(do)
        done.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._ways == "closed":
            self.faults += 1
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HERE, self._server_port)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, far_writer)
        self._links.add(link)
        with suppress(asyncio.CancelledError):
            await asyncio.gather(
                self._pump(reader, far_writer, link), self._pump(far_reader, writer, link, is_reply=True)
            )
        self._links.discard(link)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, *, is_reply: bool = False
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                if self._swallows(is_reply=is_reply):
                    self.faults += 1
                    link.is_poisoned = True
                    continue
                writer.write(chunk)
                await writer.drain()
        link.break_off()

    def _swallows(self, *, is_reply: bool) -> bool:
        return self._ways == "black hole" or (self._ways == "no replies" and is_reply)

    def _cut(self) -> None:
        for link in list(self._links):
            self.faults += 1
            link.break_off()

    def _cut_poisoned(self) -> None:
        for link in [link for link in self._links if link.is_poisoned]:
            link.break_off()


class Link:
    """A client's connection and the one that was made for it."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._near = near
        self._far = far
        self.is_poisoned = False  # bytes were lost on it

    def break_off(self) -> None:
        self._near.transport.abort()
        self._far.transport.abort()
