"""Tests what became of each expected time. Its job is the record while it is kept; afterwards a range is."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.schedules.edit import remove, trigger_now
from rota.model.schedules.firing import overlap_reason
from rota.model.schedules.occurrence import Occurrence
from rota.store.contract import LedgerSpan, Retention
from rota.testing.store_suite.builders import DAY, HOUR, MINUTE, T0
from rota.testing.store_suite.steps import (
    FAR,
    add_schedule,
    change_schedule,
    claim,
    claim_one,
    fail,
    fire,
    ledger,
    read_schedule,
    succeed,
)

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.store.contract import Store

KEEP = Retention(succeeded_for=HOUR, failed_for=DAY)


def run_minutes(store: Store, *minutes: int, keep: bool = True) -> list[str]:
    """Fire the schedule at each of these minutes and let its jobs succeed."""
    made = []
    for minute in minutes:
        now = T0 + minute * MINUTE
        (job_id,) = fire(store, now=now).jobs
        succeed(store, claim_one(store, now=now), now=now, keep=keep)
        made.append(job_id)
    return made


def fail_minute(store: Store, minute: int) -> str:
    now = T0 + minute * MINUTE
    (job_id,) = fire(store, now=now).jobs
    fail(store, claim_one(store, now=now), now=now)
    return job_id


def a_range(after: int, through: int, outcome: str = "succeeded", reason: str = "") -> Occurrence:
    return Occurrence(
        schedule_id="tick",
        after_at=T0 + after * MINUTE,
        through_at=T0 + through * MINUTE,
        count=through - after,
        outcome=outcome,
        reason=reason,
    )


class TestJobsAsRecords:
    def test_a_job_is_the_record_of_its_occurrence(self, store: Store) -> None:
        add_schedule(store)
        (job_id,) = fire(store, now=T0 + MINUTE).jobs
        assert ledger(store) == [msgspec.structs.replace(a_range(0, 1, "queued"), job_id=job_id)]

    def test_the_record_follows_the_job(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        seen = [ledger(store)[0].outcome]
        job = claim_one(store, now=T0 + MINUTE)
        seen.append(ledger(store)[0].outcome)
        succeed(store, job, now=T0 + MINUTE)
        assert [*seen, ledger(store)[0].outcome] == ["queued", "running", "succeeded"]

    def test_occurrences_come_oldest_first(self, store: Store) -> None:
        add_schedule(store)
        made = run_minutes(store, 1, 2, 3)
        assert [line.job_id for line in ledger(store)] == made

    def test_jobs_run_by_hand_are_no_occurrences(self, store: Store) -> None:
        change_schedule(store, trigger_now(add_schedule(store), T0, "by-hand"))
        assert ledger(store) == []

    def test_each_schedule_has_its_own(self, store: Store) -> None:
        add_schedule(store)
        add_schedule(store, "tock")
        fire(store, now=T0 + MINUTE)
        assert len(ledger(store)) == 1
        assert ledger(store, "tock") == []

    def test_an_unknown_schedule_has_none(self, store: Store) -> None:
        assert ledger(store, "nowhere") == []


class TestRanges:
    def test_a_removed_job_leaves_its_entry(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, keep=False)
        assert ledger(store) == [a_range(0, 1)]

    def test_adjacent_times_with_one_outcome_share_an_entry(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3, 4, keep=False)
        assert ledger(store) == [a_range(0, 4)]

    def test_a_deleted_job_leaves_its_entry(self, store: Store) -> None:
        add_schedule(store)
        first, second = run_minutes(store, 1, 2)
        store.delete_jobs([first], now=T0 + HOUR)
        assert ledger(store) == [a_range(0, 1), msgspec.structs.replace(a_range(1, 2), job_id=second)]

    def test_jobs_deleted_together_share_an_entry(self, store: Store) -> None:
        add_schedule(store)
        made = run_minutes(store, 1, 2, 3)
        store.delete_jobs(made, now=T0 + HOUR)
        assert ledger(store) == [a_range(0, 3)]

    @pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
    def test_adjacent_times_share_an_entry_in_whatever_order_their_jobs_are_deleted(
        self, store: Store, order: tuple[int, ...]
    ) -> None:
        add_schedule(store)
        made = run_minutes(store, 1, 2, 3)
        for n in order:
            store.delete_jobs([made[n]], now=T0 + HOUR)
        assert ledger(store) == [a_range(0, 3)]

    def test_a_pruned_job_leaves_its_entry(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3)
        assert store.prune(KEEP, 100, now=T0 + 2 * HOUR).jobs == 3
        assert ledger(store) == [a_range(0, 3)]

    def test_pruning_in_small_batches_makes_the_same_entry(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3)
        while store.prune(KEEP, 1, now=T0 + 2 * HOUR).jobs:
            pass
        assert ledger(store) == [a_range(0, 3)]

    def test_different_outcomes_stay_apart(self, store: Store) -> None:
        add_schedule(store)
        made = [*run_minutes(store, 1), fail_minute(store, 2), *run_minutes(store, 3)]
        store.delete_jobs(made, now=T0 + HOUR)
        assert ledger(store) == [a_range(0, 1), a_range(1, 2, "failed"), a_range(2, 3)]

    def test_a_kept_job_stands_between_ranges(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, keep=False)
        (kept,) = run_minutes(store, 2)
        run_minutes(store, 3, keep=False)
        middle = msgspec.structs.replace(a_range(1, 2), job_id=kept)
        assert ledger(store) == [a_range(0, 1), middle, a_range(2, 3)]

    def test_adjacent_skips_share_an_entry(self, store: Store) -> None:
        add_schedule(store)
        (live,) = fire(store, now=T0 + MINUTE).jobs
        for minute in (2, 3, 4):
            fire(store, now=T0 + minute * MINUTE)
        assert ledger(store)[1:] == [a_range(1, 4, "skipped", overlap_reason(live))]

    def test_each_expected_time_is_shown_once(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, keep=False)
        fire(store, now=T0 + 10 * MINUTE + 1)
        fire(store, now=T0 + 11 * MINUTE)
        succeed(store, claim_one(store, now=T0 + 11 * MINUTE), now=T0 + 11 * MINUTE)
        run_minutes(store, 12)
        lines = ledger(store)
        assert [line.after_at for line in lines[1:]] == [line.through_at for line in lines[:-1]]
        assert sum(line.count for line in lines) == 12

    def test_a_removed_schedule_has_no_entries(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, keep=False)
        change_schedule(store, remove(read_schedule(store), T0 + HOUR), now=T0 + HOUR)
        assert ledger(store) == []


class TestRunsBeforeTheSchedule:
    """If a schedule's start is earlier on the day on which it is made, the run of that start is one of its times."""

    NOW = T0 + HOUR

    def begin(self, store: Store) -> Job:
        add_schedule(store, now=self.NOW, start=T0 + 2 * MINUTE, trigger="every 30m")
        return claim_one(store, now=self.NOW)

    def test_it_is_in_the_ledger(self, store: Store) -> None:
        job = self.begin(store)
        (line,) = ledger(store)
        assert (line.through_at, line.job_id, line.outcome) == (T0 + 32 * MINUTE, job.id, "running")

    def test_it_stays_there_when_its_job_goes(self, store: Store) -> None:
        succeed(store, self.begin(store), now=self.NOW, keep=False)
        (line,) = ledger(store)
        assert (line.through_at, line.count, line.outcome, line.job_id) == (T0 + 32 * MINUTE, 1, "succeeded", None)

    def test_runs_of_an_earlier_namesake_are_none_of_it(self, store: Store) -> None:
        add_schedule(store, now=T0, trigger="every 35m")
        earlier = fire(store, now=T0 + 35 * MINUTE).jobs
        change_schedule(store, remove(read_schedule(store), T0 + 36 * MINUTE), now=T0 + 36 * MINUTE)
        job = self.begin(store)
        assert [line.job_id for line in ledger(store, page=1)] == [job.id]
        store.delete_jobs(earlier, now=self.NOW)
        assert [line.job_id for line in ledger(store)] == [job.id]

    def test_an_earlier_namesake_that_still_runs_is_an_overlap(self, store: Store) -> None:
        now = T0 + 35 * MINUTE
        add_schedule(store, now=T0, trigger="every 35m")
        fire(store, now=now)
        live = claim_one(store, now=now)
        change_schedule(store, remove(read_schedule(store), now), now=now)
        add_schedule(store, now=now + 1, start=T0 + 2 * MINUTE, trigger="every 30m")
        assert claim(store, now=now + 1) == []
        (line,) = ledger(store)
        assert (line.through_at, line.count, line.outcome) == (T0 + 32 * MINUTE, 1, "skipped")
        assert line.reason == overlap_reason(live.id)


