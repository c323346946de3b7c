"""The source of MongoDB documents on a standalone server, by the suite of all sources."""

from __future__ import annotations

import pytest
from mongo_stage import MongoStage

from rota.testing.document_suite import *  # noqa: F403


@pytest.fixture
def stage():
    return MongoStage("mongo")
