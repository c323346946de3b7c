"""Peers in environments of their own, made when first needed, and trials that run there."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from venv import EnvBuilder

from bench.measure import Figure, alone

SCRIPTS = Path(__file__).parent / "peers"
PLACE = Path(__file__).parent / ".peers"
FILES = Path(os.environ.get("ROTA_BENCH_FILES", PLACE))  # by default on the repository's disk: /tmp may be memory


@dataclass(frozen=True)
class Entrant:
    """A script in peers/, whose environment is described by peers/<peer>.txt (None: this very environment)."""

    script: str
    peer: str | None = None
    options: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # of its process's environment

    def trial(self, scenario: str, count: int) -> dict[str, float]:
        """One trial in a process and a folder of its own."""
        with scratch() as folder:
            result: dict[str, float] = json.loads(output(self.command(scenario, folder, count), self.settings))
        return result

    def command(self, scenario: str, folder: str, count: int) -> list[str | Path]:
        python = sys.executable if self.peer is None else environment(self.peer)
        return [python, SCRIPTS / self.script, scenario, folder, str(count), *self.options]


def environment(peer: str) -> Path:
    """The interpreter of a peer's environment, which is made again if its description has changed."""
    described = (SCRIPTS / f"{peer}.txt").read_text()
    folder = PLACE / peer
    python, stamp = folder / "bin" / "python", folder / "made-from.txt"
    if not stamp.exists() or stamp.read_text() != described:
        print(f"making {folder} ...", flush=True)
        EnvBuilder(with_pip=True, clear=True).create(folder)
        install(python, "-r", SCRIPTS / f"{peer}.txt")
        stamp.write_text(described)
    return python


def install(python: Path, *what: str | Path) -> None:
    output([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what])


def packages(python: Path) -> dict[str, str]:
    """What is installed beside that interpreter, with versions."""
    listed = json.loads(output([python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]))
    return {package["name"].lower(): package["version"] for package in listed}


def scratch() -> TemporaryDirectory[str]:
    """A folder for one trial's files, on the disk that is measured."""
    FILES.mkdir(exist_ok=True)
    return TemporaryDirectory(dir=FILES, prefix="run-")


def output(command: Sequence[str | Path], settings: Mapping[str, str] | None = None) -> str:
    """What a command prints; its complaints are shown where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(settings or {})})
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Disk:
    """How long one durable write takes, asked again and again: where this swings, so does everything that commits."""

    def __init__(self) -> None:
        self._paces: list[float] = []

    def ask(self) -> None:
        with scratch() as folder, (Path(folder) / "page").open("wb", buffering=0) as file:
            times = [durable_write(file) for _ in range(30)]
        self._paces.append(median(times))

    def figure(self) -> Figure:
        unsteady = max(self._paces) > 3 * min(self._paces)
        note = "unsteady: trust no ratio of what commits, run again" if unsteady else ""
        return alone("yardstick: one durable write", self._paces, "us", note=note)


def durable_write(file: FileIO) -> float:
    file.seek(0)
    file.write(bytes(4096))
    begun = perf_counter()
    os.fdatasync(file.fileno())
    return perf_counter() - begun
