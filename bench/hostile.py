"""Cron texts that somebody sends in order to hurt, and what the worst of them costs."""

import functools
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice, product
from statistics import median
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

import rota
from bench.measure import Figure, no_gc, within

ZONE = "America/New_York"
AFTER = datetime(2026, 1, 1, tzinfo=ZoneInfo(ZONE))
TIME_LIMIT = 0.020  # seconds
MEMORY_LIMIT = 1_000_000  # bytes
SIZES = (60, 240, 4_000, 100_000)  # characters: a limit on the length must not hide what lies below it

Cache = functools._lru_cache_wrapper  # noqa: SLF001 - it has no public name
Costs = list[float]


def run(rounds: int) -> list[Figure]:
    attempt("0 0 * * *")  # loads the zone
    times = [costs(seconds_of) for _ in range(rounds)]
    sizes = [costs(bytes_of) for _ in range(rounds)]
    return [
        worst("hostile cron, worst time", times, max, TIME_LIMIT, "ms"),
        # Memory is exact, except that the interpreter's own tables grow once in a while in the middle of a text.
        worst("hostile cron, worst memory", sizes, median, MEMORY_LIMIT, "MB"),
    ]


def worst(name: str, rounds: list[Costs], pick: Callable[[Costs], float], limit: float, unit: str) -> Figure:
    """The text that costs most, each text's cost being picked from its rounds."""
    per_text = [pick(list(costs_of_text)) for costs_of_text in zip(*rounds, strict=True)]
    cost = max(per_text)
    culprit = next(islice(texts(), per_text.index(cost), None))
    return within(name, cost, [max(costs_of_round) for costs_of_round in rounds], limit, unit, note=label(culprit))


def costs(cost: Callable[[str], float]) -> Costs:
    """What each text costs when it is met for the first time."""
    found, caches = [], caches_of_rota()
    with no_gc():
        for text in texts():
            for cache in caches:
                cache.cache_clear()
            found.append(cost(text))
    return found


def caches_of_rota() -> list[Any]:
    """Every cached function that reads cron; zones stay, as they are loaded once, whatever the text."""
    caches = (thing for thing in gc.get_objects() if isinstance(thing, Cache))
    names = ((cache, cache.__module__) for cache in caches)
    return [cache for cache, name in names if name.startswith("rota.") and not name.endswith(".zone")]


def attempt(text: str) -> None:
    """Parse and ask for the next run; a refusal is a good answer, any other error is not."""
    with suppress(rota.BadTrigger):
        rota.cron(text, tz=ZONE).next_after(AFTER)


def seconds_of(text: str) -> float:
    begun = perf_counter()
    attempt(text)
    return perf_counter() - begun


def bytes_of(text: str) -> float:
    tracemalloc.start()
    try:
        attempt(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def label(text: str) -> str:
    return ascii(text) if len(text) <= 40 else f"{text[:24]!a}... ({len(text):,} characters)"


def texts() -> Iterator[str]:
    yield from IMPOSSIBLE_OR_RARE
    yield from crowded()
    for filler, size in product(FILLERS, SIZES):
        text = filler * (size // len(filler))
        yield from (form.format(text) for form in FORMS)


def crowded() -> Iterator[str]:
    """Texts that are valid, or nearly, and ask for much."""
    minutes, seconds = ",".join(map(str, range(60))), ",".join(map(str, range(59, -1, -1)))
    days, years = ",".join(f"{day}W" for day in range(1, 32)), ",".join(map(str, range(1970, 2200)))
    nths = ",".join(f"{day}#{nth}" for day in range(7) for nth in range(1, 6))
    lasts, backs = ",".join(f"{day}L" for day in range(7)), ",".join(f"L-{back}" for back in range(1, 31))
    yield f"{seconds} {minutes} 0-23 {days},{backs},L,LW * {nths},{lasts}"
    yield f"{seconds} {minutes} 23 ? FEB {nths} {years}"
    yield f"{minutes} * * * *"
    yield f"*/1 0-59 0/1 {days},LW * {lasts}"
    yield f"0 0 0 ? 2 {nths.replace('0#', '7#')} 2199"
    yield f"0 0 * * {nths},{lasts}"
    yield f"0 0 {days},L,LW * {lasts}"
    yield f"{minutes} 0 {backs} 2 *"
    yield f"{minutes} 0 */30 2 {nths}"
    yield f"0 0 0 {days} 2 ? 2199"
    yield f"0 0 {days} FEB,FEB-FEB {lasts}"


IMPOSSIBLE_OR_RARE = (
    "0 0 30 2 *",
    "0 0 31 2,4,6,9,11 *",
    "59 23 31 FEB ?",
    "0 0 L-29 2 *",
    "0 0 L-30 2,4 *",
    "0 0 L-28 2 *",
    "* * */20 * 1L",
    "* * */30 2 *",
    "*/59 */23 */30 */11 */6",
    "0 0 29 2 MON",
    "0 0 29 2 */7",
    "0 0 */28 2 MON",
    "0 0 */28 2 MON#5",
    "0 0 * 2 MON#5",
    "0 0 29W 2 *",
    "0 0 31W 2 *",
    "0 0 0 29 2 ? 2199",
    "0 0 0 29 2 ? 2196",
    "0 0 0 ? 2 MON#5 2199",
    "0 0 0 ? 2 MON#5 2100-2199",
    "59 59 23 31 12 ? 2199",
    "0 0 0 1 1 ? 1970",
    "0 0 0 1 1 ? 1970-2199/229",
    "0 30 2 ? 3 1#2 2199",
    "30 2 8-14 3 *",
    "@every 99999999999999999999d",
    "@every 1s",
    "TZ=Amerika/New_Yrok 0 0 * * *",
    "CRON_TZ=america/new_york/x 0 0 * * *",
    "TZ=../../../../etc/passwd 0 0 * * *",
)

FORMS = ("{}", "{} 0 * * *", "0 0 {} * *", "0 0 * * {}", "@{}", "@every {}", "TZ={} 0 0 * * *")
WORDS = "1, 59, *, 1- */ */1, 1-5/2, 0-59/1, 0/7, 22-2, FRI-MON, JAN, 1W, L-3, MON#1, 5L, L, LW, 1s ../ A/ A_"
FILLERS = (
    *"90,@*?-/#LW \t\n\0",
    *WORDS.split(),
    "* ",
    "1 ",
    "\N{ARABIC-INDIC DIGIT ONE}",
    "\N{MATHEMATICAL DOUBLE-STRUCK DIGIT ONE}",
    "\N{SUPERSCRIPT TWO},",
    "\N{LATIN SMALL LETTER SHARP S}",
    "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}",
    "\N{NO-BREAK SPACE}",
)
