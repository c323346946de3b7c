"""Tests any store. A behaviour that this suite does not test does not exist.

A store's whole test file:

    import pytest
    from rota.testing.store_suite import *
    from rota.testing.store_suite.durable import *  # where features.is_durable
    from rota.testing.store_suite.shared import *  # where features.is_shared

    @pytest.fixture
    def make_store(tmp_path):
        return partial(MyStore, tmp_path / "rota.db")

`make_store()` gives a handle that is not open yet, always on the same data, which is empty when a test begins and is
deleted by the author's fixture. If the store is shared, it must be picklable: other processes call it too.

The tests inject their time; after each of them the store is checked as a whole (see `checks`).
"""
# ruff: noqa: E402 - pytest explains failed asserts only in modules that are registered before they are imported

from __future__ import annotations

from pkgutil import iter_modules

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))

from rota.testing.store_suite.adding import TestAddingJobs, TestAddingMany, TestBatches, TestUniqueKeys
from rota.testing.store_suite.by_hand import (
    TestCancellingByHand,
    TestCancelsThatComeTooLate,
    TestDeletingByHand,
    TestRetryingByHand,
    TestRunningByHand,
)
from rota.testing.store_suite.claiming import (
    TestClaiming,
    TestClaimingAhead,
    TestClaimOrder,
    TestNextDue,
    TestPausedQueues,
    TestPromotion,
)
from rota.testing.store_suite.clock_repair import (
    TestClockSetRight,
    TestClockWronglySetBack,
    TestDelaysUnderAWrongClock,
    TestLeasesUnderAWrongClock,
    TestLocksUnderAWrongClock,
    TestLookaheadAndTheClock,
    TestMadeUnderAWrongClock,
    TestWhatIsNoWrongClock,
)
from rota.testing.store_suite.clocks import TestInjectedClock, TestStoresOwnClock
from rota.testing.store_suite.counting import TestCountingJobs, TestFailures
from rota.testing.store_suite.due import TestDueSchedules, TestNextDueSchedule, TestPausesWithAnEnd
from rota.testing.store_suite.early import TestChangesInBetween, TestFiringEarly, TestSomethingInTheWay
from rota.testing.store_suite.firing import TestCatchUp, TestDoneDates, TestFiredThrough, TestFiring, TestMaxRuns
from rota.testing.store_suite.fixtures import store
from rota.testing.store_suite.histories import TestHistories
from rota.testing.store_suite.holding import TestChainsOfHeldJobs, TestHeldJobs, TestWaitingForWhatHasEnded
from rota.testing.store_suite.keys import TestFreedKeys, TestKeysForAPeriod
from rota.testing.store_suite.leases import TestCancelRequests, TestExtendingLeases, TestLostLeases
from rota.testing.store_suite.listing import (
    TestAddedTogether,
    TestFarApart,
    TestFilters,
    TestGettingJobs,
    TestListingJobs,
    TestPages,
)
from rota.testing.store_suite.lives import TestStoreLife
from rota.testing.store_suite.locks import TestLocks
from rota.testing.store_suite.logs import TestLogs
from rota.testing.store_suite.lookahead import (
    TestCatchUpAhead,
    TestCreatingEarly,
    TestDecidingWhenDue,
    TestDeletingEarlyJobs,
)
from rota.testing.store_suite.moves import TestMoves
from rota.testing.store_suite.moving import (
    TestDumping,
    TestLoadedJobs,
    TestLoadedQueuesAndLocks,
    TestLoadedSchedules,
    TestLoading,
    TestRemoval,
    TestTwoCopies,
    source,
)
from rota.testing.store_suite.nodes import TestNodes
from rota.testing.store_suite.notify import TestIdleWorkers, TestListeners, listener
from rota.testing.store_suite.occurrences import (
    TestJobsAsRecords,
    TestOccurrenceRetention,
    TestRanges,
    TestRunsBeforeTheSchedule,
    TestWindows,
)
from rota.testing.store_suite.overlaps import (
    TestChains,
    TestOverlapAllow,
    TestOverlapCancel,
    TestOverlapQueue,
    TestOverlapSkip,
)
from rota.testing.store_suite.progress import TestProgress
from rota.testing.store_suite.pruning import TestPruningByAge, TestPruningByNumber, TestPruningInBatches
from rota.testing.store_suite.queues import TestCounters, TestQueues
from rota.testing.store_suite.races import TestRacesOfCallers, TestRacesOfSchedulers, TestRacesOfWorkers
from rota.testing.store_suite.random_walk import TestRandomWalk
from rota.testing.store_suite.records import TestAuditRecords, TestEntries
from rota.testing.store_suite.repeated import TestRepeatedJobs
from rota.testing.store_suite.rescuing import TestExpiredJobs, TestLastDeath, TestRescuing
from rota.testing.store_suite.revoking import TestAfterRevoking, TestRevoking
from rota.testing.store_suite.schedules import TestEditingSchedules, TestLastRun, TestListingSchedules, TestVersionGuard
from rota.testing.store_suite.sealing import TestEndingOnASealedStore, TestSealing
from rota.testing.store_suite.series import TestSeries
from rota.testing.store_suite.settling import (
    TestAutoRemove,
    TestCancelRequestedMeanwhile,
    TestOutcomes,
    TestRefusedSettles,
    TestSettlingManyAtOnce,
)
from rota.testing.store_suite.silences import TestSilences
from rota.testing.store_suite.slots import TestSlotsAndKeys, TestUniqueAhead, TestUniqueFirings

