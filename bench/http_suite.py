"""The HTTP API with a million jobs in the store: what a page or a detail takes, and what many listeners cost."""

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import median
from time import perf_counter, sleep
from typing import Self

from bench.environments import FILES
from bench.measure import Figure, again, alone, race, within, yardstick
from bench.stores import STORES
from bench.wakeup import progress
from rota import App, every
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, LogLine

SIZE, QUICK_SIZE, BULK = 1_000_000, 20_000, 10_000
LIMITS = {"mongo": 0.08}  # seconds for the 95th of 100; the others 0.05
ASKED, QUICK_ASKED = 200, 60
LISTENERS, LISTENED, QUICK_LISTENED = 200, 10.0, 4.0
LISTENING_LIMIT = 0.1  # of a core
NAMESPACE = "http"
STATES = ("queued", "scheduled", "succeeded", "failed", "cancelled")


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    figures: list[Figure] = []
    for kind, serving in STORES.items():
        with serving() as url:
            print(f"{kind} ...", flush=True)
            paths = fill(url, QUICK_SIZE if quick else SIZE)
            with Served(url) as served:
                figures += page_figures(kind, served, paths, QUICK_ASKED if quick else ASKED)
                tokens = reader_tokens(url)
                figures.append(listening_figure(kind, served, tokens, QUICK_LISTENED if quick else LISTENED))
    return [*figures, bare_figure(rounds), yardstick(rounds)]


def fill(url: str, number: int, schedules: int = 1_000) -> dict[str, str]:
    """So many jobs, some of them ended, with schedules, logs and notes; what there is to be asked for."""
    app = App(url, namespace=NAMESPACE)
    task = app.task(name="noop")(lambda: None)
    add_rare(app)
    app.schedules.put_many((f"s-{n}", task.job(), every("1h")) for n in range(schedules))
    app.tenants.put("acme", tz="Asia/Tokyo")
    for start in range(0, number, BULK):
        app.enqueue_many([task.job() for _ in range(min(BULK, number - start))])
        progress(min(start + BULK, number), number, "jobs")
    store = app.open()
    ended = [work(app) for _ in range(10)][-1]
    store.append_logs([LogLine(job_id=ended, at=store.now(), level="info", text=f"line {n}") for n in range(200)])
    app.close()
    return paths_for(ended)


def add_rare(app: App) -> None:
    """A few jobs of each kind that are hard to find again behind all that come after them."""
    rare = app.task(name="rare.one")(lambda: None)
    app.enqueue_many([rare.using(queue="rare").job() for _ in range(20)])
    app.enqueue_many([rare.using(delay="1d").job() for _ in range(20)])
    for job in app.enqueue_many([rare.job() for _ in range(20)]):
        app.jobs.cancel(job.id)


def work(app: App) -> str:
    """A hundred jobs come to their end, well or badly."""
    store = app.open()
    jobs = store.exchange(Exchange(holder="bench", want=100)).claimed
    endings = [Succeeded(), Failed("ValueError: boom", may_retry=False)]
    changes = [settle(job, endings[place % 2], RetryPolicy(), store.now(), 0.5) for place, job in enumerate(jobs)]
    store.exchange(Exchange(holder="bench", settled=changes))
    return jobs[-1].id


def paths_for(job_id: str) -> dict[str, str]:
    api = "/api/v1"
    return {
        "jobs": f"{api}/jobs?limit=50",
        **{f"jobs, {state}": f"{api}/jobs?state={state}&limit=50" for state in STATES},
        "jobs of a queue": f"{api}/jobs?queue=default&limit=50",
        "jobs of a rare queue": f"{api}/jobs?queue=rare&limit=50",
        "jobs of a task": f"{api}/jobs?task=noop&limit=50",
        "jobs of a rare task": f"{api}/jobs?task=rare.one&limit=50",
        "jobs of tasks that begin so": f"{api}/jobs?task=rare.*&limit=50",
        "jobs of a schedule": f"{api}/jobs?schedule_id=s-7&limit=50",
        "a job": f"{api}/jobs/{job_id}",
        "a job's history": f"{api}/jobs/{job_id}/history",
        "a job's logs": f"{api}/jobs/{job_id}/logs?limit=50",
        "schedules": f"{api}/schedules?limit=50",
        "a schedule": f"{api}/schedules/s-7",
        "a schedule's next runs": f"{api}/schedules/s-7/next",
        "a schedule's why": f"{api}/schedules/s-7/why",
        "tenants": f"{api}/tenants",
        "queues": f"{api}/queues",
        "stats": f"{api}/stats",
        "changes": f"{api}/changes?limit=50",
    }


