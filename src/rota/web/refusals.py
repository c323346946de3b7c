"""Defines refusals, the answers to requests that cannot be served: status, code, sentence and the wrong field."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota import errors
from rota.sentences import Said, sentence, sentence_of
from rota.tasks.middleware import error_of_middleware
from rota.web.wanted import shown, value_at, wanted_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_AT = re.compile(r" - at `(?:key in )?\$(.*)`$")
_NAMED = re.compile(r"field `([^`]+)`")
_EXPECTED = re.compile(r"Expected `([^`]+)`(.*?)(?:, got `([^`]+)`)?$", re.DOTALL)
_LENGTH = re.compile(r" of length ([<>=]+) ([0-9]+)")
_BAD_VALUES = ("Invalid enum value", "datetime", "matching regex")  # what msgspec says without the value
_KINDS = {
    "int": sentence("kind.int", "a whole number"),
    "float": sentence("kind.float", "a number"),
    "str": sentence("kind.str", "text"),
    "bool": sentence("kind.bool", "true or false"),
    "array": sentence("kind.list", "a list"),
    "object": sentence("kind.object", "an object"),
    "datetime": sentence("kind.instant", "an instant such as 2026-01-31T09:00:00Z"),
}


class Fault(Struct, kw_only=True):
    """What went wrong."""

    code: str  # for programs
    message: str  # for people: what happened, and what to do
    field: str | None = None  # the parameter, header or place in the body at fault


class ErrorAnswer(Struct, kw_only=True):
    """The body of every answer that is an error."""

    error: Fault


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: Said,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.fault = Fault(code=code, message=str(message), field=field)
        self.sentence = message  # with its code and values, if it has them
        self.headers = dict(headers or {})

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(ErrorAnswer(error=self.fault))


_STATUSES: tuple[tuple[type[errors.RotaError], int], ...] = (  # the first that fits
    (errors.UnknownTask, 422),
    (errors.NotFound, 404),
    (errors.Refused, 409),
    (errors.PayloadTooLarge, 413),
    (errors.BadPayload, 422),
    (errors.BadTrigger, 422),
    (errors.BadOption, 422),
    (errors.StoreError, 503),
)


def refusal_of(err: errors.RotaError) -> Refusal:
    """An error of Rota's own, as HTTP says it."""
    status = next((status for kind, status in _STATUSES if isinstance(err, kind)), 500)
    field = err.field if isinstance(err, errors.BadInstant) else None
    return Refusal(status, code_of(err), sentence_of(err), field=field)


def unexpected(err: Exception, message: str = "") -> Refusal:
    """An error that no rule foresees. If a middleware of the app raised it, the answer says so."""
    raised = error_of_middleware(err)
    return refusal_of(raised) if raised is not None else Refusal(500, "internal", message)


@contextmanager
def at_fault(field: str, kind: type[errors.RotaError] = errors.RotaError) -> Iterator[None]:
    """Name the field, where what is done with it is an error; what a body names and is not there is a bad value."""
    try:
        yield
    except kind as err:
        refusal = refusal_of(err)
        refusal.status = 422 if refusal.status == 404 else refusal.status
        refusal.fault.field = refusal.fault.field or field
        raise refusal from err


def code_of(err: Exception) -> str:
    """JobNotFound is job_not_found."""
    return _WORDS.sub("_", type(err).__name__).lower()


def plain_words(text: str) -> Said:
    """What msgspec says of a value, in the words of the documentation."""
    if text.startswith("Object missing required field"):
        return sentence("body.missing", "it is missing")
    if text.startswith("Object contains unknown field"):
        return sentence("body.unknown", "there is no such field")
    found = _EXPECTED.match(text)
    if found is None:
        return text
    got = sentence("body.got", ", got {kinds}", kinds=_kinds(found[3])) if found[3] else ""
    rule: Said = found[2].replace("matching regex", "that matches").replace("\\\\Z", "$").replace("\\Z", "$")
    if (length := _LENGTH.fullmatch(found[2])) is not None:
        rule = sentence("body.length", " of length {sign} {n}", sign=length[1], n=length[2])
    return sentence("body.wanted", "wanted {kinds}{rule}{got}", kinds=_kinds(found[1]), rule=rule, got=got)


def _kinds(text: str) -> Said:
    """`int | null` is "a whole number or null"."""
    kinds: list[Said] = [_KINDS.get(kind, kind) for kind in text.split(" | ")]
    return reduce(lambda first, other: sentence("kind.or", "{first} or {other}", first=first, other=other), kinds)


def misfit(err: msgspec.ValidationError, status: int, code: str, kind: Any, given: Any) -> Refusal:
    """What does not fit its type, with the field named; of a bad value, the value and what is wanted instead."""
    text = str(err)
    place, named = _AT.search(text), _NAMED.search(text)
    path = (place[1] if place else "").lstrip(".")
    field = ".".join(part for part in (path, named[1] if named else "") if part)
    said = text[: place.start()] if place else text
    wanted, got = wanted_at(kind, path), shown(value_at(given, path))
    is_value = got and wanted and any(word in said for word in _BAD_VALUES)
    wrong = (
        sentence("body.value", "got {got}, wanted {wanted}", got=got, wanted=wanted) if is_value else plain_words(said)
    )
    message = sentence("body.field", "{field}: {wrong}", field=field, wrong=wrong) if field else wrong
    return Refusal(status, code, message, field=field or None)
