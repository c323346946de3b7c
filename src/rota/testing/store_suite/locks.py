"""Tests locks: one owner at a time, by token; expired locks are free; each new owner has a higher number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.testing.store_suite.builders import MINUTE, T0

if TYPE_CHECKING:
    from rota.store.contract import Store


class TestLocks:
    def test_a_free_lock_is_taken(self, store: Store) -> None:
        assert store.change_lock("a", "acquire", "mine", MINUTE, now=T0) == 1

    def test_a_held_lock_is_refused_to_others(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert store.change_lock("a", "acquire", "other", MINUTE, now=T0 + MINUTE - 1) is None

    def test_locks_of_other_names_are_free(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert store.change_lock("b", "acquire", "other", MINUTE, now=T0) == 1

    def test_taking_it_again_with_the_same_token_is_harmless(self, store: Store) -> None:
        first = store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert store.change_lock("a", "acquire", "mine", MINUTE, now=T0 + 1) == first

    def test_a_expired_lock_is_free_and_its_number_rises(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert store.change_lock("a", "acquire", "other", MINUTE, now=T0 + MINUTE) == 2

    def test_a_released_lock_is_free_and_its_number_rises(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert store.change_lock("a", "release", "mine", now=T0)
        assert store.change_lock("a", "acquire", "mine", MINUTE, now=T0) == 2

    def test_only_its_owner_releases_it(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert not store.change_lock("a", "release", "other", now=T0)
        assert store.change_lock("a", "acquire", "other", MINUTE, now=T0) is None

    def test_a_lost_lock_is_not_released_by_its_old_owner(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        store.change_lock("a", "acquire", "other", MINUTE, now=T0 + MINUTE)
        assert not store.change_lock("a", "release", "mine", now=T0 + MINUTE)
        assert store.change_lock("a", "extend", "other", MINUTE, now=T0 + MINUTE)

    def test_extending_keeps_it(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert store.change_lock("a", "extend", "mine", MINUTE, now=T0 + MINUTE - 1)
        assert store.change_lock("a", "acquire", "other", MINUTE, now=T0 + MINUTE) is None

    def test_a_expired_lock_is_not_extended(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert not store.change_lock("a", "extend", "mine", MINUTE, now=T0 + MINUTE)

    def test_only_its_owner_extends_it(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        assert not store.change_lock("a", "extend", "other", MINUTE, now=T0)
        assert not store.change_lock("b", "extend", "mine", MINUTE, now=T0)
