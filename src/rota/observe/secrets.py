"""Secrets: what a log line may hold by accident, an address with a password above all, is masked in any text."""

from __future__ import annotations

import re

from rota.model.masking import masked

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_KEYWORD = re.compile(  # as libpq writes them, and as people do
    r"\b(\w*(?:passw|passphrase|pwd|secret|token|credential)\w*\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?|[^\s,;)]+)",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The text with *** for each secret that its form gives away. Most texts have none, and cost two searches."""
    if "://" in text:
        text = _URL.sub(lambda found: masked(found[0]), text)
    return _KEYWORD.sub(r"\1***", text) if "=" in text else text
