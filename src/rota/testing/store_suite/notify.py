"""Notifications: a listener hears of new work. It may also wake for nothing, so that is not tested."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rota.model.schedules.edit import disable
from rota.testing.store_suite.builders import MINUTE, T0
from rota.testing.store_suite.steps import add_job, add_schedule, change_schedule, fire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.store.contract import Channel, Listener, Store

PATIENCE = 60.0  # seconds; a notification that comes takes none of them


@contextmanager
def listener_on(store: Store, channel: Channel) -> Iterator[Listener]:
    listener = store.listen(channel)
    try:
        yield listener
    finally:
        listener.close()


def hears(listener: Listener, act: Callable[[], object]) -> bool:
    """Whether one who waits in another thread hears what happens in this one."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(listener.wait, PATIENCE)
        act()
        return waiting.result()


class TestListeners:
    def test_a_waiting_listener_hears_an_added_job(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            assert hears(listener, lambda: add_job(store))

    def test_a_waiting_listener_hears_a_fired_job(self, store: Store) -> None:
        add_schedule(store)
        with listener_on(store, "jobs") as listener:
            assert hears(listener, lambda: fire(store, now=T0 + MINUTE))

    def test_a_waiting_listener_hears_a_new_schedule(self, store: Store) -> None:
        with listener_on(store, "schedules") as listener:
            assert hears(listener, lambda: add_schedule(store))

    def test_a_waiting_listener_hears_an_edited_schedule(self, store: Store) -> None:
        schedule = add_schedule(store)
        with listener_on(store, "schedules") as listener:
            assert hears(listener, lambda: change_schedule(store, disable(schedule, T0)))

    def test_what_came_before_the_wait_is_heard(self, store: Store) -> None:
        """Between finding nothing and waiting, a job may come."""
        with listener_on(store, "jobs") as listener:
            add_job(store)
            assert listener.wait(PATIENCE)

    def test_everyone_who_listens_hears(self, store: Store) -> None:
        with listener_on(store, "jobs") as first, listener_on(store, "jobs") as second:
            add_job(store)
            assert first.wait(PATIENCE)
            assert second.wait(PATIENCE)

    def test_a_listener_can_be_woken_by_hand(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            assert hears(listener, listener.wake)

    def test_a_closed_listener_disturbs_nobody(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            store.listen("jobs").close()
            add_job(store)
            assert listener.wait(PATIENCE)

    def test_a_wait_is_over_when_its_time_is(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            assert listener.wait(0.001) in {True, False}
