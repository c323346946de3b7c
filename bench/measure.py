"""Timing side by side: every contender once per round, in rotating order, so that noise hits all alike."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

# What one second, byte, share or piece is multiplied by.
UNITS = {
    "us": 1e6,
    "ms": 1e3,
    "MB": 1 / 1e6,
    "KB": 1 / 1e3,
    "%": 1e2,
    "packages": 1,
    "trips": 1,
    "per job": 1,
    "a second": 1,
}


@dataclass(frozen=True)
class Figure:
    """One line of the table. The ratio is theirs / ours, so larger is better. Where there is a must, it binds.

    An absolute limit is written the same way: `theirs` is the limit, and the ratio must reach 1.
    """

    name: str
    ours: float
    theirs: float | None
    ratio: float | None
    must: float | None
    unit: str
    spread: tuple[float, float]  # of the ratio over the rounds; of `ours` where there is no ratio
    note: str = ""
    series: str = ""  # where it is a point of a line: which line …
    at: int | None = None  # … and where on it

    @property
    def missed(self) -> bool:
        return self.must is not None and (self.ratio is None or self.ratio < self.must)


@dataclass(frozen=True)
class Contender:
    """`prepare` is not timed; the lap that it returns is, and makes `steps` steps."""

    prepare: Callable[[], Callable[[], object]]
    steps: int = 1


def again(lap: Callable[[], object]) -> Contender:
    """A lap that needs no preparation."""
    return Contender(lambda: lap)


def race(contenders: Mapping[str, Contender], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Seconds per step of each contender in each round; a round gives each about `seconds`."""
    laps = {name: laps_within(contender, seconds) for name, contender in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for name in turns(contenders, rounds):
        samples[name].append(per_step(contenders[name], laps[name]))
    return samples


def turns(names: Iterable[str], rounds: int) -> Iterator[str]:
    """Whose turn it is: everyone once per round, another one first each time."""
    order = list(names)
    for _ in range(rounds):
        yield from order
        order.append(order.pop(0))


def laps_within(contender: Contender, seconds: float) -> int:
    """How many laps fill `seconds`, going by the second of two trial laps (the first one warms up)."""
    per_step(contender, 1)
    return max(1, round(seconds / (per_step(contender, 1) * contender.steps)))


def per_step(contender: Contender, laps: int) -> float:
    total = 0.0
    with no_gc():
        for _ in range(laps):
            lap = contender.prepare()
            begun = perf_counter()
            lap()
            total += perf_counter() - begun
    return total / (laps * contender.steps)


@contextmanager
def no_gc() -> Iterator[None]:
    """Collect now, and not in the timed part."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def compare(
    name: str,
    ours: list[float],
    theirs: list[float],
    must: float | None = None,
    unit: str = "us",
    *,
    note: str = "",
) -> Figure:
    """The ratio of the medians; its spread is that of the rounds' own ratios."""
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    our, their, scale = median(ours), median(theirs), UNITS[unit]
    spread = min(ratios), max(ratios)
    return Figure(name, our * scale, their * scale, their / our, must, unit, spread, note)


def within(name: str, worst: float, rounds: list[float], limit: float, unit: str, *, note: str = "") -> Figure:
    """The worst case against an absolute limit; the spread is that of the rounds' own worst cases."""
    scale, spread = UNITS[unit], (limit / max(rounds), limit / min(rounds))
    return Figure(name, worst * scale, limit * scale, limit / worst, 1.0, unit, spread, note)


def alone(name: str, rounds: list[float], unit: str, *, note: str = "") -> Figure:
    """A figure with nothing beside it; the spread is its own."""
    times = [number * UNITS[unit] for number in rounds]
    return Figure(name, median(times), None, None, None, unit, (min(times), max(times)), note)


def point(series: str, at: int, rounds: list[float], unit: str, *, note: str = "") -> Figure:
    """A figure of a line over how much there is."""
    return replace(alone(f"{series}: {at:,}", rounds, unit, note=note), series=series, at=at)


def yardstick(rounds: int) -> Figure:
    """A fixed piece of plain Python: where this line swings, so does every absolute time beside it."""
    times = race({"loop": again(plain_loop)}, rounds, 0.01)["loop"]
    return alone("yardstick: 100,000 additions", times, "ms")


def plain_loop() -> int:
    total = 0
    for number in range(100_000):
        total += number
    return total
