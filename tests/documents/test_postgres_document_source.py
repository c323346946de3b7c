"""The source of rows in PostgreSQL, by the suite of all sources: on columns, and on JSON in a column."""

from __future__ import annotations

import pytest
from postgres_table_stage import ColumnStage, InJsonStage

from rota.testing.document_suite import *  # noqa: F403


@pytest.fixture(params=[ColumnStage, InJsonStage], ids=["columns", "json"])
def stage(request):
    return request.param()
