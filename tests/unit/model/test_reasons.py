"""Reasons that the store keeps as text: read again, each gives the code and the values that it was made from."""

from __future__ import annotations

from string import Formatter

import pytest

from rota.model.reasons import REASONS, read_reason, reason_text
from rota.model.schedules.schedule import Pause
from rota.sentences import Sentence


@pytest.mark.parametrize("code", REASONS)
def test_a_reason_that_is_made_can_be_read_again(code):
    names = [name for _, name, *_ in Formatter().parse(REASONS[code]) if name]
    values = {name: f"{name}-1" for name in names}
    text = reason_text(code, **values)
    found = read_reason(text)
    assert isinstance(found, Sentence)
    assert found.code == f"reason.{code}"
    assert {name: str(value) for name, value in found.values.items()} == values
    assert str(found) == text


@pytest.mark.parametrize("text", ["", "month end", "pausedx", "by ann", "ValueError: no such order", "x" * 5_000])
def test_what_people_and_errors_say_stays_as_it_is(text):
    assert read_reason(text) == text
    assert isinstance(read_reason(text), str)


def test_a_pause_names_who_why_and_the_tenant_even_if_the_reason_has_colons():
    found = read_reason(Pause(at=0, by="ann", reason="see: INC-7; by bob", tenant="acme").words)
    assert found.values == {"tenant": "acme", "by": "ann", "why": "see: INC-7; by bob"}


def test_a_reason_inside_a_reason_is_read_too():
    inner = reason_text("worker_lost", lost=reason_text("lease_expired", worker="n-1"), deaths=1, most=3)
    found = read_reason(reason_text("clock_moved", reason=inner))
    assert found.values["reason"].values["lost"].values == {"worker": "n-1"}
