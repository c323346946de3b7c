"""Masks the credentials in a store's URL, for people and logs."""

from __future__ import annotations

import re
from urllib.parse import unquote

_SECRET = r"(?:pass|pwd|secret|token|key|credential|authmechanismproperties)"  # noqa: S105 - parts of names

# A password may hold / ? # and @ by mistake: then all of it goes, up to the last @. Digits before a / are a port.
_LOGIN = re.compile(r"(//[^:@/?#]*):(?!\d+(?:[/,?#]|$))(?:[^/?#]*@|.*@)")
_BARE = re.compile(r":[^:@\s]*@")  # if the // was forgotten
_PARAMETER = re.compile(rf"(?<=[?&;])([^=&;]*{_SECRET}[^=&;]*)=[^&]*", re.IGNORECASE)
_KEYWORD = re.compile(rf"\b(\w*{_SECRET}\w*\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|\S+)", re.IGNORECASE)  # as libpq writes them
_NESTED = re.compile(r"(?<==)[^&=]*%3A%2F%2F[^&]*", re.IGNORECASE)  # a URL in a parameter of another


def masked(url: str) -> str:
    """The URL, or libpq's `host=… password=…`, with *** for each secret in it."""
    if "//" not in url:
        return _KEYWORD.sub(r"\1***", _BARE.sub(":***@", url))
    whole = _NESTED.sub(lambda found: unquote(found[0]), url)
    return _PARAMETER.sub(r"\1=***", _LOGIN.sub(r"\1:***@", whole))
