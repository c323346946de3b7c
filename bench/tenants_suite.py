"""A million recurring schedules of tenants in 500 timezones: loading, waking up, a crowd, an edit, and every why."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from random import Random
from statistics import median
from threading import Event
from time import perf_counter
from zoneinfo import available_timezones

from bench.core_suite import FLAT_MUST
from bench.environments import FILES
from bench.measure import Figure, alone, compare, turns, within, yardstick
from bench.stores import STORES
from bench.wakeup import Wakeup, loaded, progress
from rota import App, Job, Trigger, calendar, cron, every, once

TENANTS, PER_CALL = 500, 2_000
SIZE, QUICK_SIZE = 1_000_000, 20_000
FEW = 1_000
CROWD, QUICK_CROWD = 100_000, 5_000
RATES = {"mongo": 2_000}  # firings a second that a store must reach; the others 5,000
TWO_MUST = 0.9  # two schedulers beside one; equal, but for the noise of two processes on two cores
EDIT_LIMIT = 1.0  # seconds until an edit has its effect
WHY_LIMIT = 0.05  # seconds for a why, the 95th of 100
WHYS = 200
MOVED, QUICK_MOVED = 5_000, 500


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    figures: list[Figure] = []
    for kind, serving in STORES.items():
        with serving() as url:
            print(f"{kind} ...", flush=True)
            figures += crowd_figures(kind, url, QUICK_CROWD if quick else CROWD, rounds)
            figures += town_figures(kind, url, QUICK_SIZE if quick else SIZE, rounds, quick=quick)
    return [*figures, yardstick(rounds)]


def zones() -> list[str]:
    """500 of them, the same in every run."""
    names = sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc", "System")))
    return [names[number % len(names)] for number in range(TENANTS)]


def triggers() -> Iterator[Trigger]:
    """What recurring work looks like: days, weekdays, weeks, months, quarters, and some that count hours."""
    random = Random(7)
    first = date(2026, 1, 1)
    while True:
        hour, minute = random.randrange(24), random.randrange(60)
        yield cron(f"{minute} {hour} * * *")
        yield cron(f"{minute} {hour} * * mon-fri")
        yield calendar(weeks=random.randint(1, 4), at=f"{hour:02}:{minute:02}", start=first)
        yield calendar(months=random.choice((1, 3, 12)), at="00:05", start=first)
        yield cron(f"{minute} {hour} * * tue#2")
        yield every(f"{random.randint(6, 48)}h")


def load(app: App, number: int) -> float:
    """So many schedules, spread over all tenants; the seconds that each took."""
    job, rules = app.task(name="noop")(lambda: None).job(), triggers()
    for place, zone in enumerate(zones()):
        app.tenants.put(f"tenant-{place}", tz=zone)
    begun = perf_counter()
    done = 0
    for tenant in range(TENANTS):
        mine = range(tenant, number, TENANTS)
        for start in range(0, len(mine), PER_CALL):
            part = mine[start : start + PER_CALL]
            items = [(f"s-{n}", job, next(rules)) for n in part]
            done += app.schedules.put_many(items, tenant=f"tenant-{tenant}", by="bench")
        if tenant % 25 == 24:
            progress(done, number)
    return (perf_counter() - begun) / number


@contextmanager
def town(url: str, number: int) -> Iterator[tuple[App, float]]:
    app = App(url, namespace=f"town{number}")
    try:
        yield app, load(app, number)
    finally:
        app.close()


def town_figures(kind: str, url: str, number: int, rounds: int, *, quick: bool) -> list[Figure]:
    with town(url, number) as (app, each), town(url, FEW) as (small, _):
        return [
            alone(f"{kind}: adding schedules of tenants", [each], "us", note=f"{number:,} in {TENANTS} zones"),
            looks_figure(kind, app, small, number, rounds),
            edit_figure(kind, app, rounds),
            why_figure(kind, app, number),
            moving_figure(kind, app, QUICK_MOVED if quick else MOVED),
        ]


def looks_figure(kind: str, app: App, small: App, number: int, rounds: int) -> Figure:
    """One look of a scheduler that finds nothing due."""
    apps = {"many": app, "few": small}
    looks: dict[str, list[float]] = {name: [] for name in apps}
    for name in turns(apps, rounds):
        store = apps[name].open()
        soon = store.due_schedules(1).next_due_at or store.now()
        begun = perf_counter()
        for _ in range(100):
            store.due_schedules(100, now=soon - 1)
        looks[name].append((perf_counter() - begun) / 100)
    title = f"{kind}: wake-up, {number:,} schedules of tenants vs {FEW:,}"
    return compare(title, looks["many"], looks["few"], FLAT_MUST)


def crowd_figures(kind: str, url: str, number: int, rounds: int) -> list[Figure]:
    """All due at one instant: by one scheduler, and by two that race; each occurrence makes one job."""
    limit = 1 / RATES.get(kind, 5_000)
    times: dict[int, list[float]] = {1: [], 2: []}
    with loaded(url, number, due=number) as crowd:
        for count in map(int, turns(("1", "2"), rounds)):
            times[count].append(rush(crowd, count, number) / number)
    one = times[1]
    note = f"{1 / median(one):,.0f} firings/s"
    return [
        within(f"{kind}: firing, {number:,} due at one instant", median(one), one, limit, "us", note=note),
        compare(f"{kind}: the same with two schedulers", times[2], one, TWO_MUST, note="each fired once"),
    ]


def rush(crowd: Wakeup, count: int, number: int) -> float:
    """So many schedulers, each in a process of its own, until nothing is due; the time of the last."""
    before = crowd.jobs()
    crowd.advance()
    command = (sys.executable, "-m", "bench.rush", crowd.url, crowd.namespace, str(crowd.clocked.at))
    shares = [(str(index), str(count)) for index in range(count)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    schedulers = [subprocess.Popen(command + share, **pipes) for share in shares]  # type: ignore[call-overload]
    for scheduler in schedulers:
        scheduler.stdout.readline()  # it is connected
    begun = perf_counter()
    for scheduler in schedulers:
        scheduler.stdin.write(b"go\n")
        scheduler.stdin.flush()
    for scheduler in schedulers:
        scheduler.communicate(timeout=600)
    taken = perf_counter() - begun
    if crowd.jobs() - before != number:
        raise AssertionError(f"{crowd.jobs() - before} jobs were made of {number} occurrences by {count} schedulers")
    return taken


def edit_figure(kind: str, app: App, rounds: int) -> Figure:
    """From an edit to its effect: a schedule far away is moved to the next second, and fired how long after it?"""
    task = app.task(name="edited")(lambda: None)
    late: list[float] = []
    fired = Event()
    app.on("schedule.fired", lambda _: fired.set())
    app.schedules.put("edited", task.job(), once(datetime(2099, 1, 1, tzinfo=UTC)))
    with app.running(worker=False):
        for _ in range(rounds):
            fired.clear()
            at = datetime.fromtimestamp(app.open().now() // 1_000_000 + 2, UTC)
            app.schedules.put("edited", task.job(), once(at))
            while (made := made_at(app, at)) is None:
                fired.wait(10)
                fired.clear()
            late.append(max(1e-6, made - at.timestamp()))
    return within(f"{kind}: an edit has its effect", max(late), late, EDIT_LIMIT, "ms")


def made_at(app: App, at: datetime) -> float | None:
    """When the job of an occurrence was made."""
    lines = app.schedules.occurrences("edited", at, at + timedelta(seconds=1)).items
    jobs: list[Job[object]] = [app.jobs.get(line.job_id) for line in lines if line.job_id]
    return jobs[0].created_at.timestamp() if jobs else None


def why_figure(kind: str, app: App, number: int) -> Figure:
    """Any schedule, any instant within half a year around now."""
    random, now = Random(3), datetime.now(UTC)
    times: list[float] = []
    for _ in range(WHYS):
        name, at = f"s-{random.randrange(number)}", now + timedelta(minutes=random.randint(-130_000, 130_000))
        begun = perf_counter()
        app.schedules.why(name, at)
        times.append(perf_counter() - begun)
    worst = sorted(times)[int(WHYS * 0.95)]
    return within(f"{kind}: why, p95", worst, [worst], WHY_LIMIT, "ms", note=f"median {median(times) * 1e3:.1f} ms")


def moving_figure(kind: str, app: App, number: int) -> Figure:
    """A tenant with many schedules moves to another zone, and all of them follow."""
    job, rules = app.task(name="moved")(lambda: None).job(), triggers()
    app.tenants.put("mover", tz="Asia/Tokyo")
    items = [(f"m-{n}", job, next(rules)) for n in range(number)]
    app.schedules.put_many(items, tenant="mover")
    begun = perf_counter()
    app.tenants.put("mover", tz="America/Lima")
    each = (perf_counter() - begun) / number
    return alone(f"{kind}: following a tenant to another zone", [each], "us", note=f"{number:,} schedules")
