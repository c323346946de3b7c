"""Every rota.yaml that the docs show is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rota.config.yaml_file import read_file

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```yaml\n(# rota\.yaml\n.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(page.name, block) for page in sorted(DOCS.rglob("*.md")) for block in BLOCK.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize("block", [block for _, block in BLOCKS], ids=[name for name, _ in BLOCKS])
def test_a_file_in_the_docs_is_understood(block, tmp_path):
    (tmp_path / "rota.yaml").write_text(block, encoding="utf-8")
    reading = read_file(tmp_path / "rota.yaml")
    assert reading.complaints == []
    assert reading.layer


def test_there_is_one_to_look_at():
    assert "settings.md" in dict(BLOCKS)
