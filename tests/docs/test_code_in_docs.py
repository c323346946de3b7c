"""Every Python block in the README and the docs runs as written.

A block that begins with a comment such as `# shop.py` is a file of its page: later blocks find it under that name. A
file whose name begins with test_ is run by pytest, and the files before it on its page are run by that alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# (\w+\.py)\n")
Files = dict[str, str]


def blocks() -> list[tuple[str, str, Files]]:
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        files: Files = {}
        codes = BLOCK.findall(page.read_text(encoding="utf-8"))
        last_test = max((number for number, code in enumerate(codes, 1) if is_test(file_name(code))), default=0)
        for number, code in enumerate(codes, 1):
            name = file_name(code)
            files = {**files, name: code} if name else files
            if not name or is_test(name) or number > last_test:
                found.append((f"{page.relative_to(ROOT)}-{number}", code, files))
    return found


def is_test(name: str | None) -> bool:
    return name is not None and name.startswith("test_")


def file_name(code: str) -> str | None:
    named = FILE_NAME.match(code)
    return named[1] if named else None


@pytest.mark.parametrize(
    ("code", "files"), [(code, files) for _, code, files in blocks()], ids=[name for name, _, _ in blocks()]
)
def test_a_block_runs_as_written(code: str, files: Files, tmp_path: Path):
    name = file_name(code) or "block.py"
    for file, text in {**files, name: code}.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", name] if is_test(name) else [name]
    ran = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=240, cwd=tmp_path, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
