"""A TCP proxy that counts round trips: how often a client spoke up after the server had its say, on each link.

What is pipelined is one trip, whatever the number of commands; so this is what distance to a server multiplies.
"""

import json
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self, TextIO

HERE = "127.0.0.1"
CHUNK = 65_536


class Counter:
    """The trips of one link: a client's chunks count once until the server has answered."""

    def __init__(self) -> None:
        self.trips = 0
        self._asked = False

    def ask(self) -> None:
        if not self._asked:
            self.trips += 1
        self._asked = True

    def answer(self) -> None:
        self._asked = False


class CountingProxy:
    """One port in front of another, with a thread for each link."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._door = socket.create_server((HERE, 0))
        self.port: int = self._door.getsockname()[1]
        self._counters: list[Counter] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def trips(self) -> int:
        return sum(counter.trips for counter in self._counters)

    def in_front_of(self, url: str) -> str:
        return url.replace(f":{self._server_port}", f":{self.port}", 1)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        """Its links end with those who made them."""
        self._door.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._door.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the door was closed
            while True:
                self._link(self._door.accept()[0])

    def _link(self, near: socket.socket) -> None:
        far, counter = socket.create_connection((HERE, self._server_port)), Counter()
        self._counters.append(counter)
        self._threads.append(threading.Thread(target=relay, args=(near, far, counter), daemon=True))
        self._threads[-1].start()


def relay(near: socket.socket, far: socket.socket, counter: Counter) -> None:
    """Pass on what comes from either side, until one of them ends."""
    ways = {near: (far, counter.ask), far: (near, counter.answer)}
    with near, far, suppress(OSError):
        for side in ways:
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            for source in select.select(list(ways), [], [])[0]:
                target, told = ways[source]
                chunk = source.recv(CHUNK)
                if not chunk:
                    return
                told()
                target.sendall(chunk)


def counted(command: Sequence[str | Path], proxy: CountingProxy) -> dict[str, float]:
    """Trips per job in each part that a trial tells of."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with TemporaryFile("w+") as complaints, subprocess.Popen(command, stderr=complaints, **pipes) as trial:
        try:
            return listen(trial.stdout, trial.stdin, lambda: proxy.trips)
        except EOFError as ended:
            complaints.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))} ended early:\n{complaints.read()}") from ended


def listen(told: Iterable[str], leave: TextIO, trips: Callable[[], int]) -> dict[str, float]:
    """Read the count at each mark, and let the trial go on; it ends with how many jobs each part had."""
    marks: dict[str, list[int]] = {}
    for line in told:
        if line.startswith("{"):
            return per_job(marks, json.loads(line))
        marks.setdefault(line.strip(), []).append(trips())
        print(file=leave, flush=True)
    raise EOFError


def per_job(marks: Mapping[str, list[int]], jobs: Mapping[str, float]) -> dict[str, float]:
    return {part: (end - start) / jobs[part] for part, (start, end) in marks.items()}
