"""The source of rows in SQLite, by the suite of all sources: on columns, and on JSON in a column."""

from __future__ import annotations

import pytest
from sqlite_stage import ColumnStage, JsonStage

from rota.testing.document_suite import *  # noqa: F403


@pytest.fixture(params=[ColumnStage, JsonStage], ids=["columns", "json"])
def stage(request, tmp_path):
    return request.param(tmp_path / "shop.db")
