"""Payloads: a call's arguments as bounded JSON, written once and decoded by whoever runs the task."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import Struct

from rota.errors import BadPayload, PayloadTooLarge

LARGEST = 256 * 1024


class Call(Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a payload holds. New fields go last, so that old payloads stay readable."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    retries: int | None = None  # overrides the task's
    timeout: int | None = None  # microseconds, overrides the task's


_decoder = msgspec.json.Decoder(Call)


def pack_call(call: Call, *, what: str) -> bytes:
    """The call as JSON; `what` names the task in errors."""
    try:
        packed = msgspec.json.encode(call)
    except (TypeError, ValueError, OverflowError, RecursionError) as err:
        raise BadPayload(f"the arguments of {what} cannot be kept as JSON: {err}") from err
    if len(packed) > LARGEST:
        raise PayloadTooLarge(
            f"the arguments of {what} take {len(packed):,} bytes; at most {LARGEST:,} are kept. "
            "Store the data elsewhere and pass its key"
        )
    if b"null" in packed:
        _refuse_not_finite((call.args, call.kwargs), what)
    return packed


def unpack_call(payload: bytes) -> Call:
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError) as err:
        raise BadPayload(f"the payload cannot be read: {err}") from err


def _refuse_not_finite(value: object, what: str) -> None:
    """JSON has no NaN nor infinity; writing null in their place would lose them silently."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadPayload(f"the arguments of {what} hold {value!r}, which JSON cannot keep; pass None or text")
    elif isinstance(value, dict):
        for item in value.values():
            _refuse_not_finite(item, what)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            _refuse_not_finite(item, what)
