"""An app that was used before gunicorn forks its workers (--preload) works in each of them, on every store."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from every_store import DURABLE, fresh_place

HERE = Path(__file__).parent


@contextmanager
def gunicorn(folder: Path, places):
    """A master with two workers that serve at a socket in the folder. It has loaded the site before they begin."""
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--no-control-socket"]
    env = {**os.environ, "PLACES": json.dumps([{"url": place.url, "namespace": place.namespace} for place in places])}
    with subprocess.Popen(
        [*command, "--bind", f"unix:{folder}/socket", "--chdir", str(HERE), "preloaded:site"],
        stderr=subprocess.PIPE, text=True, env=env, cwd=folder,
    ) as master:  # fmt: skip
        said: list[str] = []
        try:
            while sum("Booting worker" in line for line in said) < 2:
                line = master.stderr.readline()
                assert line, "".join(said)
                said.append(line)
            yield folder / "socket"
        finally:
            master.send_signal(signal.SIGTERM)
            said += master.stderr.readlines()
    assert master.returncode == 0, "".join(said)


class Request:
    """A request that a worker has accepted, and whose body it waits for: it can accept no other meanwhile."""

    def __init__(self, address: Path, body: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(100)
        self._socket.connect(str(address))
        self._answer = self._socket.makefile("rb")
        self._body = body.encode()
        length = len(self._body)
        self._socket.sendall(
            f"POST / HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        assert b"100 Continue" in self._answer.readline()

    def finish(self) -> dict:
        self._socket.sendall(self._body)
        with self._socket, self._answer:
            return json.loads(self._answer.read().rpartition(b"\r\n\r\n")[2])


def test_both_workers_use_apps_that_were_used_before_the_fork(tmp_path):
    places = [fresh_place(kind, tmp_path) for kind in DURABLE]
    with gunicorn(tmp_path, places) as address:
        both = [Request(address, "one"), Request(address, "another")]
        answers = [request.finish() for request in both]
    assert len({answer["pid"] for answer in answers}) == 2
    assert [answer["states"] for answer in answers] == [["queued"] * len(places)] * 2
    for place in places:
        with place.opened() as store:
            assert sum(sum(queue.counts.values()) for queue in store.list_queues()) == 3
