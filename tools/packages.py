"""Builds the wheel and the sdist, and shows on every Python that is here that they install and run: `make packages`.

Each is installed into an empty virtual environment, where a project of one file enqueues a job, runs it and reads its
result. The folder `dist` then has both packages, a bill of materials of the core install, and the release notes.
With `--release`, it also refuses what must not be published: addresses that are placeholders, or no release notes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

from tools.pythons import dotted, interpreters, say
from tools.release_notes import NoNotes, notes_of
from tools.sbom import bill_of, installed_in

ROOT = Path(__file__).parents[1]
MOST_PACKAGES = 9  # of a core install, Rota itself included
PLACEHOLDER = ".example"  # a domain that nobody can own
IN_SDIST = ("src", "tests", "docs", "examples", "bench", "tools")  # folders, so that the tests can be run from it

JOBS = """
from rota import App

app = App("sqlite:///jobs.db")

@app.task
def greet(name: str) -> str:
    return name.upper()
"""


class Failed(Exception):
    """A package that is not as it must be; says which, and why."""


class Built(NamedTuple):
    """The two files of a version."""

    wheel: Path
    sdist: Path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.packages", description=__doc__)
    parser.add_argument("--release", action="store_true", help="Refuse what must not be published.")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="Where the packages go.  [default: dist]")
    given = parser.parse_args(arguments)
    try:
        make(given.folder, is_release=given.release)
    except (Failed, NoNotes, subprocess.CalledProcessError) as err:
        say(f"error: {err}")
        return 1
    return 0


def make(folder: Path, *, is_release: bool) -> None:
    """Build, check, install and describe."""
    if is_release:
        check_addresses({**project()["urls"], "SECURITY.md": (ROOT / "SECURITY.md").read_text()})
        notes_of(version())
    built = build(folder)
    check_wheel(built.wheel)
    check_sdist(built.sdist)
    say(f"built {built.wheel.name} and {built.sdist.name}")
    found = sorted(interpreters().items())
    for number, program in found:
        for package in built:
            packages = try_package(program, package)
            say(f"Python {dotted(number)}: {package.name} installs and runs, with {len(packages)} packages")
    if not found:
        raise Failed("there is no Python from 3.11 on here to try the packages on")
    describe(built, found[-1][1], folder)


def build(folder: Path) -> Built:
    """Run `python -m build` in an environment of its own; the sdist is made first, and the wheel from the sdist."""
    with tempfile.TemporaryDirectory() as place:
        python = new_environment(sys.executable, Path(place))
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build")
        run(python, "-m", "build", "--outdir", str(folder), str(ROOT))
    return Built(wheel=folder / f"rota-{version()}-py3-none-any.whl", sdist=folder / f"rota-{version()}.tar.gz")


def check_wheel(wheel: Path) -> None:
    """It has every file of the package, whatever its kind, and nothing beside it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {str(path.relative_to(ROOT / "src")) for path in files_of(ROOT / "src" / "rota")}
    if missing := wanted - names:
        raise Failed(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    info = f"rota-{version()}.dist-info/"
    if strangers := {name for name in names - wanted if not name.startswith(info)}:
        raise Failed(f"{wheel.name} has files that are no part of the package: {', '.join(sorted(strangers))}")


def check_sdist(sdist: Path) -> None:
    """It has what its own tests need."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = {str(path.relative_to(ROOT)) for folder in IN_SDIST for path in files_of(ROOT / folder)}
    files = {"pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"}
    if missing := (folders | files) - names:
        raise Failed(f"{sdist.name} lacks {', '.join(sorted(missing)[:10])}")


def files_of(folder: Path) -> list[Path]:
    """The files of a folder; in a clone, those that git does not ignore."""
    if not (ROOT / ".git").exists():
        return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", str(folder), cwd=ROOT)
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def try_package(program: str, package: Path) -> list[str]:
    """Install a package into an empty environment and run a job there; which packages the environment then has."""
    with tempfile.TemporaryDirectory() as place:
        python = new_environment(program, Path(place) / "venv")
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(package))
        packages = [one.name for one in installed_in(python)]
        if len(packages) > MOST_PACKAGES:
            raise Failed(f"a core install has {len(packages)} packages, more than {MOST_PACKAGES}: {packages}")
        run_a_job(Path(python).with_name("rota"), Path(place))
        return packages


def run_a_job(rota: Path, folder: Path) -> None:
    (folder / "jobs.py").write_text(JOBS)
    job = run(str(rota), "enqueue", "greet", "ann", "--app", "jobs.py", cwd=folder).strip()
    run(str(rota), "worker", "jobs.py", "--until-empty", cwd=folder)
    shown = json.loads(run(str(rota), "jobs", "show", job, "--app", "jobs.py", "-o", "json", cwd=folder))
    if (shown["state"], shown["result"]) != ("succeeded", "ANN"):
        raise Failed(f"a job did not run: {shown}")


def describe(built: Built, program: str, folder: Path) -> None:
    """Write the bill of materials and, if this version has them, the release notes."""
    with tempfile.TemporaryDirectory() as place:
        python = new_environment(program, Path(place))
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(built.wheel))
        bill = folder / f"rota-{version()}.cdx.json"
        bill.write_text(json.dumps(bill_of(installed_in(python)), indent=2) + "\n")
        say(f"wrote {bill.name}")
    try:
        text = notes_of(version())
    except NoNotes as err:
        say(f"no release notes: {err}")
        return
    (folder / f"rota-{version()}.md").write_text(text)
    say(f"wrote rota-{version()}.md")


def check_addresses(addresses: dict[str, str]) -> None:
    """Refuse to publish addresses at which nobody answers; each is under the name of its place."""
    if wrong := [name for name, text in addresses.items() if PLACEHOLDER in text]:
        raise Failed(
            f"placeholder addresses ({PLACEHOLDER}) in {', '.join(wrong)}: write the project's own into "
            "[project.urls] of pyproject.toml and into SECURITY.md"
        )


def version() -> str:
    return str(project()["version"])


def project() -> dict[str, dict[str, str]]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def new_environment(program: str, folder: Path) -> str:
    """An empty virtual environment; its Python."""
    run(program, "-m", "venv", str(folder))
    return str(folder / "bin" / "python")


def run(*command: str, cwd: Path | None = None) -> str:
    """What a command writes to stdout; an error shows what it wrote to stderr."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603 - built above
    if done.returncode:
        say(done.stderr)
    done.check_returncode()
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
