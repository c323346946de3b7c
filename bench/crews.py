"""Worker processes at work: what starts so many of them, jobs that say where they ran, and the pace of all."""

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from bench.environments import SCRIPTS, environment, output, scratch

PATIENCE = 180.0
RECORD = struct.Struct("qq")  # a process, and the nanosecond at which a job of its ended


@dataclass(frozen=True)
class Crew:
    """Who works in processes: a script in peers/, and the words after the interpreter that start them."""

    script: str
    words: tuple[str, ...]  # {} is the number of processes
    peer: str | None = None

    def pace(self, url: str, processes: int, count: int, burn: float) -> float:
        """Seconds per job, from when every process has begun."""
        python = sys.executable if self.peer is None else environment(self.peer)
        settings = {"BENCH_URL": url, "BENCH_BURN": str(burn), "PYTHONPATH": path_with(SCRIPTS)}
        with scratch() as folder, inside(folder):
            output([python, SCRIPTS / self.script, str(count)], settings)
            words = [word.format(processes) for word in self.words]
            with running([python, *words], settings):
                open_gate(processes)
                return seconds_per_job(records_of(Path("ran"), count), processes)


ROTA = Crew("cpu_rota.py", ("-m", "rota", "worker", "cpu_rota:app", "--processes", "{}", "--log-level", "error"))
CELERY = Crew(
    "cpu_celery.py",
    ("-m", "celery", "-A", "cpu_celery", "worker", "-P", "prefork", "-c", "{}", "-l", "ERROR", "--without-gossip",
     "--without-mingle", "--without-heartbeat"),
    "celery",
)  # fmt: skip
DRAMATIQ = Crew("cpu_dramatiq.py", ("-m", "dramatiq", "cpu_dramatiq", "-p", "{}", "-t", "8"), "dramatiq")


def seconds_per_job(records: Sequence[tuple[int, int]], processes: int) -> float:
    """The pace of all together: what came before the last of them began does not count."""
    firsts: dict[int, int] = {}
    for process, at in records:
        firsts.setdefault(process, at)
    if len(firsts) != processes:
        raise AssertionError(f"{len(firsts)} processes took part, not {processes}")
    start, end = max(firsts.values()), max(at for _, at in records)
    later = sum(at > start for _, at in records)
    if not later:
        raise AssertionError("the last process came too late: more jobs are needed")
    return (end - start) / 1e9 / later


def records_of(file: Path, count: int) -> list[tuple[int, int]]:
    """What jobs have told, once all have."""
    deadline = time.monotonic() + PATIENCE
    while not file.exists() or file.stat().st_size < count * RECORD.size:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} jobs take longer than {PATIENCE} s")
        time.sleep(0.02)
    return list(RECORD.iter_unpack(file.read_bytes()))


def open_gate(processes: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(list(Path().glob("ready-*"))) < processes:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{processes} processes take longer than {PATIENCE} s to start")
        time.sleep(0.01)
    Path("go").touch()


def path_with(folder: Path) -> str:
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))


@contextmanager
def inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def running(command: Sequence[str | Path], settings: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command with all its processes, which end with the block."""
    with TemporaryFile(dir=Path.cwd()) as complaints:  # on the disk that is measured: it may get a line per job
        process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=complaints, stderr=complaints, start_new_session=True
        )
        try:
            yield process
        except (TimeoutError, AssertionError) as err:
            complaints.seek(0)
            raise RuntimeError(f"{err}; it wrote:\n{complaints.read().decode(errors='replace')}") from err
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
