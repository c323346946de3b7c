"""Every Python block in the README and the docs runs as written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for number, code in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
            found.append((f"{page.relative_to(ROOT)}-{number}", code))
    return found


@pytest.mark.parametrize("code", [code for _, code in blocks()], ids=[name for name, _ in blocks()])
def test_a_block_runs_as_written(code: str, tmp_path: Path):
    script = tmp_path / "block.py"
    script.write_text(code, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert ran.returncode == 0, ran.stderr
