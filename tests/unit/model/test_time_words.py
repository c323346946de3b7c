"""Spans in the answers of `why`: two units at most, and no fractions of a minute or more."""

from __future__ import annotations

import pytest

from rota.model.micros import SECOND
from rota.model.why.time_words import span_words

SPANS = {
    0.012: "12 ms",
    3.2: "3.2 s",
    99: "99 s",
    129: "2 m 9 s",
    343.8: "5 m 44 s",
    600: "10 m",
    12_000: "3 h 20 m",
    172_799: "48 h",
    200_000: "2 d 8 h",
    6.29e9: "72,801 d",
}


@pytest.mark.parametrize(("seconds", "words"), SPANS.items())
def test_a_span_is_said_in_two_units_at_most(seconds, words):
    assert span_words(int(seconds * SECOND)) == words