class Served:
    """The API in a process of its own."""

    def __init__(self, url: str, namespace: str = NAMESPACE) -> None:
        self.token = secrets.token_hex(16)
        command = (sys.executable, "-m", "bench.served", url, namespace, self.token)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._said())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def cpu(self) -> float:
        """The seconds that it has used so far."""
        if self._process.stdin is not None:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return float(self._said())

    def asking(self) -> Callable[[str], object]:
        """Ask for a path and read the answer, on one connection."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)

        def ask(path: str) -> object:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise AssertionError(f"{path}: {response.status} {body[:200]!r}")
            return json.loads(body)

        return ask

    @contextmanager
    def listeners(self, tokens: list[str]) -> Iterator[None]:
        """As many as tokens, who follow what happens, and read nothing of it."""
        head = "GET /api/v1/events HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {}\r\n\r\n"
        sockets = [socket.create_connection(("127.0.0.1", self.port)) for _ in tokens]
        try:
            for one, token in zip(sockets, tokens, strict=True):
                one.sendall(head.format(token).encode())
                answer = one.recv(1_000)
                if b" 200 " not in answer.partition(b"\r\n")[0]:
                    raise AssertionError(f"no stream: {answer[:200]!r}")
            yield
        finally:
            for one in sockets:
                one.close()

    def _said(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise AssertionError("the web process is gone")
        return line


def page_figures(kind: str, served: Served, paths: dict[str, str], asked: int) -> list[Figure]:
    """Every list by an indexed field and every detail: the worst of the 95th percentiles is held to the limit."""
    limit, ask = LIMITS.get(kind, 0.05), served.asking()
    figures: list[Figure] = []
    for name, path in paths.items():
        times = sorted(timed(ask, path) for _ in range(asked))
        worst = times[int(asked * 0.95)]
        note = f"median {median(times) * 1e3:.1f} ms"
        figures.append(within(f"{kind}: {name}, p95", worst, [worst], limit, "ms", note=note))
    return figures


def timed(ask: Callable[[str], object], path: str) -> float:
    begun = perf_counter()
    ask(path)
    return perf_counter() - begun


def reader_tokens(url: str) -> list[str]:
    """One for each listener, from four tokens: a token has 100 streams at most."""
    app = App(url, namespace=NAMESPACE)
    made = [app.tokens.create(f"reader-{number}").secret for number in range(4)]
    app.close()
    return [made[number % len(made)] for number in range(LISTENERS)]


def listening_figure(kind: str, served: Served, tokens: list[str], seconds: float) -> Figure:
    """The web process's own CPU while many follow the events."""
    with served.listeners(tokens):
        before, begun = served.cpu(), perf_counter()
        sleep(seconds)
        share = (served.cpu() - before) / (perf_counter() - begun)
    return within(f"{kind}: {LISTENERS} listeners", share, [share], LISTENING_LIMIT, "%", note="of a core")


def bare_figure(rounds: int) -> Figure:
    """The yardstick: one round trip over loopback, with nothing behind it."""
    left, right = socket.socketpair()

    def there_and_back() -> None:
        left.send(b"x")
        right.recv(1)
        right.send(b"x")
        left.recv(1)

    times = race({"bare": again(there_and_back)}, rounds, 0.05)["bare"]
    return alone("yardstick: a byte there and back", times, "us")
