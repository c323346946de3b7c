"""Reads paths, queries and bodies of requests as the types that their routes name; refuses values that do not fit."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from rota.web.refusals import Refusal, misfit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from rota.web.route import Route

LARGEST_BODY = 1024 * 1024
DEEPEST = 66  # as deep as arguments may be, within a body's own two levels
EXPECT = "expect_version"

_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_VERSION = re.compile(r'(?:W/)?"?([0-9]{1,18})"?', re.ASCII)
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def read_params(route: Route, given: Mapping[str, str]) -> Any:
    """The path's parameters; what no thing can be called leads nowhere."""
    if route.params is None:
        return None
    try:
        return msgspec.convert(dict(given), route.params)
    except msgspec.ValidationError as err:
        raise misfit(err, 404, "not_found", route.params, dict(given)) from err


def read_query(route: Route, pairs: Sequence[tuple[str, str]]) -> Any:
    """The query's parameters; an unknown one or one given twice is refused, so that a typing mistake is not silent."""
    kinds = _kinds(route.query) if route.query is not None else {}
    values: dict[str, Any] = {}
    for name, text in pairs:
        if route.is_versioned and name == EXPECT:
            continue
        if name not in kinds:
            raise Refusal(400, "unknown_parameter", _unknown(name, list(kinds)), field=name[:100])
        if tuple in kinds[name]:
            values.setdefault(name, []).append(text)
        elif name in values:
            raise Refusal(400, "bad_parameter", f"{name} is given twice; which one is meant?", field=name)
        else:
            values[name] = _value(name, text, kinds[name])
    if route.query is None:
        return None
    try:
        return msgspec.convert(values, route.query)
    except msgspec.ValidationError as err:
        raise misfit(err, 400, "bad_parameter", route.query, values) from err


def read_version(route: Route, pairs: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> int | None:
    """The version that what is changed must still have, by If-Match or expect_version; 0 for If-None-Match: *."""
    if not route.is_versioned:
        return None
    if_match, if_none = headers.get("if-match"), headers.get("if-none-match")
    said = [text for name, text in pairs if name == EXPECT]
    if len(said) > 1 or (said and not (_WHOLE.fullmatch(said[0]) and int(said[0]) >= 0)):
        raise Refusal(400, "bad_parameter", f"{EXPECT} is one whole number: the version that was read", field=EXPECT)
    if if_none is not None:
        if if_none.strip() != "*" or if_match is not None or said:
            message = "If-None-Match is *, which says that there is none yet; it cannot hold together with a version"
            raise Refusal(412, "version_conflict", message, field="If-None-Match")
        return 0
    if if_match is None or if_match.strip() == "*":
        return int(said[0]) if said else None
    found = _VERSION.fullmatch(if_match.strip())
    if found is None:
        raise Refusal(400, "bad_header", 'If-Match is the ETag that was read, such as "3"', field="If-Match")
    return int(found[1])


async def read_body(route: Route, content_type: str, length: str | None, chunks: AsyncIterator[bytes]) -> Any:
    """The body as its type; a large one is not read to its end."""
    if route.body is None:
        return None
    if length is not None and length.isdigit() and int(length[:18]) > LARGEST_BODY:
        raise _too_large()
    text = b""
    async for chunk in chunks:
        text += chunk
        if len(text) > LARGEST_BODY:
            raise _too_large()
    if not text and not route.needs_body:
        return route.body()
    check_content_type(content_type)
    return decode_body(text, route.body)


def check_content_type(content_type: str) -> None:
    kind, _, rest = content_type.partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise Refusal(
            415, "bad_content_type", "the body must be JSON: send Content-Type: application/json", field="Content-Type"
        )


def decode_body(text: bytes, kind: type[Struct]) -> Any:
    if is_too_deep(text):
        raise Refusal(422, "too_deep", f"the body is nested deeper than {DEEPEST} levels")
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as err:
        raise misfit(err, 422, "bad_body", kind, _sent(text)) from err
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise Refusal(400, "bad_json", f"the body is not JSON: {err}") from err


def _sent(text: bytes) -> Any:
    """A body that does not fit, for the error about it; None if the rest of it is not JSON either."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_too_deep(text: bytes) -> bool:
    """Whether brackets are nested deeper than is allowed, before anything is built from them."""
    if text.count(b"[") + text.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for mark in _MARKS.finditer(text):
        first = mark[0][:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > DEEPEST:
            return True
    return False


def _value(name: str, text: str, kinds: frozenset[Any]) -> Any:
    """The text as what its type is made from; text that is none stays text, and is refused with the type's name."""
    if int in kinds and _WHOLE.fullmatch(text):
        return int(text)
    if bool in kinds:
        return _TRUTHS.get(text, text)
    if datetime in kinds and " " in text:  # a + that was not encoded
        raise Refusal(400, "bad_parameter", f"{name} holds a space; write + as %2B, or the time in UTC", field=name)
    return text


@lru_cache(maxsize=256)
def _kinds(query: type[Struct]) -> dict[str, frozenset[Any]]:
    """The plain types that each parameter may be made from."""
    hints = get_type_hints(query, include_extras=True)
    return {name: frozenset(_plain(hint)) for name, hint in hints.items()}


def _plain(hint: Any) -> list[Any]:
    origin = get_origin(hint)
    if origin is Annotated:
        return _plain(get_args(hint)[0])
    if origin is Union or str(origin) == "<class 'types.UnionType'>":
        return [kind for part in get_args(hint) for kind in _plain(part)]
    return [origin or hint]


def _unknown(name: str, known: Sequence[str]) -> str:
    return f"there is no parameter {name[:100]!r} here; known are {', '.join(known) or 'none'}"


def _too_large() -> Refusal:
    return Refusal(413, "body_too_large", f"the body is larger than {LARGEST_BODY:,} bytes")
