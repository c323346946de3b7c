"""The table of states: exactly these moves, and no other."""

from __future__ import annotations

from itertools import product

import pytest

from rota.errors import Refused, UnlawfulMove
from rota.model.jobs.job import FINAL, FIRST_STATES, MOVES, WAITING, State, check_move

LAWFUL = {
    ("failed", "scheduled"),  # retried by hand, before its time
    ("cancelled", "scheduled"),
    ("scheduled", "queued"),
    ("scheduled", "cancelled"),
    ("queued", "running"),
    ("queued", "cancelled"),
    ("running", "scheduled"),
    ("running", "queued"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("scheduled", "held"),  # made ahead, and it would overlap
    ("held", "queued"),
    ("held", "scheduled"),
    ("held", "cancelled"),
    ("failed", "queued"),
    ("cancelled", "queued"),
}


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_every_pair_of_states_is_lawful_or_refused(before, after):
    if (before.value, after.value) in LAWFUL:
        check_move(before, after)
    else:
        with pytest.raises(UnlawfulMove, match=f"a {before} job cannot become {after}"):
            check_move(before, after)


def test_the_table_knows_every_state():
    assert set(MOVES) == set(State)


def test_final_and_waiting_states():
    assert {state.value for state in FINAL} == {"succeeded", "failed", "cancelled"}
    assert (
        {state.value for state in WAITING} == {"scheduled", "queued", "held"} == {state.value for state in FIRST_STATES}
    )
    assert [state.is_final for state in State] == [state in FINAL for state in State]
    assert [state.is_waiting for state in State] == [state in WAITING for state in State]


def test_a_succeeded_job_never_moves_again():
    assert MOVES[State.SUCCEEDED] == frozenset()


def test_an_unlawful_move_is_a_refusal():
    assert issubclass(UnlawfulMove, Refused)
