"""Which failures have one cause."""

from __future__ import annotations

import pytest

from rota.engine.executors.run import describe
from rota.model.jobs.cause import LONGEST_TITLE, cause_of

SAME = [
    ("ValueError: order 17 is unknown", "ValueError: order 1,234.5 is unknown"),
    ("KeyError: 'ann'", "KeyError: 'bo'"),
    ("OSError: can't read 'a' and won't", "OSError: can't read 'b' and won't"),
    ('JSONError: bad "x" at 3', 'JSONError: bad "yy" at 99'),
    ("OSError: 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone", "OSError: 00000000-4f89-11d3-9a0c-0305e82c33ff is gone"),
    ("RuntimeError: <Thing at 0x7f637e0a6090>", "RuntimeError: <Thing at 0x1>"),
    ("parked: 3 workers died; the last: h-1-ab12cd34ef", "parked: 3 workers died; the last: h-2-99ff00aa11"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_errors_that_differ_in_values_have_one_cause(one, other):
    assert cause_of(one) == cause_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ValueError: order is unknown", "KeyError: order is unknown"),
        ("ValueError: order is unknown", "ValueError: order is closed"),
        ("ValueError", "KeyError"),
        ("", "ValueError"),
    ],
)
def test_another_type_or_text_is_another_cause(one, other):
    assert cause_of(one).id != cause_of(other).id


def test_a_title_can_be_read():
    assert cause_of("ValueError: invalid literal for int() with base 10: 'x'").title == (
        "ValueError: invalid literal for int() with base N: '…'"
    )
    assert len(cause_of("ValueError: " + "x " * 5_000).title) == LONGEST_TITLE


def fails(number):
    raise ValueError(f"bad number {number}")


def fails_too(number):
    raise ValueError(f"bad number {number}")


def uses_a_library():
    import json  # noqa: PLC0415

    json.loads("{")


def error_of(function, *args):
    try:
        function(*args)
    except Exception as err:  # noqa: BLE001
        return describe(err)
    raise AssertionError("it did not fail")


def test_the_function_that_raised_is_part_of_the_cause():
    assert cause_of(error_of(fails, 1)) == cause_of(error_of(fails, 22))
    assert cause_of(error_of(fails, 1)).place == "test_cause.py in fails"
    assert cause_of(error_of(fails, 1)).id != cause_of(error_of(fails_too, 1)).id


def test_the_innermost_frame_of_the_users_own_code_is_shown():
    assert cause_of(error_of(uses_a_library)).place == "test_cause.py in uses_a_library"


def test_of_a_chain_the_error_that_was_raised_last_counts():
    def wraps():
        try:
            fails(1)
        except ValueError as err:
            raise RuntimeError("sync failed") from err

    cause = cause_of(error_of(wraps))
    assert (cause.title, cause.place) == ("RuntimeError: sync failed", "test_cause.py in wraps")
