"""What the suites have written, read back for tables and charts."""

import json
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Figure

FOLDER = Path(__file__).parent / "results"
STORES = {
    "sqlite": "SQLite",
    "redis": "Redis",
    "postgres": "PostgreSQL",
    "mongo": "MongoDB",
    "mongo_replica_set": "MongoDB replica set",
}

AS_RUN = {**{kind: STORES[kind] for kind in ("sqlite", "redis", "postgres")}, "mongo": STORES["mongo_replica_set"]}


@dataclass(frozen=True)
class Result:
    """One suite's facts and figures."""

    facts: dict[str, object]
    figures: tuple[Figure, ...]

    def named(self, name: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.name == name), None)

    def versus(self, what: str) -> dict[str, Figure]:
        """Peer -> the figure beside it, the best first, as the suite has ranked them."""
        start = f"{what} vs "
        return {one.name.removeprefix(start): one for one in self.figures if one.name.startswith(start)}

    def line(self, series: str) -> list[tuple[int, float]]:
        """The points of one line, from left to right."""
        return sorted((one.at, one.ours) for one in self.figures if one.series == series and one.at is not None)


def read(suite: str, folder: Path = FOLDER) -> Result | None:
    """A suite's last result, if there is one."""
    file = folder / f"{suite}.json"
    if not file.exists():
        return None
    content = json.loads(file.read_text())
    figures = tuple(Figure(**{**one, "spread": tuple(one["spread"])}) for one in content.pop("figures"))
    return Result(content, figures)


def of_stores(folder: Path = FOLDER) -> dict[str, Result]:
    """The results of those stores that have been measured."""
    return {kind: result for kind in STORES if (result := read(kind, folder))}
