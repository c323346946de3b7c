"""Translates sentences of the model into the viewer's language, by their codes and values.

A language that has no text for a code shows the English sentence.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rota.model.alerts.findings import read_finding
from rota.model.reasons import read_reason
from rota.sentences import Sentence, sentence_of
from rota.web.pages.texts import DEFAULT

if TYPE_CHECKING:
    from rota.sentences import Said
    from rota.web.pages.words import Words


_INSTANTS = ("at", "end", "until", "first", "last")  # how values that may be one are called; others are what was typed


def say(words: Words, text: Said) -> Markup:
    """A sentence in the viewer's language; in English it is the very sentence of the command line and the API."""
    if not isinstance(text, Sentence):
        return escape(text)
    key = key_of(text.code)
    if words.language == DEFAULT or not words.texts.has(key):
        return escape(str(text))
    return words.text(key, **{name: _shown(words, name, value) for name, value in text.values.items()})


def say_error(words: Words, err: Exception) -> Markup:
    return say(words, sentence_of(err))


def say_reason(words: Words, text: str) -> Markup:
    """A reason that the ledger, a history or the audit keeps."""
    return say(words, read_reason(text))


def key_of(code: str) -> str:
    return f"said.{code}"


def state_word(words: Words, state: str) -> str:
    """The name of a state of a job or a schedule."""
    key = f"state.{state}"
    return words.text(key) if words.texts.has(key) else state


def _shown(words: Words, name: str, value: Any) -> Any:
    if isinstance(value, Sentence):
        return say(words, value)
    if name == "state":
        return state_word(words, str(value))
    if name.rpartition("_")[2] in _INSTANTS and isinstance(value, str) and (at := instant_in(value)) is not None:
        return words.time(at, "minutes")
    return "" if value is None else value


def say_finding(words: Words, text: str) -> Markup:
    """What an alert is about, or why it has ended."""
    return say(words, read_finding(text))


def instant_in(text: str) -> datetime | None:
    """A value of the form 2026-09-21T14:23:20Z is an instant."""
    if len(text) < len("2026-09-21T14:23:20Z") or not text.endswith("Z") or text[10:11] != "T":
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
