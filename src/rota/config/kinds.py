"""Reads the text of a value by the kind of its setting, and describes the wanted form if that fails.

Files and the environment provide text, never YAML's interpretation of it: `no` stays a name, `010` is not eight.
"""

from __future__ import annotations

import re
from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from rota.errors import BadOption
from rota.model.alerts.channel import (
    ADDRESS_WANTED,
    SECRET_WANTED,
    URL_WANTED,
    check_addresses,
    check_secret,
    check_url,
)
from rota.model.alerts.rule import check_pattern
from rota.model.alerts.url import shown_url
from rota.model.collection import PART_CHARACTERS, check_part
from rota.model.field_path import check_path
from rota.model.micros import SECOND, fine_span_of, span_of
from rota.model.names import NAMESPACE_WANTED, PRIORITIES, check_name, check_namespace, check_priority
from rota.model.secrets.masking import masked
from rota.model.secrets.redaction import MOST_WORDS, words_of
from rota.model.sizes import bytes_of
from rota.triggers.bounds import OLDEST_START, bound_from_text, check_years
from rota.triggers.duration import text_of
from rota.triggers.zone import zone_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

_URL = re.compile(r"[a-z][a-z0-9+]*:\S+", re.ASCII)
_SECRET = re.compile(r"[!-~]{16,256}", re.ASCII)
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?", re.ASCII)
_TARGET = re.compile(r"[^\s:]+(:[^\s:]+)?")
_OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class Kind(Protocol):
    """How one kind of value is read and written. A text that cannot be read raises one of Rota's errors."""

    @property
    def wanted(self) -> str:
        """The form of a value of this kind, to follow the word "wanted"."""

    def read(self, text: Any) -> Any:
        """The value of a text."""

    def text(self, value: Any) -> str:
        """The value as people write it."""

    def shown(self, text: str) -> str:
        """A text that could not be read, as an error may show it."""


class _Plain(Struct, frozen=True):
    """A value that is written as it is read."""

    def text(self, value: Any) -> str:
        return str(value)

    def shown(self, text: str) -> str:
        return repr(text if len(text) <= 60 else f"{text[:57]}...")


class _Words(_Plain, frozen=True):
    """A list, or text with commas."""

    def words(self, text: Any) -> list[str]:
        words: Sequence[str] = text.split(",") if isinstance(text, str) else text
        return [word.strip() for word in words]

    def text(self, value: Any) -> str:
        return ", ".join(value)


class _Unshown(_Plain, frozen=True):
    """A value that neither a list of settings nor an error shows."""

    def text(self, value: Any) -> str:
        return "********" if value else ""

    def shown(self, text: str) -> str:
        return f"{len(text)} characters"


class Target(_Plain, frozen=True):
    wanted: str = "a target such as jobs.py, package.module or module:app"

    def read(self, text: Any) -> str:
        if not _TARGET.fullmatch(text):
            raise BadOption(f"{text!r} is no target")
        return str(text)


class Url(_Plain, frozen=True):
    wanted: str = "a store's URL such as sqlite:///jobs.db or postgresql://host/database"

    def read(self, text: Any) -> str:
        if not _URL.fullmatch(text):
            raise BadOption(f"{self.shown(text)} is no URL")
        return str(text)

    def shown(self, text: str) -> str:
        return super().shown(masked(text))  # a password is not shown because of a mistake elsewhere in the URL


class DocumentsUrl(Url, frozen=True):
    """The location of documents: a server or file by its URL, or a source that code makes."""

    wanted: str = "a URL such as mongodb://localhost/shop, or module:name of a source that your code makes"

    def read(self, text: Any) -> str:
        return str(text) if _OBJECT.fullmatch(text) else super().read(text)


class Callee(_Plain, frozen=True):
    """A function of a module, or a task."""

    wanted: str = "a function as module:name, or the name of a task of the app"

    def read(self, text: Any) -> str:
        return str(text) if _OBJECT.fullmatch(text) else check_name("task", text)


class FieldPath(_Plain, frozen=True):
    """The path of a value in a document."""

    wanted: str = "the path of a field, such as sleepUntil or job.sleepUntil, and not through a list"

    def read(self, text: Any) -> str:
        return check_path(text)