__all__ = [
    "TestAddedTogether",
    "TestAddingJobs",
    "TestAddingMany",
    "TestAfterRevoking",
    "TestAuditRecords",
    "TestAutoRemove",
    "TestBatches",
    "TestCancelRequestedMeanwhile",
    "TestCancelRequests",
    "TestCancellingByHand",
    "TestCancelsThatComeTooLate",
    "TestCatchUp",
    "TestCatchUpAhead",
    "TestChains",
    "TestChainsOfHeldJobs",
    "TestChangesInBetween",
    "TestClaimOrder",
    "TestClaiming",
    "TestClaimingAhead",
    "TestClockSetRight",
    "TestClockWronglySetBack",
    "TestCounters",
    "TestCountingJobs",
    "TestCreatingEarly",
    "TestDecidingWhenDue",
    "TestDelaysUnderAWrongClock",
    "TestDeletingByHand",
    "TestDeletingEarlyJobs",
    "TestDoneDates",
    "TestDueSchedules",
    "TestDumping",
    "TestEditingSchedules",
    "TestEndingOnASealedStore",
    "TestEntries",
    "TestExpiredJobs",
    "TestExtendingLeases",
    "TestFailures",
    "TestFarApart",
    "TestFilters",
    "TestFiredThrough",
    "TestFiring",
    "TestFiringEarly",
    "TestFreedKeys",
    "TestGettingJobs",
    "TestHeldJobs",
    "TestHistories",
    "TestIdleWorkers",
    "TestInjectedClock",
    "TestJobsAsRecords",
    "TestKeysForAPeriod",
    "TestLastDeath",
    "TestLastRun",
    "TestLeasesUnderAWrongClock",
    "TestListeners",
    "TestListingJobs",
    "TestListingSchedules",
    "TestLoadedJobs",
    "TestLoadedQueuesAndLocks",
    "TestLoadedSchedules",
    "TestLoading",
    "TestLocks",
    "TestLocksUnderAWrongClock",
    "TestLogs",
    "TestLookaheadAndTheClock",
    "TestLostLeases",
    "TestMadeUnderAWrongClock",
    "TestMaxRuns",
    "TestMoves",
    "TestNextDue",
    "TestNextDueSchedule",
    "TestNodes",
    "TestOccurrenceRetention",
    "TestOutcomes",
    "TestOverlapAllow",
    "TestOverlapCancel",
    "TestOverlapQueue",
    "TestOverlapSkip",
    "TestPages",
    "TestPausedQueues",
    "TestPausesWithAnEnd",
    "TestProgress",
    "TestPromotion",
    "TestPruningByAge",
    "TestPruningByNumber",
    "TestPruningInBatches",
    "TestQueues",
    "TestRacesOfCallers",
    "TestRacesOfSchedulers",
    "TestRacesOfWorkers",
    "TestRandomWalk",
    "TestRanges",
    "TestRefusedSettles",
    "TestRemoval",
    "TestRepeatedJobs",
    "TestRescuing",
    "TestRetryingByHand",
    "TestRevoking",
    "TestRunningByHand",
    "TestRunsBeforeTheSchedule",
    "TestSealing",
    "TestSeries",
    "TestSettlingManyAtOnce",
    "TestSilences",
    "TestSlotsAndKeys",
    "TestSomethingInTheWay",
    "TestStoreLife",
    "TestStoresOwnClock",
    "TestTwoCopies",
    "TestUniqueAhead",
    "TestUniqueFirings",
    "TestUniqueKeys",
    "TestVersionGuard",
    "TestWaitingForWhatHasEnded",
    "TestWhatIsNoWrongClock",
    "TestWindows",
    "listener",
    "source",
    "store",
]
