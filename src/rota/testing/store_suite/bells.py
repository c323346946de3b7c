"""Bells: whoever waits for work hears of it. A bell may ring for nothing, so only hearing is tested."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rota.model.edit import disable
from rota.testing.store_suite.builders import MINUTE, T0
from rota.testing.store_suite.steps import add_job, add_schedule, change_schedule, fire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.store.contract import Bell, Channel, Store

PATIENCE = 20.0  # seconds; a bell that is heard takes none of them


@contextmanager
def bell_of(store: Store, channel: Channel) -> Iterator[Bell]:
    bell = store.listen(channel)
    try:
        yield bell
    finally:
        bell.close()


def hears(bell: Bell, act: Callable[[], object]) -> bool:
    """Whether one who waits in another thread hears what happens in this one."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bell.wait, PATIENCE)
        act()
        return waiting.result()


class TestBells:
    def test_a_waiting_bell_hears_an_added_job(self, store: Store) -> None:
        with bell_of(store, "jobs") as bell:
            assert hears(bell, lambda: add_job(store))

    def test_a_waiting_bell_hears_a_fired_job(self, store: Store) -> None:
        add_schedule(store)
        with bell_of(store, "jobs") as bell:
            assert hears(bell, lambda: fire(store, now=T0 + MINUTE))

    def test_a_waiting_bell_hears_a_new_schedule(self, store: Store) -> None:
        with bell_of(store, "schedules") as bell:
            assert hears(bell, lambda: add_schedule(store))

    def test_a_waiting_bell_hears_an_edited_schedule(self, store: Store) -> None:
        schedule = add_schedule(store)
        with bell_of(store, "schedules") as bell:
            assert hears(bell, lambda: change_schedule(store, disable(schedule, T0)))

    def test_what_rang_before_the_wait_is_heard(self, store: Store) -> None:
        """Between finding nothing and waiting, a job may come."""
        with bell_of(store, "jobs") as bell:
            add_job(store)
            assert bell.wait(PATIENCE)

    def test_everyone_who_listens_hears(self, store: Store) -> None:
        with bell_of(store, "jobs") as first, bell_of(store, "jobs") as second:
            add_job(store)
            assert first.wait(PATIENCE)
            assert second.wait(PATIENCE)

    def test_a_bell_can_be_rung_by_hand(self, store: Store) -> None:
        with bell_of(store, "jobs") as bell:
            assert hears(bell, bell.ring)

    def test_a_closed_bell_disturbs_nobody(self, store: Store) -> None:
        with bell_of(store, "jobs") as bell:
            store.listen("jobs").close()
            add_job(store)
            assert bell.wait(PATIENCE)

    def test_a_wait_is_over_when_its_time_is(self, store: Store) -> None:
        with bell_of(store, "jobs") as bell:
            assert bell.wait(0.001) in {True, False}
