"""Jobs on one store: Rota beside its peers and beside a bare loop, each trial in a process of its own, interleaved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlsplit

from bench.environments import FILES, Disk, Entrant, environment, packages, scratch
from bench.measure import Figure, compare, turns, within, yardstick
from bench.trips import CountingProxy, counted

COUNTS = {"drain": 20_000, "single": 2_000, "bulk": 50_000, "latency": 200}
QUICK_COUNTS = {"drain": 5_000, "single": 500, "bulk": 10_000, "latency": 50}
TRIPS = 2_000  # jobs of a trial that counts them

Samples = dict[str, list[dict[str, float]]]


@dataclass(frozen=True)
class Musts:
    """What a store has to reach; peers and limits are those of the same run."""

    drain_peer: float
    drain_limit: float
    single_peer: float | None
    bulk_limit: float
    latency_limit: float  # the limit's time divided by ours
    cpu: float = 0.03  # seconds of a worker per 1,000 no-op jobs


@dataclass(frozen=True)
class Peer:
    """One contender beside Rota, and what a reader must know to compare."""

    entrant: Entrant
    note: str
    scenarios: tuple[str, ...] = ("drain", "single", "bulk", "latency", "trips")
    share: float = 1.0  # of the jobs of a trial, for those that would take for ever
    is_rival: bool = True  # else it keeps less of a promise than the others, and only informs


@dataclass(frozen=True)
class Lineup:
    """Who runs on a server, before there is one."""

    limit: str  # a script in peers/
    peers: Mapping[str, tuple[str, str, str, float]]  # name -> script, environment, note, share of the jobs
    musts: Musts

    def on(self, url: str, clear: Callable[[], object]) -> "Field":
        return Field(
            rota=Entrant("rota_store.py", options=(url,)),
            limit=Entrant(self.limit, options=(url,)),
            peers={
                name: Peer(Entrant(script, peer, (url,)), note, share=share)
                for name, (script, peer, note, share) in self.peers.items()
            },
            musts=self.musts,
            clear=clear,
        )

    def run(self, url: str, clear: Callable[[], object], rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
        figures = self.on(url, clear).run(rounds, quick)
        port = urlsplit(url).port
        if port is None:
            raise ValueError(f"a server's URL names its port: {url}")
        with CountingProxy(port) as proxy:
            return [*figures, *self.on(proxy.in_front_of(url), clear).trip_figures(proxy)]

    def facts(self, server: str) -> dict[str, str]:
        versions = {name: packages(environment(peer))[peer] for name, (_, peer, _, _) in self.peers.items()}
        return {**versions, "server": server, "files in": str(FILES)}


@dataclass(frozen=True)
class Field:
    """Everyone on one store."""

    rota: Entrant
    limit: Entrant
    peers: Mapping[str, Peer]
    musts: Musts
    clear: Callable[[], object] = field(default=lambda: None)  # before each trial

    def run(self, rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
        counts = QUICK_COUNTS if quick else COUNTS
        disk = Disk()
        samples = {scenario: self.trials(scenario, count, rounds, disk) for scenario, count in counts.items()}
        return [
            *self.drain_figures(samples["drain"]),
            *self.single_figures(samples["single"]),
            *self.bulk_figures(samples["bulk"]),
            *self.latency_figures(samples["latency"]),
            disk.figure(),
            yardstick(rounds),
        ]

    def trip_figures(self, proxy: CountingProxy) -> list[Figure]:
        """Counted once: a count has no noise that rounds would tell."""
        print("round trips ...", flush=True)
        trips: dict[str, dict[str, float]] = {}
        for name, (entrant, share) in self.entrants("trips").items():
            self.clear()
            with scratch() as folder:
                trips[name] = counted(entrant.command("trips", folder, int(TRIPS * share)), proxy)
        ours = trips.pop("rota")
        return [
            compare(f"round trips per {what} vs {name}", [ours[part]], [theirs[part]], unit="trips")
            for part, what in (("drain", "job drained"), ("enqueue", "single enqueue"))
            for name, theirs in sorted(trips.items(), key=lambda pair: pair[1][part])
        ]

    def entrants(self, scenario: str) -> dict[str, tuple[Entrant, float]]:
        peers = {name: (peer.entrant, peer.share) for name, peer in self.peers.items() if scenario in peer.scenarios}
        return {"rota": (self.rota, 1.0), "limit": (self.limit, 1.0), **peers}

    def trials(self, scenario: str, count: int, rounds: int, disk: Disk) -> Samples:
        print(f"{scenario}: {count:,} jobs a trial ...", flush=True)
        entrants = self.entrants(scenario)
        samples: Samples = {name: [] for name in entrants}
        for name in turns(entrants, rounds):
            disk.ask()
            self.clear()
            entrant, share = entrants[name]
            samples[name].append(entrant.trial(scenario, max(20, int(count * share))))
        return samples

    def drain_figures(self, samples: Samples) -> list[Figure]:
        ours = seconds(samples, "rota")
        cpu = [1_000 * sample["cpu"] for sample in samples["rota"]]
        return [
            *self.beside_peers("drain", samples, self.musts.drain_peer),
            compare("drain, share of the limit", ours, seconds(samples, "limit"), self.musts.drain_limit),
            within("drain, worker CPU per 1,000 jobs", median(cpu), cpu, self.musts.cpu, "ms"),
        ]

    def single_figures(self, samples: Samples) -> list[Figure]:
        return [
            *self.beside_peers("single enqueue", samples, self.musts.single_peer),
            compare("single enqueue, share of the limit", seconds(samples, "rota"), seconds(samples, "limit")),
        ]

    def bulk_figures(self, samples: Samples) -> list[Figure]:
        ours, limit = seconds(samples, "rota"), seconds(samples, "limit")
        return [
            *self.beside_peers("bulk enqueue", samples, None),
            compare("bulk enqueue, share of the limit", ours, limit, self.musts.bulk_limit),
        ]

    def latency_figures(self, samples: Samples) -> list[Figure]:
        ours, limit = seconds(samples, "rota"), seconds(samples, "limit")
        return [
            *self.beside_peers("idle to running, p50", samples, None),
            compare("idle to running, p50, share of the limit", ours, limit, self.musts.latency_limit),
        ]

    def beside_peers(self, what: str, samples: Samples, must: float | None) -> list[Figure]:
        """A line per peer, the best of the rivals first: that is the one to beat."""
        ours = seconds(samples, "rota")
        names = sorted((name for name in samples if name in self.peers), key=lambda name: self.rank(samples, name))
        return [
            compare(
                f"{what} vs {name}",
                ours,
                seconds(samples, name),
                must if place == 0 and self.peers[name].is_rival else None,
                note=self.peers[name].note,
            )
            for place, name in enumerate(names)
        ]

    def rank(self, samples: Samples, name: str) -> tuple[bool, float]:
        return not self.peers[name].is_rival, median(seconds(samples, name))


def seconds(samples: Samples, name: str) -> list[float]:
    return [sample["seconds"] for sample in samples[name]]
