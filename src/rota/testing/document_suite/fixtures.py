"""Provides the source under test, once with each kind of lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.testing.document_suite.stage import CheckedSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.testing.document_suite.stage import Stage


@pytest.fixture(params=[True, False], ids=["lock-fields", "four-fields"])
def has_lock(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def source(stage: Stage, has_lock: bool) -> Iterator[CheckedSource]:  # noqa: FBT001 - a fixture
    """The source with the steps of the tests, on no documents."""
    made = stage.make_source(has_lock=has_lock)
    made.prepare()
    yield CheckedSource(stage, made, has_lock=has_lock)
    made.close()
