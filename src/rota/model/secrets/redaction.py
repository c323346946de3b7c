"""Decides which arguments and results are secret, and how they are shown: as "[redacted]".

A value is hidden by the name of its key (password, api_key, …, and the names that the settings add), or because its
parameter is marked `Annotated[str, Secret]`. A payload carries what its readers cannot know without the task's code
(`Call.secrets`), so that every reader hides the same values. Its entries are:

    1           the argument at that position (from 0)
    "pin"       the argument of that name; "=.pin" one whose name begins with one of . * =
    ".pin"      the key of that name, at any depth (a marked field)
    "*iban"     every key that ends with that name, at any depth (a name of the settings)
    "->"        the result
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadPayload
from rota.model.jobs.payload import DEEPEST, REDACTED, Call, shortened, unpack_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAMES = (
    "access_key", "access_keys", "access_tokens", "api_key", "api_keys", "api_tokens", "apikey", "auth", "auth_tokens",
    "authorization", "bearer", "client_key", "client_keys", "connection_string", "cookie", "cookies", "credential",
    "credentials", "dsn", "encryption_key", "encryption_keys", "jwt", "oauth", "otp", "passphrase", "passphrases",
    "passwd", "password", "password_confirm", "password_confirmation", "password_hash", "passwords", "private_key",
    "private_keys", "pwd", "refresh_tokens", "secret", "secret_key", "secret_keys", "secrets", "session", "session_id",
    "session_key", "session_keys", "signing_key", "signing_keys", "token", "totp",
)  # fmt: skip
RESULT = "->"
SHORTEST = 4  # characters of a value that is searched for in texts: a shorter one occurs everywhere
SHORTEST_LINE = 8  # … and of one line of a longer value, such as a private key, or of a key inside a value
MOST_WORDS = 4  # of a name

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")


class Secret:
    """Marks a parameter, a field or a return value that Rota hides: `Annotated[str, Secret]`."""


class Redaction(Struct, frozen=True):
    """The values that are hidden from readers: by NAMES, and by the names that the settings add."""

    extra: tuple[str, ...] = ()
    is_on: bool = True  # False: everything is shown, to a reader who may see it

    def is_secret(self, name: str) -> bool:
        """Whether a value of this name is hidden: db_password, X-Api-Key and accessToken are."""
        return _ends_with(name, _known(self.extra))

    def call(self, payload: bytes) -> Call:
        """The call as people may see it; no arguments if it cannot be read."""
        try:
            return self.shown(unpack_call(payload))
        except BadPayload:
            return Call()

    def shown(self, call: Call) -> Call:
        """The call with its secrets hidden."""
        if not self.is_on:
            return call
        rules = self._rules(call)
        return msgspec.structs.replace(
            call,
            args=[
                REDACTED if rules.hides_at(index, item) else rules.value(item) for index, item in enumerate(call.args)
            ],
            kwargs={
                name: REDACTED if rules.hides_argument(name, item) else rules.value(item)
                for name, item in call.kwargs.items()
            },
            meta=rules.value(call.meta),
        )

    def payload(self, payload: str) -> str:
        """A payload with its secrets hidden, as audit records keep it."""
        try:
            shown = self.shown(unpack_call(payload.encode()))
        except BadPayload:
            return ""
        return msgspec.json.encode(shortened(shown)).decode()

    def result(self, result: bytes | None, payload: bytes) -> Any:
        """A job's result as people may see it; None if it cannot be read."""
        try:
            value = msgspec.json.decode(result or b"null")
        except msgspec.MsgspecError:
            return None
        if not self.is_on:
            return value
        try:
            call = unpack_call(payload)
        except BadPayload:
            call = Call()
        rules = self._rules(call)
        if value is not None and RESULT in rules.exact:
            return REDACTED
        texts = texts_in(list(rules.secrets_of(call)))
        return rules.value(_without(value, texts) if texts else value)

    def texts(self, payload: bytes) -> tuple[str, ...]:
        """The secrets of a call as they may occur in errors and log lines, longest first."""
        try:
            return self.texts_of(unpack_call(payload))
        except BadPayload:
            return ()

    def texts_of(self, call: Call) -> tuple[str, ...]:
        """The same, of a call that was read already."""
        return texts_in(list(self._rules(call).secrets_of(call)))

    def _rules(self, call: Call) -> _Rules:
        if not call.secrets:
            return _Rules(_known(self.extra), _NOTHING, _NOTHING)
        named = frozenset(
            entry if isinstance(entry, int) else entry.removeprefix("=")
            for entry in call.secrets
            if isinstance(entry, int) or entry[:1] not in {".", "*"}
        )
        fields = frozenset(entry[1:] for entry in call.secrets if isinstance(entry, str) and entry[:1] == ".")
        endings = tuple(entry[1:] for entry in call.secrets if isinstance(entry, str) and entry[:1] == "*")
        return _Rules(_known((*self.extra, *endings)), named, fields)


