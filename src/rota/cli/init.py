"""Runs `init`: writes a commented rota.yaml and a sample jobs.py into the current folder. It overwrites nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.output import say
from rota.cli.words import listed
from rota.config.describe import sample
from rota.config.finding import NAME
from rota.config.kinds import Target
from rota.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = '''\
"""The tasks and schedules of this project."""

from rota import App, cron, every

app = App()


@app.task(retries=3)
def greet(name: str) -> str:
    """Say hello. What it prints is kept as the job's log."""
    print(f"hello {name}")
    return name.upper()


@app.schedule(every("10s"))
def tick() -> None:
    greet.enqueue("world")


@app.schedule(cron("0 9 * * mon-fri", tz="Europe/Paris"))
def report() -> None:
    print("good morning")
'''


@click.command()
@click.option("--app", "target", metavar="TARGET", help="Name this app in rota.yaml, and write no jobs.py.")
def init(target: str | None) -> None:
    """Write a starter project: rota.yaml and jobs.py."""
    app = Target().read(target) if target else "jobs.py"
    files = {NAME: sample(app)} if target else {NAME: sample(app), "jobs.py": JOBS}
    folder = Path.cwd()
    _refuse_existing(folder, list(files))
    for name, text in files.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
    say(*_next_steps(folder, list(files), app))


def _refuse_existing(folder: Path, names: list[str]) -> None:
    there = [name for name in names if os.path.lexists(folder / name)]
    if not there:
        return
    instead = "" if NAME in there else "; `rota init --app jobs.py` writes a rota.yaml for it and nothing else"
    verb = "is" if len(there) == 1 else "are"
    raise Refused(f"{listed(there)} {verb} in {folder} already and would be overwritten; nothing was written{instead}")


def _next_steps(folder: Path, names: list[str], app: str) -> Iterator[str]:
    yield f"wrote {listed(names)}"
    if _is_unignored(folder):
        yield "jobs and schedules are kept in .rota/; add that line to .gitignore"
    yield ""
    if app == "jobs.py":
        yield "run it, and watch:     rota dev"
        yield "then in another shell: rota enqueue greet ann --wait"
    else:
        yield f"look at what it has:   rota lint       # {app}"
        yield "run it, and watch:     rota dev"


def _is_unignored(folder: Path) -> bool:
    """Whether this is part of a git repository which does not seem to ignore .rota."""
    root = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    if root is None:
        return False
    lines = [line.strip().strip("/") for place in {root, folder} for line in _lines(place / ".gitignore")]
    return ".rota" not in lines


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