class Namespace(_Plain, frozen=True):
    wanted: str = NAMESPACE_WANTED

    def read(self, text: Any) -> str:
        return check_namespace(text)


class Zone(_Plain, frozen=True):
    wanted: str = "a timezone's IANA name such as Europe/Paris"

    def read(self, text: Any) -> str:
        return zone_name(text) or "UTC"


class Duration(_Plain, frozen=True):
    """A span of time, kept in microseconds."""

    most: str | None = None

    @property
    def wanted(self) -> str:
        return "a duration such as 90s, 5m or 1h30m" + (f", at most {self.most}" if self.most else "")

    def read(self, text: Any) -> int:
        span = span_of(text)
        if self.most and span > span_of(self.most):
            raise BadOption(f"duration {text!r} is longer than {self.most}")
        return span

    def text(self, value: Any) -> str:
        return text_of(value // SECOND) or "0s"


class Whole(_Plain, frozen=True):
    """A whole number, in plain digits."""

    least: int
    most: int

    @property
    def wanted(self) -> str:
        return f"a whole number from {self.least:,} to {self.most:,}"

    def read(self, text: Any) -> int:
        is_plain = text.isascii() and text.isdigit() and len(text) <= 12 and (text == "0" or text[0] != "0")
        if not is_plain or not self.least <= int(text) <= self.most:
            raise BadOption(f"{text!r} is not {self.wanted}")
        return int(text)


class Size(_Plain, frozen=True):
    """An amount of memory, in bytes."""

    least: str = "1M"
    wanted: str = "a size such as 512M or 2G, of at least 1M"

    def read(self, text: Any) -> int:
        size = bytes_of(text)
        if size < bytes_of(self.least):
            raise BadOption(f"{text!r} is less than {self.least}")
        return size

    def text(self, value: Any) -> str:
        for power, unit in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
            if value and value % 1024**power == 0:
                return f"{value // 1024**power}{unit}"
        return str(value)


class Queues(_Words, frozen=True):
    """Names of queues: a list, or text with commas."""

    wanted: str = "a list of queue names such as [default, mail], of the characters A-Z a-z 0-9 . _ : -"

    def read(self, text: Any) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(check_name("queue", word) for word in self.words(text)))
        if not names:
            raise BadOption("a worker needs at least one queue")
        return names


class Hidden(_Words, frozen=True):
    """Names whose values are hidden: a list, or text with commas."""

    wanted: str = "a list of names such as [iban, pin], each of 1 to 4 words and at most 64 characters"

    def read(self, text: Any) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(word for word in self.words(text) if word))
        for name in names:
            if len(name) > 64 or not 1 <= len(words_of(name)) <= MOST_WORDS:
                raise BadOption(f"redact: {name!r} is not a name of 1 to {MOST_WORDS} words and at most 64 characters")
        return names


class Networks(_Words, frozen=True):
    """Addresses of machines: a list, or text with commas."""

    wanted: str = "a list of addresses or networks such as [127.0.0.1, 10.0.0.0/8, fd00::/8]"

    def read(self, text: Any) -> tuple[str, ...]:
        try:
            return tuple(str(ip_network(word, strict=False)) for word in self.words(text) if word)
        except ValueError as err:
            raise BadOption(f"{err}") from err


class Hosts(_Words, frozen=True):
    """Names of machines: a list, or text with commas."""

    wanted: str = "a list of host names without ports, such as [jobs.example.org]"

    def read(self, text: Any) -> tuple[str, ...]:
        names = [word.lower() for word in self.words(text) if word]
        for name in names:
            if not _HOST.fullmatch(name):
                raise BadOption(f"{name!r} is no host name")
        return tuple(names)


class Secret(_Unshown, frozen=True):
    """A value that is never shown again."""

    wanted: str = "a secret of 16 to 256 characters without spaces"

    def read(self, text: Any) -> str:
        if not _SECRET.fullmatch(text):
            raise BadOption(f"it is not {self.wanted}")
        return str(text)


