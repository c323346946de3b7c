"""Tests logs: the lines that a job wrote, in order, with duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.store.contract import LARGEST_PAGE
from rota.testing.store_suite.builders import T0, a_line
from rota.testing.store_suite.steps import add_job

if TYPE_CHECKING:
    from rota.store.contract import Store


def texts(store: Store, job_id: str) -> list[str]:
    return [line.text for line in store.list_logs(job_id)]


class TestLogs:
    def test_lines_come_in_the_order_written(self, store: Store) -> None:
        job_id = add_job(store)
        store.append_logs([a_line(job_id, "b"), a_line(job_id, "a")])
        store.append_logs([a_line(job_id, "c", at=T0 - 1)])
        assert texts(store, job_id) == ["b", "a", "c"]

    def test_identical_lines_are_all_kept(self, store: Store) -> None:
        job_id = add_job(store)
        store.append_logs([a_line(job_id, "same")] * 3)
        store.append_logs([a_line(job_id, "same")])
        assert texts(store, job_id) == ["same"] * 4

    def test_a_line_is_kept_whole(self, store: Store) -> None:
        job_id = add_job(store)
        line = a_line(job_id, "Zürich ☕\n'quoted' %s\ttab", level="error", at=T0 + 7)
        store.append_logs([line])
        (kept,) = store.list_logs(job_id)
        assert msgspec.structs.replace(kept, number=0) == line

    def test_numbers_rise_within_a_job(self, store: Store) -> None:
        job_id = add_job(store)
        for _ in range(3):
            store.append_logs([a_line(job_id, "x"), a_line(job_id, "x")])
        numbers = [line.number for line in store.list_logs(job_id)]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0

    def test_each_job_has_its_own_lines(self, store: Store) -> None:
        first, second = add_job(store), add_job(store)
        store.append_logs([a_line(first, "1"), a_line(second, "2"), a_line(first, "3")])
        assert (texts(store, first), texts(store, second)) == (["1", "3"], ["2"])

    def test_a_reader_continues_where_it_stopped(self, store: Store) -> None:
        job_id = add_job(store)
        store.append_logs([a_line(job_id, str(n)) for n in range(5)])
        first = store.list_logs(job_id, limit=2)
        rest = store.list_logs(job_id, after=first[-1].number)
        assert [line.text for line in [*first, *rest]] == ["0", "1", "2", "3", "4"]

    def test_a_page_is_no_larger_than_the_largest(self, store: Store) -> None:
        job_id = add_job(store)
        store.append_logs([a_line(job_id, str(n)) for n in range(LARGEST_PAGE + 1)])
        assert len(store.list_logs(job_id)) == LARGEST_PAGE

    def test_a_job_that_wrote_nothing_has_no_lines(self, store: Store) -> None:
        store.append_logs([])
        assert store.list_logs(add_job(store)) == []
