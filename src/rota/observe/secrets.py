"""Masks secrets that a log line may contain by accident, above all an address with a password."""

from __future__ import annotations

import re

from rota.model.secrets.masking import masked

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_KEYWORD = re.compile(  # as libpq writes them, and as people do
    r"\b(\w*(?:passw|passphrase|pwd|secret|token|credential)\w*\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?|[^\s,;)]+)",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The text with *** for each secret that its form shows. Most texts have none, and cost two searches."""
    if "://" in text:
        text = _URL.sub(lambda found: masked(found[0]), text)
    return _KEYWORD.sub(r"\1***", text) if "=" in text else text


def may_have_secrets(text: str) -> bool:
    """False if without_secrets would change nothing: then it need not be called for each line of many."""
    return "=" in text or "://" in text
