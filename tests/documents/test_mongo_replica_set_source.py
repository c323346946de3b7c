"""The source of MongoDB documents on a replica set, by the suite of all sources."""

from __future__ import annotations

import pytest
from mongo_stage import MongoStage

from rota.testing.document_suite import *  # noqa: F403

pytestmark = pytest.mark.one_in(3)  # test_mongo_source.py runs all of them on a standalone server


@pytest.fixture
def stage():
    return MongoStage("mongo-replica")