class TestWindows:
    def test_a_window_includes_its_start_and_not_its_end(self, store: Store) -> None:
        add_schedule(store)
        made = run_minutes(store, 1, 2, 3)
        page = store.list_occurrences("tick", T0 + 2 * MINUTE, T0 + 3 * MINUTE)
        assert [line.job_id for line in page.items] == [made[1]]

    def test_a_window_around_one_time_shows_that_one(self, store: Store) -> None:
        """ "Why did 00:02 not run?" has one answer."""
        add_schedule(store)
        made = run_minutes(store, 1, 2, 3)
        page = store.list_occurrences("tick", T0 + 2 * MINUTE, T0 + 2 * MINUTE + 1)
        assert [line.job_id for line in page.items] == [made[1]]

    def test_a_window_between_two_times_is_empty(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2)
        assert store.list_occurrences("tick", T0 + MINUTE + 1, T0 + 2 * MINUTE).items == []

    def test_a_range_that_reaches_into_the_window_is_shown_whole(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3, 4, keep=False)
        page = store.list_occurrences("tick", T0 + 2 * MINUTE, T0 + 3 * MINUTE)
        assert page.items == [a_range(0, 4)]

    def test_a_range_beside_the_window_is_not_shown(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, keep=False)
        assert store.list_occurrences("tick", T0 + 2 * MINUTE + 1, T0 + HOUR).items == []
        assert store.list_occurrences("tick", 0, T0).items == []

    @pytest.mark.parametrize("size", [1, 2, 3, 200])
    def test_pages_of_any_size_show_every_entry_once(self, store: Store, size: int) -> None:
        add_schedule(store)
        run_minutes(store, 1, keep=False)
        run_minutes(store, 2, 3)
        fail_minute(store, 4)
        run_minutes(store, 5, keep=False)
        lines = ledger(store, page=size)
        assert [line.through_at for line in lines] == [T0 + minute * MINUTE for minute in (1, 2, 3, 4, 5)]

    def test_a_last_page_that_is_full_has_no_cursor(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2)
        assert store.list_occurrences("tick", 0, T0 + HOUR, limit=2).cursor is None

    def test_a_page_ends_at_the_windows_end(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3)
        first = store.list_occurrences("tick", 0, T0 + 3 * MINUTE, limit=1)
        rest = store.list_occurrences("tick", 0, T0 + 3 * MINUTE, limit=9, cursor=first.cursor)
        assert [line.through_at for line in rest.items] == [T0 + 2 * MINUTE]

    @pytest.mark.parametrize("limit", [1, 2, 50])
    def test_many_schedules_are_read_at_once_as_each_alone(self, store: Store, limit: int) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, keep=False)
        run_minutes(store, 3, 4)
        add_schedule(store, "tock")
        names = ("tock", "nothing", "tick")
        for start, end in ((0, FAR), (T0 + 2 * MINUTE, T0 + 4 * MINUTE), (T0 + 3 * MINUTE, T0 + 3 * MINUTE + 1)):
            spans = [LedgerSpan(name, start, end) for name in names]
            alone = [store.list_occurrences(*span, limit=limit) for span in spans]
            assert store.list_many_occurrences(spans, limit=limit) == alone
        assert store.list_many_occurrences([]) == []

    def test_jobs_of_an_earlier_namesake_are_not_read_with_many(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3)
        change_schedule(store, remove(read_schedule(store), T0 + HOUR), now=T0 + HOUR)
        add_schedule(store, now=T0 + HOUR)
        assert store.list_occurrences("tick", 0, FAR, limit=2).items == []
        run_minutes(store, 61)
        add_schedule(store, "tock")
        spans = [LedgerSpan(name, 0, FAR) for name in ("tock", "tick")]
        pages = store.list_many_occurrences(spans, limit=1)
        assert [[line.through_at for line in page] for page in pages] == [[], [T0 + 61 * MINUTE]]
        assert [page.cursor for page in pages] == [None, None]


