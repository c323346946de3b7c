"""What an open page sees of what happens: how late a state and a printed line are, and what idle pages cost."""

import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from statistics import median
from typing import Any, Self

from bench.http_suite import LISTENERS, LISTENING_LIMIT, Served
from bench.measure import Figure, within
from rota import App

SEEN_LIMIT = 1.0  # seconds
TAIL = 0.5  # seconds between two looks of the page's script at a log
CHANGES, QUICK_CHANGES, LINES, QUICK_LINES = 20, 8, 20, 8
OF_ONE = 50  # pages that share a token: one token has 100 streams at most
QUEUE = "live"
PRINTED = re.compile(rb"printed at ([0-9.]+)")

Read = Callable[[str], bytes]


def live_figures(kind: str, served: Served, read: Read, app: App, *, quick: bool) -> list[Figure]:
    """How late a page shows a job's state, and a line that it prints, with a worker and 200 open pages beside it."""

    def speak(lines: int) -> None:
        for _ in range(lines):
            print(f"printed at {time.time():.6f}", flush=True)
            time.sleep(random.uniform(0.2, 0.6))  # at no fixed moment of the page's looks

    speaking = app.task(name="live.speak", queue=QUEUE)(speak)
    app.start(scheduler=False, queues=[QUEUE])
    try:
        with open_pages(served, LISTENERS - 1, tokens(app)):
            changed = _changes(served, read, speaking.using(queue=QUEUE), QUICK_CHANGES if quick else CHANGES)
            printed = _lines(read, speaking.enqueue(QUICK_LINES if quick else LINES).id)
    finally:
        app.stop()
    return [_late(f"{kind}: a state change is seen", changed), _late(f"{kind}: a printed line is seen", printed)]


def idle_figure(kind: str, served: Served, app: App, seconds: float) -> Figure:
    """The web process's own CPU while many pages are open and nothing happens."""
    with open_pages(served, LISTENERS, tokens(app)):
        before, begun = served.cpu(), time.perf_counter()
        time.sleep(seconds)
        share = (served.cpu() - before) / (time.perf_counter() - begun)
    return within(f"{kind}: {LISTENERS} open pages, idle", share, [share], LISTENING_LIMIT, "%", note="of a core")


def tokens(app: App) -> list[str]:
    return [app.tokens.create(f"reader-{number}").secret for number in range(LISTENERS // OF_ONE)]


@contextmanager
def open_pages(served: Served, number: int, secrets: list[str]) -> Iterator[None]:
    """So many pages, each in a session, that follow what happens and read nothing of it."""
    cookies = [login(served, secret) for secret in secrets]
    with ExitStack() as streams:
        for place in range(number):
            streams.enter_context(closing(stream(served, cookies[place // OF_ONE])))
        yield


def login(served: Served, secret: str) -> str:
    """A session's cookie."""
    connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{served.port}",
        "Sec-Fetch-Site": "same-origin",
    }
    connection.request("POST", "/login", body=f"token={secret}", headers=headers)
    response = connection.getresponse()
    response.read()
    cookie = response.getheader("Set-Cookie") or ""
    if response.status >= 400 or not cookie:
        raise AssertionError(f"no session: {response.status}")
    return cookie.partition(";")[0]


def stream(served: Served, cookie: str) -> socket.socket:
    """A page's stream of events, which has begun."""
    head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nCookie: {cookie}\r\n\r\n"
    one = socket.create_connection(("127.0.0.1", served.port), timeout=60)
    one.sendall(head.encode())
    answer = one.recv(1_000)
    if b" 200 " not in answer.partition(b"\r\n")[0]:
        raise AssertionError(f"no stream: {answer[:200]!r}")
    return one


def _changes(served: Served, read: Read, task: Any, number: int) -> list[float]:
    """From each enqueue to a page that shows the job."""
    late: list[float] = []
    with HTTPStream(served) as events:
        for _ in range(number):
            time.sleep(random.uniform(0.6, 1.4))  # at no fixed moment of the server's looks
            events.drain()
            began = time.perf_counter()
            job_id = task.enqueue(0).id
            events.wait_for(job_id.encode())
            if job_id.encode() not in read("/jobs"):
                raise AssertionError("the page does not have what the stream has told")
            late.append(time.perf_counter() - began)
    return late


class HTTPStream:
    """The events that one more page hears."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def __enter__(self) -> Self:
        head = f"GET /events HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {self._served.token}\r\n\r\n"
        self._socket = socket.create_connection(("127.0.0.1", self._served.port), timeout=30)
        self._socket.sendall(head.encode())
        self._socket.recv(1_000)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def drain(self) -> None:
        """Forget what was told before."""
        self._socket.settimeout(0)
        try:
            while self._socket.recv(65_536):
                pass
        except BlockingIOError:
            self._socket.settimeout(30)

    def wait_for(self, text: bytes) -> None:
        heard = b""
        while text not in heard:
            heard += self._socket.recv(65_536)


def _lines(read: Read, job_id: str) -> list[float]:
    """From each line's print to a look that shows it, at the pace of the page's script."""
    late: list[float] = []
    seen, until = set[bytes](), time.monotonic() + 120
    while time.monotonic() < until:
        page = read(f"/jobs/{job_id}/lines?after=0")
        now = time.time()
        fresh = [at for at in PRINTED.findall(page) if at not in seen]
        seen.update(fresh)
        late += [now - float(at) for at in fresh]
        if seen and b"data-over" in page:
            return late
        time.sleep(TAIL)
    raise AssertionError("the job has printed nothing")


def _late(name: str, seconds: list[float]) -> Figure:
    ordered = sorted(seconds)
    worst = ordered[int(len(ordered) * 0.95)]
    return within(f"{name}, p95", worst, [worst], SEEN_LIMIT, "ms", note=f"median {median(seconds) * 1e3:.0f} ms")
