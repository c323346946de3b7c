"""Measures the dashboard with a million jobs and ten thousand schedules: each page, its weight, and idle open pages."""

import gzip
import re
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from statistics import median

from bench.environments import FILES
from bench.http_suite import ASKED, LIMITS, QUICK_ASKED, QUICK_SIZE, SIZE, Served, timed
from bench.lists import DAY, Archive
from bench.live import idle_figure, live_figures
from bench.measure import Figure, alone, within, yardstick
from bench.stores import STORES
from rota import App, every
from rota.model.jobs.job import State
from rota.store.contract import JobFilter, LogLine, Retention

NAMESPACE = "pages"
KEEP_ALL = Retention(succeeded_for=400 * DAY, failed_for=400 * DAY)
KEPT = ("first page", "schedules", "agenda")  # pages of which something is kept for the next visitors
SCHEDULES, QUICK_SCHEDULES = 10_000, 1_000
FIRST_LOAD, SCRIPT = 60_000, 10_000  # bytes, compressed
WATCHED, QUICK_WATCHED = 10.0, 4.0  # seconds that an idle web process is watched
JOBS = {
    "jobs": "/jobs",
    "jobs, failed": "/jobs?q=state:failed",
    "jobs, failed, of a task": "/jobs?q=state:failed+task:mail.send",
    "jobs of a task": "/jobs?q=task:pay",
    "jobs of a queue": "/jobs?q=queue:mail",
    "jobs of a rare queue": "/jobs?q=queue:rare",
    "jobs of tasks that begin so": "/jobs?q=task:rare.*",
    "jobs of a schedule": "/jobs?q=schedule:s-7",
    "jobs by time": "/jobs?q=since:1h",
    "jobs by an early time": "/jobs?q=until:5d",
    "jobs by attempts": "/jobs?q=attempts:%3E1",
    "jobs by an argument": "/jobs?q=args.0:-1",
}
OTHERS = {
    "first page": "/",
    "schedules": "/schedules",
    "a schedule": "/schedules/s-7",
    "a schedule's editor": "/schedules/s-7/edit",
    "agenda": "/agenda",
    "queues": "/queues",
    "nodes": "/nodes",
    "catalogue": "/catalog",
    "sources": "/sources",
    "tenants": "/tenants",
    "audit": "/audit",
}


class Pages:
    """A reader of pages, on one connection."""

    def __init__(self, served: Served) -> None:
        self._connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
        self.cpu = served.cpu
        self._headers = {"Authorization": f"Bearer {served.token}", "Accept": "text/html"}

    def read(self, path: str) -> bytes:
        try:
            response = self._ask(path)
        except RemoteDisconnected:  # the server has closed an idle connection
            self._connection.close()
            response = self._ask(path)
        body = response.read()
        if response.status != 200:
            raise AssertionError(f"{path}: {response.status} {body[:200]!r}")
        return body

    def _ask(self, path: str) -> HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse()


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    figures: list[Figure] = []
    size, schedules = (QUICK_SIZE, QUICK_SCHEDULES) if quick else (SIZE, SCHEDULES)
    for kind, serving in STORES.items():
        with serving() as url:
            print(f"{kind} ...", flush=True)
            job_id = fill(url, size, schedules)
            figures += store_figures(kind, url, job_id, is_first=not figures, quick=quick)
    return [*figures, yardstick(rounds)]


def fill(url: str, size: int, schedules: int) -> str:
    """So many ended jobs, schedules, a tenant and a log; the job that has it."""
    archive = Archive(url, NAMESPACE, size)
    app, store = archive.app, archive.store
    task = app.task(name="noop")(lambda: None)
    app.schedules.put_many((f"s-{n}", task.job(), every("1h")) for n in range(schedules))
    app.tenants.put("acme", tz="Asia/Tokyo")
    job_id = store.list_jobs(JobFilter(states=(State.FAILED,)), limit=1).items[0].id
    store.append_logs([LogLine(job_id=job_id, at=store.now(), level="info", text=f"line {n}") for n in range(200)])
    archive.vacuum()
    archive.close()
    return job_id


def store_figures(kind: str, url: str, job_id: str, *, is_first: bool, quick: bool) -> list[Figure]:
    figures: list[Figure] = []
    asked, watched = (QUICK_ASKED, QUICK_WATCHED) if quick else (ASKED, WATCHED)
    app = App(url, namespace=NAMESPACE, retention=KEEP_ALL)
    with Served(url, NAMESPACE) as served:
        pages = Pages(served)
        figures += [first_figure(kind, name, OTHERS[name], pages) for name in KEPT]
        if is_first:
            figures += weight_figures(pages)
        for name, path in {**OTHERS, **JOBS, "a job": f"/jobs/{job_id}"}.items():
            figures.append(page_figure(kind, name, path, pages, asked))
        figures.append(indexed_read(kind, app, job_id, asked))
        figures.append(idle_figure(kind, served, app, watched))
        figures += live_figures(kind, served, pages.read, app, quick=quick)
    app.close()
    return figures


def first_figure(kind: str, name: str, path: str, pages: Pages) -> Figure:
    """A page of which something is kept for the next visitors: what the first of them waits."""
    took = timed(pages.read, path)
    return alone(f"{kind}: {name}, first visit", [took], "ms")


def indexed_read(kind: str, app: App, job_id: str, asked: int) -> Figure:
    """The yardstick: one job by its id, from this process."""
    store = app.open()
    times = sorted(timed(lambda one: store.get_jobs([one]), job_id) for _ in range(asked))
    return alone(f"{kind}: yardstick: one indexed read, p95", [times[int(asked * 0.95)]], "ms")


def page_figure(kind: str, name: str, path: str, pages: Pages, asked: int) -> Figure:
    """The 95th percentile of a page, from the request's first byte to the answer's last."""
    before = pages.cpu()
    times = sorted(timed(pages.read, path) for _ in range(asked))
    cpu = (pages.cpu() - before) / asked
    worst = times[int(asked * 0.95)]
    note = f"median {median(times) * 1e3:.1f} ms, CPU of the web process {cpu * 1e3:.1f} ms"
    return within(f"{kind}: {name}, p95", worst, [worst], LIMITS.get(kind, 0.05), "ms", note=note)


def weight_figures(pages: Pages) -> list[Figure]:
    """What a browser loads with the first page, compressed: the page, the style sheet, the script, the icon."""
    html = pages.read("/")
    found = sorted(set(re.findall(rb'(?:href|src)="(/static/[^"]+)"', html)))
    weights = {path.decode(): len(gzip.compress(pages.read(path.decode()))) for path in found}
    total = len(gzip.compress(html)) + sum(weights.values())
    script = sum(weight for path, weight in weights.items() if path.endswith(".js"))
    return [
        within("first load, compressed", total, [total], FIRST_LOAD, "KB"),
        within("its script, compressed", script, [script], SCRIPT, "KB"),
    ]