class TestOccurrenceRetention:
    def test_old_entries_are_deleted_by_age(self, store: Store) -> None:
        add_schedule(store)
        made = [*run_minutes(store, 1), fail_minute(store, 2), *run_minutes(store, 3)]
        store.delete_jobs(made, now=T0 + 3 * MINUTE)
        assert store.prune(Retention(occurrences_for=HOUR), 100, now=T0 + HOUR + 2 * MINUTE).occurrences == 2
        assert ledger(store) == [a_range(2, 3)]

    def test_a_range_is_as_old_as_its_end(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, 2, 3, keep=False)
        assert store.prune(Retention(occurrences_for=HOUR), 100, now=T0 + HOUR + 2 * MINUTE).occurrences == 0
        assert ledger(store) == [a_range(0, 3)]

    def test_a_kept_job_is_no_entry_to_prune(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1)
        assert store.prune(Retention(occurrences_for=MINUTE), 100, now=T0 + HOUR).occurrences == 0
        assert len(ledger(store)) == 1

    def test_old_entries_are_deleted_by_number(self, store: Store) -> None:
        add_schedule(store)
        for minute in range(1, 7):
            (fail_minute if minute % 2 else run_minutes)(store, minute)
        store.delete_jobs([line.job_id or "" for line in ledger(store)], now=T0 + HOUR)
        assert store.prune(Retention(most_occurrences=2), 100, now=T0 + HOUR).occurrences == 4
        assert [line.through_at for line in ledger(store)] == [T0 + 5 * MINUTE, T0 + 6 * MINUTE]

    def test_the_number_is_counted_for_each_schedule(self, store: Store) -> None:
        for name in ("tick", "tock"):
            add_schedule(store, name, catchup="skip")
            fire(store, name, now=T0 + 5 * MINUTE + 1)
        assert store.prune(Retention(most_occurrences=1), 100, now=T0 + HOUR).occurrences == 0

    def test_the_time_of_a_pruned_entry_does_not_fire_again(self, store: Store) -> None:
        add_schedule(store)
        run_minutes(store, 1, keep=False)
        store.prune(Retention(occurrences_for=1), 100, now=T0 + 90 * MINUTE)
        assert ledger(store) == []
        assert read_schedule(store).fired_through == T0 + MINUTE
