"""Packs a call's arguments as bounded JSON, once; the worker that runs the task decodes them."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadPayload, PayloadTooLarge
from rota.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    Encode = Callable[[Any], Any]

LARGEST = 256 * 1024
DEEPEST = 64
REDACTED = "[redacted]"  # shown in place of a hidden value; no argument can have this value itself
_REDACTED_JSON = msgspec.json.encode(REDACTED)


class Passed(IntEnum):
    """Whether a payload is as its caller made it, or as the app's creation middleware did."""

    NO = 0
    YES = 1  # its meta, perhaps: the arguments are the caller's
    REPLACED = 2  # the arguments are the middleware's, and its code makes the task's arguments of them again


class Call(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The content of a payload. New fields go last, so that old payloads stay readable."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    retries: int | None = None  # overrides the task's
    timeout: int | None = None  # microseconds, overrides the task's
    secrets: list[int | str] = []  # hidden arguments, beyond the names that are always hidden; see redaction
    passed: Passed = Passed.NO  # whether creation middleware changed the call


_decoder = msgspec.json.Decoder(Call)


def pack_call(call: Call, *, what: str, encode: Encode | None = None) -> bytes:
    """The call as JSON; `what` names the task in errors, `encode` knows the app's own types."""
    try:
        packed = msgspec.json.encode(shortened(call), enc_hook=encode)
    except Exception as err:  # a value's own code may run here
        raise BadPayload(
            sentence(
                "payload.not_json", "the arguments of {what} cannot be kept as JSON: {error}", what=what, error=err
            )
        ) from err
    if _REDACTED_JSON in packed and (place := _redacted_place(call)):
        raise BadPayload(
            sentence(
                "payload.hidden",
                "argument {place} of {what} is {redacted!r}, which stands for a hidden value; give the value itself",
                place=place,
                what=what,
                redacted=REDACTED,
            )
        )
    if len(packed) > LARGEST:
        raise PayloadTooLarge(
            sentence(
                "payload.large",
                "the arguments of {what} take {size:,} bytes; at most {most:,} are kept. Store the data "
                "elsewhere and pass its key",
                what=what,
                size=len(packed),
                most=LARGEST,
            )
        )
    if b"null" in packed:
        refuse_not_finite([call.args, call.kwargs, call.meta], f"the arguments of {what}", encode)
    if packed.count(b"[") + packed.count(b"{") > DEEPEST and _is_too_deep(packed):
        raise BadPayload(
            sentence(
                "payload.deep",
                "the arguments of {what} are nested deeper than {deepest} levels",
                what=what,
                deepest=DEEPEST,
            )
        )
    return packed


def shortened(call: Call) -> object:
    """The call without the fields at its end that have their defaults: most calls have only arguments."""
    if call.retries is not None or call.timeout is not None or call.secrets or call.passed:
        return call
    if call.meta:
        return (call.args, call.kwargs, call.meta)
    return (call.args, call.kwargs) if call.kwargs else (call.args,)


def _redacted_place(call: Call) -> str:
    """The argument with the placeholder of a hidden value: password, or 2 for the second by position; "" for none."""
    named = [(str(index), value) for index, value in enumerate(call.args, start=1)] + [*call.kwargs.items()]
    places = (_place_of(name, msgspec.to_builtins(value, enc_hook=str)) for name, value in named)
    return next((place for place in places if place), "")


def _place_of(path: str, value: object) -> str:
    if value == REDACTED:
        return path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return next((found for name, item in inner if (found := _place_of(f"{path}.{name}", item))), "")


def unpack_call(payload: bytes) -> Call:
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError) as err:
        raise BadPayload(f"the payload cannot be read: {err}") from err


def refuse_not_finite(value: object, what: str, encode: Encode | None = None) -> None:
    """JSON has no NaN nor infinity; writing null in their place would lose them silently."""
    _refuse(msgspec.to_builtins(value, enc_hook=encode), what)


def _refuse(value: object, what: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadPayload(f"{what} hold {value!r}, which JSON cannot keep; pass None or text")
    elif isinstance(value, dict):
        for item in value.values():
            _refuse(item, what)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            _refuse(item, what)


def _is_too_deep(packed: bytes) -> bool:
    """Level by level, so that no depth is too deep to be reported."""
    level: list[Any] = [msgspec.json.decode(packed)]
    for _ in range(DEEPEST + 2):  # the call and its list of arguments are two levels of their own
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
        ]
    return any(isinstance(value, (dict, list)) for value in level)
