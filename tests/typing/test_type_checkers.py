"""The public API under two type checkers: right code passes, and each planted mistake is reported where it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"
RIGHT, WRONG = HERE / "right_code.py", HERE / "planted_mistakes.py"
CHECKERS = ("mypy", "basedpyright")


def run(command: list[str], folder: Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    return ran.stdout


def mypy(folder: Path) -> set[tuple[str, int, str]]:
    """What mypy reports: file, line and message."""
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = true\nmypy_path = {SOURCE}\nfollow_imports = silent\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(folder / "cache")]
    output = run([*command, "--no-error-summary", str(RIGHT), str(WRONG)], folder)
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", output, re.MULTILINE)
    return {(name, int(line), message) for name, line, message in found}


def basedpyright(folder: Path) -> set[tuple[str, int, str]]:
    """What basedpyright reports."""
    config = folder / "pyrightconfig.json"
    settings = {
        "include": [str(RIGHT), str(WRONG)],
        "extraPaths": [str(SOURCE)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnusedFunction": False,
        "reportUnusedCallResult": False,
    }
    config.write_text(json.dumps(settings))
    checker = Path(sys.executable).with_name("basedpyright")
    output = run([str(checker), "--outputjson", "--pythonpath", sys.executable, "--project", str(config)], folder)
    report = json.loads(output)
    assert report["summary"]["filesAnalyzed"] == 2
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    }


@pytest.fixture(scope="module", params=CHECKERS)
def reported(request, tmp_path_factory) -> set[tuple[str, int, str]]:
    folder = tmp_path_factory.mktemp(request.param)
    return mypy(folder) if request.param == "mypy" else basedpyright(folder)


def planted() -> dict[str, int]:
    lines = WRONG.read_text().splitlines()
    return {line.partition("# mistake: ")[2]: number for number, line in enumerate(lines, 1) if "# mistake: " in line}


def test_right_code_is_clean(reported):
    assert {entry for entry in reported if entry[0] == RIGHT.name} == set()


@pytest.mark.parametrize("mistake", planted())
def test_a_planted_mistake_is_reported_on_its_line(reported, mistake):
    assert planted()[mistake] in {line for name, line, _ in reported if name == WRONG.name}


def test_nothing_else_is_reported(reported):
    assert {line for name, line, _ in reported if name == WRONG.name} == set(planted().values())


def test_there_are_ten_mistakes():
    assert len(planted()) == 10