class _Rules(Struct, frozen=True):
    """The rules for hiding the values of one call."""

    endings: frozenset[tuple[str, ...]]  # words that a key ends with
    exact: frozenset[int | str]  # arguments by position or name, and the result
    fields: frozenset[int | str]  # keys at any depth

    def hides_at(self, index: int, value: object) -> bool:
        return index in self.exact and value is not None

    def hides_argument(self, name: str, value: object) -> bool:
        return value is not None and (name in self.exact or self.hides(name, value))

    def hides(self, key: str, value: object) -> bool:
        """Whether the value of a key is hidden. None is shown: readers look for a secret that is missing."""
        return value is not None and (key in self.fields or _ends_with(key, self.endings))

    def value(self, value: Any, depth: int = 0) -> Any:
        """A value with the secrets inside it hidden."""
        if isinstance(value, dict):
            if depth > DEEPEST:
                return REDACTED
            return {
                key: REDACTED if self.hides(key, item) else self.value(item, depth + 1) for key, item in value.items()
            }
        if isinstance(value, list):
            return REDACTED if depth > DEEPEST else [self.value(item, depth + 1) for item in value]
        return value

    def secrets_of(self, call: Call) -> Iterator[Any]:
        """The values that are hidden."""
        for index, item in enumerate(call.args):
            yield from [item] if self.hides_at(index, item) else self._inside(item)
        for name, item in call.kwargs.items():
            yield from [item] if self.hides_argument(name, item) else self._inside(item)
        yield from self._inside(call.meta)

    def _inside(self, value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from [item] if self.hides(key, item) else self._inside(item)
        elif isinstance(value, list):
            for item in value:
                yield from self._inside(item)


_NOTHING: frozenset[int | str] = frozenset()

DEFAULT = Redaction()
NOTHING_HIDDEN = Redaction(is_on=False)


def hidden(text: str, texts: Iterable[str]) -> str:
    """The text without these secrets."""
    for secret in texts:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return text


def argument_entry(name: str) -> str:
    """The entry of `Call.secrets` for an argument, whatever its name: `**kwargs` takes any."""
    return f"={name}" if name[:1] in {".", "*", "="} else name


def texts_in(values: object) -> tuple[str, ...]:
    """How values may be written in a text: as they are, and as Python and JSON quote them; longest first."""
    found: set[str] = set()
    for leaf in _leaves(values):
        written = {leaf, *_typed_forms(leaf)}
        found |= {form for text in written for form in _quoted(text) if len(form) >= SHORTEST}
        lines = leaf.splitlines()
        found |= {line.strip() for line in lines if len(line.strip()) >= SHORTEST_LINE} if len(lines) > 1 else set()
    for key in _keys(values):
        found |= {form for form in _quoted(key) if len(form) >= SHORTEST_LINE}
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def _quoted(text: str) -> set[str]:
    quoted = (repr(text), ascii(text), msgspec.json.encode(text).decode(), json.dumps(text))
    return {text, *(form[1:-1] for form in quoted)}


def _typed_forms(leaf: str) -> Iterator[str]:
    """How a value is written that JSON has as this text: a task with a hint gets bytes, a date or a datetime."""
    with suppress(ValueError):  # it is no base64, or the bytes are no text
        raw = base64.b64decode(leaf, validate=True)
        yield repr(raw)[2:-1]
        yield raw.hex()
        yield raw.decode()
    try:
        moment = datetime.fromisoformat(leaf)
    except ValueError:
        return
    numbers = repr(moment.replace(tzinfo=None)).partition("(")[2][:-1]  # 2026, 1, 2, 3, 4
    yield from (str(moment), moment.isoformat(), numbers)
    if "T" not in leaf and " " not in leaf:
        yield repr(moment.date()).partition("(")[2][:-1]


def restored_call(
    args: list[Any], kwargs: dict[str, Any], stored: Call, shown: Call
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that a client sent back, with the stored value for each placeholder that stands where one was hidden.

    The position of an argument names a parameter, as its keyword does.
    """
    known = zip(stored.args, shown.args, strict=True)
    positional = [restored(item, *pair) for item, pair in zip(args, known, strict=False)]
    return positional + args[len(positional) :], restored(kwargs, stored.kwargs, shown.kwargs)


def restored(given: Any, stored: Any, shown: Any) -> Any:
    """A value that a client sent back, with the stored value for each placeholder that stands where one was hidden."""
    if given == REDACTED:
        return stored if shown == REDACTED else given
    if isinstance(given, dict) and isinstance(stored, dict) and isinstance(shown, dict):
        return {key: restored(item, stored.get(key), shown.get(key)) for key, item in given.items()}
    if isinstance(given, list) and isinstance(stored, list) and isinstance(shown, list):
        return _restored_items(given, stored, shown)
    return given


def _restored_items(given: list[Any], stored: list[Any], shown: list[Any]) -> list[Any]:
    """Items have no names, and they move when one is removed or added. So an item gets its secrets back only if it
    equals the item shown at that index, and no other item looked the same. Any other item keeps its placeholder, and
    is refused."""
    came, was = [[_as_text(item) for item in items] for items in (given, shown)]
    if came == was:
        return stored
    number = Counter(was)
    is_back = [text == before and number[text] == 1 for text, before in zip(came, was, strict=False)]
    known = [old if back else item for item, old, back in zip(given, stored, is_back, strict=False)]
    return known + given[len(known) :]


def _as_text(value: object) -> bytes:
    """A value for a comparison as JSON: Python takes 1, 1.0 and True for the same."""
    return msgspec.json.encode(value, order="deterministic")


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, without numbers at its end: X-Api-Key, apiKey2 and API_KEY are (…, api, key)."""
    words = _WORD.findall(_HUMP.sub("_", name).lower())
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    return tuple(words)


@lru_cache(maxsize=64)
def _known(extra: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(words for name in (*NAMES, *extra) if (words := words_of(name)))


@lru_cache(maxsize=4096)
def _ends_with(name: str, known: frozenset[tuple[str, ...]]) -> bool:
    words = words_of(name)
    return any(words[-length:] in known for length in range(1, min(len(words), MOST_WORDS) + 1))


def _keys(value: object) -> Iterator[str]:
    """The keys inside secret values; those that are short occur in other texts, too."""
    if isinstance(value, dict):
        yield from (str(key) for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _keys(item)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def _without(value: Any, texts: tuple[str, ...], depth: int = 0) -> Any:
    """A result without the secrets that its task was given."""
    if isinstance(value, str):
        return hidden(value, texts)
    if isinstance(value, dict) and depth <= DEEPEST:
        return {hidden(key, texts): _without(item, texts, depth + 1) for key, item in value.items()}
    if isinstance(value, list) and depth <= DEEPEST:
        return [_without(item, texts, depth + 1) for item in value]
    return REDACTED if isinstance(value, (int, float)) and str(value) in texts else value
