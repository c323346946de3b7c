"""Answers of `why` in the viewer's language: by their codes and values, or in English if a language has no text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rota.web.pages.texts import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.inspector.facts.cron import CaveatFacts
    from rota.triggers import Caveat
    from rota.web.pages.words import Words

SPANS = frozenset({"ran", "late", "in", "ready", "silent", "due", "jitter"})


def said_of(words: Words, code: str, values: Mapping[str, Any], sentence: str) -> Markup:
    """The answer; in English it is the very sentence that the command line and the API give."""
    key = key_of(code)
    if words.language == DEFAULT or not words.texts.has(key):
        return escape(sentence)
    return words.text(key, **{name: _shown(words, name, value) for name, value in values.items()})


def warned(words: Words, caveat: Caveat | CaveatFacts) -> Markup:
    """A warning about a rule; in English it is the very message of the API."""
    key = f"warning.{caveat.code.replace('.', '_')}"
    if words.language == DEFAULT or not words.texts.has(key):
        return escape(caveat.message)
    return words.text(key, **caveat.values)


def key_of(code: str) -> str:
    return f"why.{code.replace('.', '_')}"


def _shown(words: Words, name: str, value: Any) -> Any:
    if isinstance(value, float) and name in SPANS:
        return words.span(value)
    if isinstance(value, str) and (at := _instant(value)) is not None:
        return words.time(at, "minutes")
    return "" if value is None else value


def _instant(text: str) -> datetime | None:
    """A value of the form 2026-09-21T14:23:20Z is an instant."""
    if len(text) < len("2026-09-21T14:23:20Z") or not text.endswith("Z") or text[10:11] != "T":
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
