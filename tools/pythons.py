"""Runs the tests that need no server on every Python from 3.11 on that this machine has: `make test-pythons`.

Each version has a virtual environment of its own, `.venv-3.12` and so on. Interpreters are those on PATH and those of
pyenv. Warnings are errors in the tests, so a call that a later Python has deprecated fails here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
# Tests that start a server of their own, measure, or run tools over the code. The version makes no difference there.
LEFT_OUT = ("tests/benchmark", "tests/chaos", "tests/differential", "tests/servers", "tests/typing")
SERVED_STORES = ("mongo", "postgres", "redis", "valkey")

Version = tuple[int, int, int]


def main(arguments: list[str]) -> int:
    """Test on each Python; the exit status is 1 where one fails, or where there is none."""
    found = interpreters()
    results = {version: run_tests(program, version, arguments) for version, program in sorted(found.items())}
    for version, status in results.items():
        say(f"Python {dotted(version)}: {'passed' if status == 0 else f'failed (exit status {status})'}")
    return 0 if results and not any(results.values()) else 1


def interpreters() -> dict[Version, str]:
    """The newest patch of each version that this machine has."""
    newest: dict[tuple[int, int], tuple[Version, str]] = {}
    for program in candidates():
        version = version_of(program)
        if version is not None and version[:2] >= OLDEST and version > newest.get(version[:2], ((0, 0, 0), ""))[0]:
            newest[version[:2]] = version, program
    return dict(newest.values())


def candidates() -> list[str]:
    """Programs that look like a Python."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    folders += sorted(root.glob("versions/3.*/bin"))
    names = re.compile(r"python3\.\d+")
    return [str(file) for folder in folders for file in folder.glob("python3.*") if names.fullmatch(file.name)]


def version_of(program: str) -> Version | None:
    """Which Python it is; None if it does not run, as a shim of pyenv without a version."""
    asked = subprocess.run(  # noqa: S603 - an interpreter of this machine
        [program, "-c", "import sys; print(*sys.version_info[:3])"], capture_output=True, text=True, check=False
    )
    numbers = [int(number) for number in asked.stdout.split()] if asked.returncode == 0 else []
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def run_tests(program: str, version: Version, arguments: list[str]) -> int:
    folder = Path(f".venv-{version[0]}.{version[1]}")
    python = str(folder / "bin" / "python")
    say(f"\nPython {dotted(version)}, in {folder}")
    if not (folder / ".ready").exists():
        run(program, "-m", "venv", str(folder))
        if run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[dev]"):
            return 1
        (folder / ".ready").touch()
    left_out = [f"--ignore={folder}" for folder in LEFT_OUT]
    left_out += [f"--ignore-glob=*/test_{store}*" for store in SERVED_STORES]
    return run(python, "-m", "pytest", "-p", "no:cacheprovider", *left_out, *(arguments or ["-n", "auto"]))


def run(*command: str) -> int:
    environment = os.environ | {"ROTA_TEST_STORES": "none"}
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - built above


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what it is for


def dotted(version: Version) -> str:
    return ".".join(map(str, version))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
