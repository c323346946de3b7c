"""Names, keys, priorities and ids: what they may look like."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadName, BadOption, BadStoreUrl
from rota.model.jobs.job import new_id
from rota.model.names import check_key, check_name, check_namespace, check_priority, check_schedule_id
from unit.model.values import NOON

PLAIN = "abcXYZ019._:-"


@pytest.mark.parametrize("name", ["a", "mail.send", "a:b-c_d.E9", "x" * 127, "0", "-", "."])
def test_good_names_are_given_back(name):
    assert check_name("task", name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 128, "a b", "a\n", "\na", "ü", "a/b", "a'b", "a;b", "{a}", "a*", "٣", None, 5, b"a", ["a"]]
)
def test_bad_names_are_refused_with_what_is_allowed(name):
    with pytest.raises(BadName, match=r"task name .*use 1 to 127 of the characters"):
        check_name("task", name)


@given(st.text(max_size=130))
def test_a_name_is_good_exactly_when_all_of_its_characters_are(name):
    good = bool(re.fullmatch(r"[A-Za-z0-9._:-]{1,127}", name))
    try:
        check_name("queue", name)
    except BadName:
        assert not good
    else:
        assert good


@pytest.mark.parametrize("name", ["nightly", "a-b_c", "9", "x" * 127])
def test_good_schedule_ids_are_given_back(name):
    assert check_schedule_id(name) == name


@pytest.mark.parametrize("name", ["", "a.b", "a:b", "a b", "x" * 128, "a\n", None, 5])
def test_bad_schedule_ids_are_refused(name):
    with pytest.raises(BadName, match="schedule id"):
        check_schedule_id(name)


@pytest.mark.parametrize("key", ["a", "user 42", "ünïcode", "x" * 255, " "])
def test_good_keys_are_given_back(key):
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x00b", None, 5, b"a", "\ud800"])
def test_bad_keys_are_refused(key):
    with pytest.raises(BadName, match="key"):
        check_key(key)


@pytest.mark.parametrize(
    ("given", "number"), [(0, 0), (-100, -100), (100, 100), ("low", -10), ("normal", 0), ("high", 10)]
)
def test_priorities_are_numbers_or_three_names(given, number):
    assert check_priority(given) == number


@pytest.mark.parametrize("given", [101, -101, 1.0, True, False, None, "urgent", "", "HIGH", "10"])
def test_bad_priorities_are_refused(given):
    with pytest.raises(BadOption, match="whole number from -100 to 100, or low, normal or high"):
        check_priority(given)


def test_ids_are_28_hex_digits_and_rise_with_time():
    random = Random(7)
    ids = [new_id(random, NOON + millisecond * 1000) for millisecond in range(100)]
    assert all(re.fullmatch("[0-9a-f]{28}", one) for one in ids)
    assert ids == sorted(ids)


def test_ids_of_one_millisecond_differ():
    random = Random(7)
    assert len({new_id(random, NOON) for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize("namespace", ["rota", "a", "Ab_9", "a" * 31, "pg", "postgres", "my_sqlite"])
def test_a_plain_namespace_is_given_back(namespace):
    assert check_namespace(namespace) == namespace


@pytest.mark.parametrize(
    "namespace",
    ["", "9a", "_a", "a.b", "a-b", "a$", "a" * 32, "a\n", "ü", "pg_a", "PG_a", "sqlite", "SQLite_a", None, 7, b"a"],
)
def test_any_other_namespace_is_refused_with_what_is_allowed(namespace):
    with pytest.raises(BadStoreUrl, match=r"namespace .*: use a letter, then up to 30 letters, digits or _, not"):
        check_namespace(namespace)
