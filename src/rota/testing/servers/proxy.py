"""Stands between a client and a server as a TCP proxy that can cut, delay or drop what passes, or lose replies.

It runs in a thread of its own, and its behaviour can be changed at any time:

    with Proxy(server.port) as proxy:
        store = store_from_url(proxy.in_front_of(server.url()))
        proxy.lose_replies()   # requests are carried out, and their replies are lost
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

Mode = Literal["open", "closed", "black hole", "no replies"]


class Proxy:
    """One port in front of another. `mend` cuts the connections that lost bytes: they cannot be used any more."""

    def __init__(self, server_port: int) -> None:
        self.port = free_port()
        self.faults = 0  # connections that were cut, and chunks that were lost
        self._server_port = server_port
        self._mode: Mode = "open"
        self._delay = 0.0
        self._connections: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._listening = threading.Event()

    def in_front_of(self, url: str) -> str:
        """A server's URL with this proxy in its place."""
        return url.replace(f":{self._server_port}", f":{self.port}", 1)

    # Faults.

    def cut(self) -> None:
        """Break every connection; new ones pass."""
        self._do(self._cut)

    def refuse_connections(self) -> None:
        """Break every connection, and refuse new ones until `mend`."""
        self._mode = "closed"
        self.cut()

    def black_hole(self) -> None:
        """Keep the connections, and drop everything in both directions until `mend`."""
        self._mode = "black hole"

    def lose_replies(self) -> None:
        """Let requests pass and drop the replies until `mend`."""
        self._mode = "no replies"

    def delay(self, seconds: float) -> None:
        """Delay every chunk."""
        self._delay = seconds

    def mend(self) -> None:
        """Let everything pass again, on connections that lost nothing and on new ones."""
        self._mode, self._delay = "open", 0.0
        self._do(self._cut_damaged)

    # Starting and stopping.

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

    def _do(self, action: Callable[[], None]) -> None:
        """Run an action in the proxy's thread, and wait for its end."""
        done = threading.Event()

        def do() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(do)
        done.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "closed":
            self.faults += 1
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HERE, self._server_port)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(writer, far_writer)
        self._connections.add(connection)
        with suppress(asyncio.CancelledError):
            await asyncio.gather(
                self._pump(reader, far_writer, connection), self._pump(far_reader, writer, connection, is_reply=True)
            )
        self._connections.discard(connection)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: Connection,
        *,
        is_reply: bool = False,
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                if self._drops(is_reply=is_reply):
                    self.faults += 1
                    connection.has_lost_bytes = True
                    continue
                writer.write(chunk)
                await writer.drain()
        connection.abort()

    def _drops(self, *, is_reply: bool) -> bool:
        return self._mode == "black hole" or (self._mode == "no replies" and is_reply)

    def _cut(self) -> None:
        for connection in list(self._connections):
            self.faults += 1
            connection.abort()

    def _cut_damaged(self) -> None:
        for connection in [connection for connection in self._connections if connection.has_lost_bytes]:
            connection.abort()


class Connection:
    """A client's connection and the one that was made for it."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._near = near
        self._far = far
        self.has_lost_bytes = False  # bytes were lost on it

    def abort(self) -> None:
        self._near.transport.abort()
        self._far.transport.abort()
