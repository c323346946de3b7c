"""Payloads: what can be kept as JSON comes back the same; what cannot is refused before anything is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadPayload, PayloadTooLarge
from rota.model.jobs.payload import LARGEST, Call, pack_call, unpack_call

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)
calls = st.builds(
    Call,
    args=st.lists(plain, max_size=5),
    kwargs=st.dictionaries(st.text(min_size=1, max_size=8), plain, max_size=5),
    meta=st.dictionaries(st.text(max_size=8), plain, max_size=3),
    retries=st.none() | st.integers(0, 1_000),
    timeout=st.none() | st.integers(1, 2**53),
)


@dataclass
class Point:
    """Two numbers, as a caller would pass them."""

    x: float
    y: float


def nested(depth):
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


@given(calls)
def test_what_goes_in_comes_out(call):
    again = unpack_call(pack_call(call, what="mail.send"))
    assert again == call
    assert repr(again) == repr(call)  # 1 is not 1.0, and -0.0 is not 0.0


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda number: Call([number]), id="argument"),
        pytest.param(lambda number: Call([], {"x": number}), id="keyword"),
        pytest.param(lambda number: Call([[1, {"a": (number,)}]]), id="deep inside"),
        pytest.param(lambda number: Call([None, "null", number]), id="beside null"),
        pytest.param(lambda number: Call([{1.5, number}]), id="set"),
        pytest.param(lambda number: Call([], {}, {"load": number}), id="meta"),
        pytest.param(lambda number: Call([Point(1.0, number)]), id="dataclass"),
    ],
)
def test_a_number_that_json_does_not_have_is_refused_and_never_becomes_null(number, wrap):
    with pytest.raises(BadPayload, match=r"mail\.send"):
        pack_call(wrap(number), what="mail.send")


@pytest.mark.parametrize("value", [None, "null", [None], {"null": None}])
def test_null_itself_is_fine(value):
    assert unpack_call(pack_call(Call([value]), what="mail.send")).args == [value]


@pytest.mark.parametrize("value", [object(), open, lambda: 1, 1 + 2j, {None: 1}, "\ud800", {"a": [object()]}])
def test_what_json_cannot_hold_is_refused_by_name(value):
    with pytest.raises(BadPayload, match=r"the arguments of mail\.send cannot be kept as JSON"):
        pack_call(Call([value]), what="mail.send")


def test_a_value_that_holds_itself_is_refused():
    value: list = []
    value.append(value)
    with pytest.raises(BadPayload):
        pack_call(Call([value]), what="mail.send")


def test_a_payload_may_take_256_kib_and_no_byte_more():
    room = LARGEST - len(pack_call(Call([""]), what="mail.send"))
    assert len(pack_call(Call(["x" * room]), what="mail.send")) == LARGEST == 256 * 1024
    with pytest.raises(PayloadTooLarge, match=r"take 262,145 bytes; at most 262,144 are kept\. Store the data"):
        pack_call(Call(["x" * (room + 1)]), what="mail.send")


def test_size_is_counted_in_bytes():
    with pytest.raises(PayloadTooLarge):
        pack_call(Call(["ü" * (LARGEST // 2)]), what="mail.send")


@pytest.mark.parametrize("depth", [1, 10, 60])
def test_nested_values_are_kept(depth):
    assert unpack_call(pack_call(Call([nested(depth)]), what="mail.send")).args == [nested(depth)]


@pytest.mark.parametrize("depth", [65, 100, 900, 5_000, 100_000])
def test_values_nested_deeper_than_64_levels_are_refused(depth):
    with pytest.raises(BadPayload):
        pack_call(Call([nested(depth)]), what="mail.send")


@pytest.mark.parametrize(
    "payload",
    [b"", b"{}", b"null", b"[", b"[[1], 2]", b"[1]", b"\xff\xfe", b"[[], {}, {}, -", b"[" * 5_000, b'["a"]', b"[[]]x"],
)
def test_what_cannot_be_read_is_told_in_plain_words(payload):
    with pytest.raises(BadPayload, match="the payload cannot be read"):
        unpack_call(payload)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(payload):
    try:
        call = unpack_call(payload)
    except BadPayload:
        return
    assert isinstance(call, Call)


@pytest.mark.parametrize(
    ("payload", "call"),
    [
        (b"[]", Call()),
        (b"[[1]]", Call([1])),
        (b'[[],{"a":1}]', Call([], {"a": 1})),
        (b'[[],{},{"m":1},5,1000]', Call([], {}, {"m": 1}, 5, 1_000)),
        (b'[[1],{},{},null,null,[0,"a"]]', Call([1], secrets=[0, "a"])),
        (b"[[1],{},{},null,null,[],2]", Call([1], passed=2)),
        (b'[[1],{},{},null,null,[],0,"later"]', Call([1])),
    ],
)
def test_payloads_of_older_and_newer_writers_stay_readable(payload, call):
    assert unpack_call(payload) == call


def test_a_payload_is_plain_json():
    assert msgspec.json.decode(pack_call(Call([1, "a"], {"k": None}), what="mail.send"))[:2] == [[1, "a"], {"k": None}]
