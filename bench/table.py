"""Writes the README's table from the last results: `python -m bench.table`, or with --print, to look at it first."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.results import AS_RUN, STORES, Result, of_stores, read

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- figures: begin (python -m bench.table) -->", "<!-- figures: end -->"
IDLE = (
    2.0  # load as a suite begins, some of it left behind by the one before; beyond it, others had a part of the machine
)
HEAD = "Rota (how often the best peer)"
NONE = "–"  # noqa: RUF001 - a dash in a table

AS_RUN_INTRO = (
    "Every worker is started by its own command, with its default logging into a file. Jobs have two arguments and a "
    "result, and come from another process."
)
IN_PROCESS_INTRO = "The same with no-op jobs in one process, without logs:"

Cell = Callable[[Result], str | None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("--print", action="store_true", help="print it, change nothing")
    text = tables(read("asrun"), of_stores())
    if not text:
        print("there are no results yet: make bench", file=sys.stderr)
        return 1
    if parser.parse_args().print:
        print(text)
    else:
        README.write_text(placed(README.read_text(), text))
    return 0


def placed(page: str, text: str) -> str:
    """A page with the table between its marks, instead of what was there."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the table: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def tables(as_run: Result | None, stores: Mapping[str, Result]) -> str:
    """What people run first; then the same in one process and without logs."""
    parts = [AS_RUN_INTRO, table_as_run(as_run)] if as_run else []
    if stores:
        parts += [*([IN_PROCESS_INTRO] if as_run else []), table(stores)]
    return "\n\n".join(parts)


def table_as_run(result: Result) -> str:
    rows = [[what, *(cell_for(kind)(result) or NONE for kind in AS_RUN)] for what, cell_for in ROWS_AS_RUN.items()]
    return "\n".join([*lined([HEAD, *AS_RUN.values()], rows), "", circumstances({"": result})])


def table(results: Mapping[str, Result]) -> str:
    rows = [[what, *(cell(result) or NONE for result in results.values())] for what, cell in ROWS.items()]
    named = {STORES[kind]: result for kind, result in results.items()}
    return "\n".join([*lined([HEAD, *named], rows), "", circumstances(named)])


def lined(heads: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows]]


def circumstances(results: Mapping[str, Result]) -> str:
    """On what this was measured; one line where all stores agree."""
    said = {
        name: f"Python {fact(one, 'python')}, {fact(one, 'cores')} cores, {pace(one)}" for name, one in results.items()
    }
    alike = set(said.values())
    told = alike.pop() if len(alike) == 1 else "; ".join(f"{name}: {words}" for name, words in said.items())
    servers = [str(one.facts["server"]) for one in results.values() if "server" in one.facts]
    beside = [f"Servers on the same machine: {'; '.join(servers)}."] if servers else []
    return " ".join([f"{told}.", *beside, *business(results)])


def business(results: Mapping[str, Result]) -> list[str]:
    """Whether something else ran beside it, which makes every figure worse, and not all alike."""
    loads = [float(str(one.facts["load"])) for one in results.values() if "load" in one.facts]
    if not loads or max(loads) < IDLE:
        return []
    return [f"**The machine was busy (load {max(loads):g}): these figures are preliminary.**"]


def fact(result: Result, name: str) -> str:
    return str(result.facts.get(name, "?"))


def pace(result: Result) -> str:
    return f"medians of {fact(result, 'rounds')} {'quick ' if result.facts.get('quick') else ''}rounds"


def rate(what: str) -> Cell:
    """Jobs a second, and how often the best peer's."""
    return lambda result: beside_best(result, what, lambda micros: f"{1e6 / micros:,.0f}/s")


def span(what: str) -> Cell:
    return lambda result: beside_best(result, what, told_span)


def told_span(micros: float) -> str:
    return f"{micros / 1e3:.1f} ms" if micros >= 1_000 else f"{micros:.0f} µs"


def beside_best(result: Result, what: str, told: Callable[[float], str]) -> str | None:
    peers = result.versus(what)
    if not peers:
        return None
    name, figure = next(iter(peers.items()))
    return f"{told(figure.ours)} ({figure.ratio:.1f}x {name})"


def share(what: str) -> Cell:
    def cell(result: Result) -> str | None:
        figure = result.named(what)
        return figure and f"{100 * (figure.ratio or 0):.0f} %"

    return cell


def cpu(what: str) -> Cell:
    def cell(result: Result) -> str | None:
        figure = result.named(what)
        return figure and f"{figure.ours:.0f} ms"

    return cell


def trips(result: Result) -> str | None:
    """Ours, and the peer's that needs fewest."""
    peers = {name: one for name, one in result.versus("round trips per job drained").items() if name != "limit"}
    if not peers:
        return None
    name, figure = next(iter(peers.items()))
    return f"{figure.ours:.2f} ({name} {figure.theirs:.2f})"


ROWS: dict[str, Cell] = {
    "drain": rate("drain"),
    "… share of a bare loop that keeps nothing": share("drain, share of the limit"),
    "… worker CPU per 1,000 jobs": cpu("drain, worker CPU per 1,000 jobs"),
    "… round trips per job": trips,
    "enqueue one": span("single enqueue"),
    "enqueue many": rate("bulk enqueue"),
    "from an idle worker to running": span("idle to running, p50"),
}

ROWS_AS_RUN: dict[str, Callable[[str], Cell]] = {  # given a store
    "drain": lambda kind: rate(f"{kind}: drain"),
    "… share of the drain without job lines": lambda kind: share(f"{kind}: drain, share of that without job lines"),
    "… worker CPU per 1,000 jobs": lambda kind: cpu(f"{kind}: drain, worker CPU per 1,000 jobs"),
    "enqueue one": lambda kind: span(f"{kind}: single enqueue"),
    "from an idle worker to running": lambda kind: span(f"{kind}: idle to running, p50"),
}

if __name__ == "__main__":
    sys.exit(main())
