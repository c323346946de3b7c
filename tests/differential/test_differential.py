"""Every store answers as the memory store does, whatever is done to it, and shows the same when all is read."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from amounts import amount
from every_store import DURABLE, fresh_place
from rota.testing.differential.comparison import Comparison
from rota.testing.differential.shrinking import shrunk

SEEDS = amount(2, 40, "ROTA_DIFF_SEEDS")
STEPS = amount(300, 1_000, "ROTA_DIFF_STEPS")
MEMORY = "/dev/shm"  # noqa: S108 - what a busy disk takes for each commit is no part of these tests
AT_THE_END = 1_000_000


@pytest.fixture
def make_place(kind):
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield lambda: fresh_place(kind, Path(mkdtemp(dir=folder)))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", DURABLE)
def test_a_store_answers_as_memory_does(make_place, kind, seed):
    with make_place().opened() as store:
        comparison = Comparison({kind: store})
        found = comparison.walk(seed, STEPS)
    if found is not None:
        pytest.fail(f"seed {seed}: {found}\n{fewer_operations(comparison.done, kind, make_place)}", pytrace=False)
    assert comparison.counts["answers"] == STEPS


def fewer_operations(done, kind, make_place):
    """What is enough to show the difference."""

    def replay(operations):
        with make_place().opened() as store:
            return Comparison({kind: store}, look_every=AT_THE_END).replay(operations)

    fewer, still = shrunk(done, replay, seconds=10)
    lines = [f"{number:4} {operation}" for number, operation in enumerate(fewer, 1)]
    return "\n".join([f"these {len(fewer)} operations are enough:", *lines, f"then {still}"])


def test_a_walk_does_and_sees_everything_that_matters():
    counts = Counter()
    for seed in range(3):
        comparison = Comparison({})
        comparison.walk(seed, 500)
        counts += comparison.counts
    verbs = {
        "add_jobs", "exchange", "extend_leases", "expired_jobs", "rescue_jobs", "change_jobs", "request_cancels",
        "record_progress", "delete_jobs", "get_jobs", "list_jobs", "edit_schedules", "get_schedules", "list_schedules",
        "due_schedules", "fire", "list_occurrences", "pause_queue", "list_queues", "record_heartbeat", "list_nodes",
        "forget_node", "append_logs", "list_logs", "change_lock", "prune",
    }  # fmt: skip
    seen = {
        "claims", "refused reports", "refused changes", "occurrences made", "occurrences skipped", "refused firings",
        "refused edits", "errors",
    }  # fmt: skip
    assert [name for name in sorted(verbs | seen) if not counts[name]] == []
