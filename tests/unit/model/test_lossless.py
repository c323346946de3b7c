"""Which values JSON would give back as something else, for what a parameter's hint says."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest

from rota.model.jobs.lossless import changed_type, is_open


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    a: int


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Plain: ...


AT = datetime(2026, 1, 1, tzinfo=UTC)
SAME = [None, True, 1, 1.5, "a", [], {}, (1, 2), [1, {"a": [None, (1,)]}]]
OTHER = [
    AT, AT.date(), timedelta(1), Decimal(1), UUID(int=1), b"x", {1}, frozenset(), Point(1),
    Pair(1), Colour.RED, Level.LOW,
]  # fmt: skip


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_plain_values_come_back_as_they_are_whatever_the_hint(value):
    for hint in (Any, object, list, dict, dict[str, Any], list[Any], Any | None, int):
        assert changed_type(value, hint) == ""


@pytest.mark.parametrize("value", OTHER, ids=repr)
def test_other_values_are_told_where_no_hint_says_what_they_are(value):
    name = type(value).__qualname__
    for hint in (Any, object, Any | None):
        assert changed_type(value, hint) == name
    assert changed_type([{"a": (1, value)}]) == name
    assert changed_type({"a": value}, dict) == name
    assert changed_type({"a": value}, dict[str, Any]) == name
    assert changed_type([value], list[Any] | None) == name
    assert changed_type([value], list) == name
    assert changed_type(("a", value), tuple[str, Any]) == name


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (AT, datetime),
        ([AT], list[datetime]),
        ({"a": AT}, dict[str, datetime]),
        ({1: "a"}, dict[int, str]),
        ({1: "a"}, dict[int, Any]),
        ((AT, {"a": 1}), tuple[datetime, Any]),
        ({AT.date()}, set[date]),
        (Point(1), Point),
        (Point(1), Point | None),
        (AT, datetime | dict),
        ({1, 2}, set),
    ],
    ids=repr,
)
def test_a_hint_that_says_what_a_value_is_lets_it_through(value, hint):
    assert changed_type(value, hint) == ""
    again = msgspec.convert(msgspec.json.decode(msgspec.json.encode(value)), hint, strict=False)
    assert again == value


def test_keys_that_are_no_text_are_told():
    assert changed_type({1: "a"}) == "dict with a key of type int"
    assert changed_type({1: "a"}, dict) == "dict with a key of type int"
    assert changed_type({"a": {None: 1}}, dict[str, Any]) == "dict with a key of type NoneType"


def test_a_hint_that_nothing_can_be_made_from_says_nothing():
    assert is_open("NoSuchName")
    assert is_open(Plain | int)
    assert not is_open(Plain)  # asked for by name: a codec makes it, or it cannot be kept at all
    assert changed_type(AT, Plain | int) == "datetime"
