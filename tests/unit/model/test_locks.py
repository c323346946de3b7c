"""Who gets a lock, and what is written then."""

from __future__ import annotations

import pytest

from rota.model.clock.repair import TOLERANCE
from rota.model.lock import LockDecision, LockState, decide_lock

NOW, TTL = 1_000_000_000, 30_000_000


def a_lock(owner, until, number=4, ttl=TTL):
    return LockState(token=owner, until=until, number=number, ttl=ttl)


HELD = a_lock("mine", NOW + 1)
OVER = a_lock("mine", NOW)
RENEWED = a_lock("mine", NOW + TTL)
REFUSED = LockDecision(None, None)


@pytest.mark.parametrize(
    ("lock", "act", "token", "decision"),
    [
        (LockState(), "acquire", "mine", LockDecision(1, a_lock("mine", NOW + TTL, 1))),
        (OVER, "acquire", "other", LockDecision(5, a_lock("other", NOW + TTL, 5))),
        (OVER, "acquire", "mine", LockDecision(5, a_lock("mine", NOW + TTL, 5))),
        (HELD, "acquire", "mine", LockDecision(4, RENEWED)),
        (HELD, "acquire", "other", REFUSED),
        (HELD, "extend", "mine", LockDecision(4, RENEWED)),
        (HELD, "extend", "other", REFUSED),
        (OVER, "extend", "mine", REFUSED),
        (HELD, "release", "mine", LockDecision(4, LockState(number=4))),
        (HELD, "release", "other", REFUSED),
        (OVER, "release", "mine", REFUSED),
    ],
)
def test_what_becomes_of_a_lock(lock, act, token, decision):
    assert decide_lock(lock, act, token, TTL, NOW) == decision


@pytest.mark.parametrize(("beyond", "until"), [(0, None), (1, NOW + TTL)])
def test_a_lock_of_a_clock_that_was_ahead_ends_one_term_from_now(beyond, until):
    lock = a_lock("mine", NOW + TTL + TOLERANCE + beyond)
    number, after = decide_lock(lock, "acquire", "other", TTL, NOW)
    assert (number, after and after.until) == (None, until)


def test_a_lock_whose_term_is_not_known_is_not_bounded():
    lock = a_lock("mine", NOW + 100 * TTL, ttl=None)
    assert decide_lock(lock, "acquire", "other", TTL, NOW) == REFUSED
