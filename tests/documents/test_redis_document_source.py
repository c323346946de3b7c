"""The source of hashes in Redis, by the suite of all sources."""

from __future__ import annotations

import pytest
from redis_hash_stage import RedisStage

from rota.testing.document_suite import *  # noqa: F403


@pytest.fixture
def stage():
    return RedisStage()
