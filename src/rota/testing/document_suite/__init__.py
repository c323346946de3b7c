"""Tests any source of documents. A behaviour that this suite does not test does not exist.

A source's whole test file:

    import pytest
    from rota.testing.document_suite import *

    @pytest.fixture
    def stage(...):
        return MyStage(...)

A stage (`rota.testing.document_suite.stage.Stage`) is the owner of the documents: it writes and reads them as an
application does, and makes the source. Every test runs twice: with a lock that has fields of its own, and with the four
fields of a schedule alone. The tests use the server's clock. They wait until something is true, never for a time.
"""
# ruff: noqa: E402 - pytest explains failed asserts only in modules that are registered before they are imported

from __future__ import annotations

from pkgutil import iter_modules

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))

from rota.testing.document_suite.checking import TestBrowsing, TestChecking, TestFinding
from rota.testing.document_suite.fixtures import has_lock, source
from rota.testing.document_suite.locking import TestDueDocuments, TestExpiredLocks, TestLocks, TestTheNextTime
from rota.testing.document_suite.racing import TestRaces
from rota.testing.document_suite.renewing import TestRenewals
from rota.testing.document_suite.running import TestBadInput, TestRunning
from rota.testing.document_suite.updating import TestFences, TestOwners, TestRemovals, TestSideRecords, TestUpdates

__all__ = [
    "TestBadInput",
    "TestBrowsing",
    "TestChecking",
    "TestDueDocuments",
    "TestExpiredLocks",
    "TestFences",
    "TestFinding",
    "TestLocks",
    "TestOwners",
    "TestRaces",
    "TestRemovals",
    "TestRenewals",
    "TestRunning",
    "TestSideRecords",
    "TestTheNextTime",
    "TestUpdates",
    "has_lock",
    "source",
]