class Choice(_Plain, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def read(self, text: Any) -> str:
        if text not in self.words:
            raise BadOption(f"{text!r} is not one of {', '.join(self.words)}")
        return str(text)


class Text(_Plain, frozen=True):
    """Any text."""

    wanted: str = "text"

    def read(self, text: Any) -> str:
        return str(text)


class Name(_Plain, frozen=True):
    """The name of a task, queue or tenant."""

    of: str

    @property
    def wanted(self) -> str:
        return f"a {self.of}'s name, of the characters A-Z a-z 0-9 . _ : -"

    def read(self, text: Any) -> str:
        return check_name(self.of, text)


class PartName(_Plain, frozen=True):
    """The name of a collection."""

    wanted: str = f"a collection's name: {PART_CHARACTERS}"

    def read(self, text: Any) -> str:
        return check_part("collection", text)


class Priority(_Plain, frozen=True):
    wanted: str = "a whole number from -100 to 100, or low, normal or high"

    def read(self, text: Any) -> int:
        if text in PRIORITIES:
            return check_priority(text)
        if not re.fullmatch(r"-?(0|[1-9][0-9]{0,2})", text, re.ASCII):
            raise BadOption(f"{text!r} is not {self.wanted}")
        return check_priority(int(text))


class Flag(_Plain, frozen=True):
    wanted: str = "true or false"

    def read(self, text: Any) -> bool:
        if text.lower() not in {"true", "false"}:
            raise BadOption(f"{text!r} is not {self.wanted}")
        return bool(text.lower() == "true")


class Span(Duration, frozen=True):
    """A span of time, as the API accepts it."""

    def read(self, text: Any) -> Any:
        return timedelta(microseconds=super().read(text))


class FineSpan(_Plain, frozen=True):
    """A span of time that may be shorter than a second, as the API accepts it."""

    wanted: str = "a duration such as 90s, 1h30m or 250ms"

    def read(self, text: Any) -> Any:
        return timedelta(microseconds=fine_span_of(text, least=1))


class Bound(_Plain, frozen=True):
    """A local day, or an instant."""

    wanted: str = "a date such as 2026-01-31, or an instant such as 2026-01-31T09:00Z or 2026-01-31T09:00+02:00"

    def read(self, text: Any) -> date:
        bound = bound_from_text(text)
        check_years("the time", bound, OLDEST_START)
        return bound


class Pattern(_Plain, frozen=True):
    """The names that an alert rule is about."""

    of: str

    @property
    def wanted(self) -> str:
        return f"a {self.of}'s name, or a prefix that ends in *, such as mail-*"

    def read(self, text: Any) -> str:
        return check_pattern(self.of, text)


class ChannelNames(_Words, frozen=True):
    """Names of channels: a list, or text with commas."""

    wanted: str = "a list of channels such as [ops, mail]"

    def read(self, text: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(check_name("channel", word) for word in self.words(text)))


class MailAddresses(_Words, frozen=True):
    """E-mail addresses: a list, or text with commas."""

    wanted: str = ADDRESS_WANTED

    def read(self, text: Any) -> tuple[str, ...]:
        return check_addresses(self.words(text))


class WebUrl(_Unshown, frozen=True):
    """A URL that Rota calls; its path may be a secret."""

    wanted: str = URL_WANTED

    def read(self, text: Any) -> str:
        return check_url(text)

    def text(self, value: Any) -> str:
        return shown_url(value) if value else ""


class WebhookSecret(_Unshown, frozen=True):
    """The secret that signs the requests of a webhook."""

    wanted: str = SECRET_WANTED

    def read(self, text: Any) -> str:
        return check_secret(text)


class Password(_Unshown, frozen=True):
    """A password of another system, which has its own rules about it."""

    wanted: str = "a password of 1 to 1,000 characters"

    def read(self, text: Any) -> str:
        if not 1 <= len(text) <= 1_000:
            raise BadOption(f"it is not {self.wanted}")
        return str(text)


class MailAddress(_Plain, frozen=True):
    """One e-mail address."""

    wanted: str = "an e-mail address such as rota@example.org"

    def read(self, text: Any) -> str:
        return check_addresses([text])[0]
