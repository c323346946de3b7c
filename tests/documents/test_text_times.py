"""Times as texts: read as SQLite reads them, and written in the form that stood there."""

from __future__ import annotations

import sqlite3

import pytest

from rota.documents.sources.tables.text_times import micros_in_text, text_of

FORMS = [
    "2026-01-31 09:00:00", "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.500Z", "2026-01-31 09:00",
    "1999-12-31T24:00:00",
    "2026-02-30 00:00:00", "2026-01-31T09:00:00+02:00", "2026-01-31 09:00:00.123456-05:30", "2026-01-31T09:00:00 z",
    "2026-13-01 00:00:00", "2026-01-32 00:00:00", "2026-01-00 00:00:00", "2026-01-31 25:00:00", "2026-01-31 09:60:00",
    "2026-01-31 09:00:61", "2026-01-31 09:00:00.", "yesterday", "2026-01-31 09", "2026-01-31T09:00:00 Europe/Berlin",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_a_text_names_the_instant_that_sqlite_reads(text):
    (day,) = sqlite3.connect(":memory:").execute("SELECT julianday(?)", (text,)).fetchone()
    micros = micros_in_text(text)
    assert (micros is None) == (day is None)
    if micros is not None:
        assert abs(micros / 86_400e6 + 2_440_587.5 - day) < 1.5e-8  # a millisecond


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        ("2026-01-31 09:00:00", "2027-05-01 06:07:08"),
        ("2026-01-31T09:00:00Z", "2027-05-01T06:07:08Z"),
        ("2026-01-31T09:00:00.000Z", "2027-05-01T06:07:08.000Z"),
        ("2026-01-31 09:00:00.123456+02:00", "2027-05-01 06:07:08.000000+00:00"),
        (None, "2027-05-01T06:07:08Z"),
    ],
)
def test_a_new_time_has_the_form_of_the_old_one(like, expected):
    micros = micros_in_text("2027-05-01 06:07:08")
    assert text_of(micros, like) == expected
    assert micros_in_text(expected) == micros


def test_a_fraction_is_written_when_there_is_one():
    micros = micros_in_text("2027-05-01 06:07:08")
    assert text_of(micros + 250_000, "2026-01-31 09:00:00") == "2027-05-01 06:07:08.250"
    assert text_of(micros + 1, "2026-01-31 09:00:00") == "2027-05-01 06:07:08.000001"
