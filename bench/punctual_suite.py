"""A schedule of every second, fired and run by a real node on each store: how late it begins, and whether it drifts."""

import math
from statistics import median
from typing import Any

from bench.environments import FILES, Disk, Entrant, environment, packages
from bench.measure import Figure, alone, within, yardstick
from bench.stores import STORES

P50_LIMIT, P99_LIMIT = 0.002, 0.020  # seconds
SECONDS, SECONDS_QUICK = 20, 5  # of a trial
BARE = "a bare timed wait"
BESIDE = {
    BARE: Entrant("bare_punctual.py"),
    "APScheduler": Entrant("apscheduler_punctual.py", "apscheduler"),
    "Celery beat": Entrant("celery_punctual.py", "celery"),
}

Trial = dict[str, Any]  # late: seconds of each run; drift: seconds


def facts() -> dict[str, str]:
    versions = {name: packages(environment(name))[name] for name in ("celery", "apscheduler")}
    return {**versions, "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    seconds, figures = SECONDS_QUICK if quick else SECONDS, list[Figure]()
    beside = {name: [entrant.trial("every second", seconds) for _ in range(rounds)] for name, entrant in BESIDE.items()}
    disk = Disk()
    for kind, serving in STORES.items():
        disk.ask()
        print(f"every second on {kind} ...", flush=True)
        with serving() as url:
            entrant = Entrant("rota_punctual.py", options=(url,))
            figures += figures_of(kind, [entrant.trial("every second", seconds) for _ in range(rounds)])
    return [*figures, *beside_figures(beside), disk.figure(), yardstick(rounds)]


def figures_of(kind: str, trials: list[Trial]) -> list[Figure]:
    late = [second for trial in trials for second in trial["late"]]
    halves = [median(trial["late"]) for trial in trials]
    worst = [percentile(trial["late"], 0.99) for trial in trials]
    note = f"of {len(late)} runs"
    return [
        within(f"{kind}: every second, late by, p50", median(late), halves, P50_LIMIT, "ms", note=note),
        within(f"{kind}: every second, late by, p99", percentile(late, 0.99), worst, P99_LIMIT, "ms", note=note),
        no_drift(f"{kind}: every second, drift", [trial["drift"] for trial in trials]),
    ]


def beside_figures(beside: dict[str, list[Trial]]) -> list[Figure]:
    late = {name: [second for trial in trials for second in trial["late"]] for name, trials in beside.items()}
    return [
        alone(f"yardstick: {BARE}, late by", late[BARE], "ms"),
        alone("APScheduler: every second, late by", late["APScheduler"], "ms", note="in memory, nothing is kept"),
        alone(
            "Celery beat: every second, drift",
            [trial["drift"] for trial in beside["Celery beat"]],
            "ms",
            note=f"in {len(beside['Celery beat'][0]['late'])} s, by beat alone",
        ),
    ]


def no_drift(name: str, drifts: list[float]) -> Figure:
    """Nothing but none will do."""
    worst = max(drifts)
    reached = float(worst == 0)
    return Figure(name, worst * 1e3, 0.0, reached, 1.0, "ms", (reached, reached))


def percentile(numbers: list[float], share: float) -> float:
    """The smallest number that so large a share of all does not exceed."""
    return sorted(numbers)[max(0, math.ceil(share * len(numbers)) - 1)]
