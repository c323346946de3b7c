"""Draws the results into docs/images: `python -m bench.chart`, and `make bench` once all stores are measured."""

import sys
from collections.abc import Mapping
from pathlib import Path

from bench import results, svg
from bench.results import AS_RUN, STORES, Result

IMAGES = Path(__file__).parent.parent / "docs" / "images"
AS_RUN_HEADING = "Jobs per second of one worker, started by its own command, with its default logging (logarithmic)"
HEADING = "No-op jobs drained per second by one worker process (logarithmic)"
WIDTH = 760
EDGE, ROW, GAP, LEFT, RIGHT = 6, 20, 18, 150, 90  # pixels

Line = list[tuple[int, float]]
PANELS = {  # heading, what the numbers are -> the lines, each of a suite
    "Exchange of 100 jobs, by jobs waiting": {
        name: (f"growth_{kind}", f"{kind}: exchange") for kind, name in STORES.items()
    },
    "Wake-up with 10 due, by schedules": {
        name: (f"growth_{kind}", f"{kind}: wake-up, 10 due") for kind, name in STORES.items()
    },
    "Wake-up with none due, by schedules": {
        name: ("schedules", f"{name}: wake-up, none due") for name in ("Rota", "Celery beat", "APScheduler")
    },
}


def main() -> int:
    written = write()
    print("\n".join(map(str, written)) or "there are no results to draw yet: make bench")
    return 0 if written else 1


def write(folder: Path = results.FOLDER, images: Path = IMAGES) -> list[Path]:
    """Draw what there is: the drain of all stores, and growth."""
    as_run, stores, drawn = results.read("asrun", folder), results.of_stores(folder), dict[str, str]()
    if as_run:
        paces = {name: paces_as_run(as_run, kind) for kind, name in AS_RUN.items()}
        drawn["drain.svg"] = drain_chart(AS_RUN_HEADING, paces)
    elif stores.keys() == STORES.keys():
        drawn["drain.svg"] = drain_chart(HEADING, {STORES[kind]: paces_of(one) for kind, one in stores.items()})
    if panels := panels_in(folder):
        drawn["growth.svg"] = growth_chart(panels)
    images.mkdir(parents=True, exist_ok=True)
    for name, content in drawn.items():
        (images / name).write_text(content)
    return [images / name for name in drawn]


def drain_chart(heading: str, paces: Mapping[str, Mapping[str, float]]) -> str:
    """Jobs a second of everyone, store by store, on one logarithmic scale."""
    scale = svg.scale_for([pace for group in paces.values() for pace in group.values()], LEFT, WIDTH - RIGHT)
    rows = sum(len(group) for group in paces.values())
    bottom = 40 + ROW * rows + (GAP + ROW) * len(paces)
    parts = [
        svg.text(EDGE, 16, heading, "head"),
        *(svg.rule(scale.at(tick), 28, scale.at(tick), bottom) for tick in scale.ticks()),
        *(svg.text(scale.at(tick), bottom + 14, svg.short(tick), "small middle") for tick in scale.ticks()),
    ]
    y = 40
    for name, group in paces.items():
        parts += [svg.text(EDGE, y + 14, name, "head"), *bars(group, scale, y + ROW)]
        y += ROW * (len(group) + 1) + GAP
    return svg.page(WIDTH, bottom + 22, "Jobs drained per second, by store", parts)


def paces_as_run(result: Result, kind: str) -> dict[str, float]:
    """Jobs a second on one store: Rota, and its peers from fast to slow."""
    peers = result.versus(f"{kind}: drain")
    ours = next(iter(peers.values())).ours
    return {"Rota": 1e6 / ours, **{name: 1e6 / one.theirs for name, one in peers.items() if one.theirs}}


def paces_of(result: Result) -> dict[str, float]:
    """Jobs a second: Rota, its peers from fast to slow, and the bare loop."""
    peers, limit = result.versus("drain"), result.named("drain, share of the limit")
    ours = next(iter(peers.values())).ours
    paces = {"Rota": 1e6 / ours, **{name: 1e6 / one.theirs for name, one in peers.items() if one.theirs}}
    return {**paces, "bare loop": 1e6 / limit.theirs} if limit and limit.theirs else paces


def bars(group: Mapping[str, float], scale: svg.Scale, y: int) -> list[str]:
    kinds = {"Rota": "c0", "bare loop": "limit"}
    parts: list[str] = []
    for place, (name, pace) in enumerate(group.items()):
        top = y + ROW * place
        parts += [
            svg.text(LEFT - 8, top + 13, name, "end"),
            svg.bar(LEFT, top + 2, scale.at(pace) - LEFT, ROW - 5, kinds.get(name, "c1")),
            svg.text(scale.at(pace) + 6, top + 13, f"{pace:,.0f}", "small"),
        ]
    return parts


def panels_in(folder: Path) -> dict[str, dict[str, Line]]:
    """Those panels that have lines of at least two points."""
    panels: dict[str, dict[str, Line]] = {}
    for heading, series in PANELS.items():
        read = {name: (results.read(suite, folder), one) for name, (suite, one) in series.items()}
        lines = {name: result.line(one) for name, (result, one) in read.items() if result}
        if found := {name: line for name, line in lines.items() if len(line) > 1}:
            panels[heading] = found
    return panels


def growth_chart(panels: Mapping[str, Mapping[str, Line]]) -> str:
    parts: list[str] = []
    for place, (heading, lines) in enumerate(panels.items()):
        parts += panel(heading, lines, 10 + 250 * place)
    return svg.page(WIDTH, 250 * len(panels), "What growth costs", parts)


def panel(heading: str, lines: Mapping[str, Line], top: int) -> list[str]:
    left, right, bottom = 60, WIDTH - 130, top + 200
    across = svg.scale_for([x for line in lines.values() for x, _ in line], left, right)
    up = svg.scale_for([y for line in lines.values() for _, y in line], bottom, top + 24)
    parts = [svg.text(EDGE, top + 12, f"{heading} (microseconds; both scales logarithmic)", "head")]
    for tick in up.ticks():
        parts += [
            svg.rule(left, up.at(tick), right, up.at(tick)),
            svg.text(left - 6, up.at(tick) + 4, svg.short(tick), "small end"),
        ]
    parts += [svg.text(across.at(tick), bottom + 16, svg.short(tick), "small middle") for tick in across.ticks()]
    labels = spread({name: up.at(line[-1][1]) for name, line in lines.items()})
    for place, (name, line) in enumerate(lines.items()):
        kind = ("c0", "c2", "c3", "c4")[place % 4]
        parts += [
            svg.curve([(across.at(x), up.at(y)) for x, y in line], kind),
            svg.text(across.at(line[-1][0]) + 10, labels[name] + 4, name, f"{kind} label"),
        ]
    return parts


def spread(wanted: Mapping[str, float], apart: float = 15.0) -> dict[str, float]:
    """Where labels go, so that none lies on another: as near as can be to where they should be, from the top down."""
    placed: dict[str, float] = {}
    lowest = float("-inf")
    for name, y in sorted(wanted.items(), key=lambda pair: pair[1]):
        lowest = max(y, lowest + apart)
        placed[name] = round(lowest, 1)
    return placed


if __name__ == "__main__":
    sys.exit(main())
