"""Writes answers of `why` in the viewer's language: by their codes and values, and their advice, sentence by sentence.

What a language has no text for is shown in English.
"""

from __future__ import annotations

import re
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rota.model.schedules.schedule import Pause
from rota.web.pages.said_words import instant_in, say_reason, state_word
from rota.web.pages.texts import DEFAULT, texts_of
from rota.web.pages.words import with_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rota.inspector.facts.cron import CaveatFacts
    from rota.triggers import Caveat
    from rota.web.pages.words import Words

PAUSES = frozenset({"open.paused", "missed_before_pause"})
REASONED = frozenset({
    "cancelled", "running.asked_to_stop", "ran.cancelled", "skipped.paused", "skipped.other", "job_forgotten"
})  # fmt: skip
SPANS = frozenset({"ran", "late", "in", "ready", "silent", "due", "jitter"})


def said_of(words: Words, code: str, values: Mapping[str, Any], sentence: str) -> Markup:
    """The answer; in English it is the very sentence that the command line and the API give."""
    key = key_of(code)
    if words.language == DEFAULT or not words.texts.has(key):
        return escape(sentence)
    shown = {name: _shown(words, name, value) for name, value in values.items()}
    return words.text(key, **shown, **_sentences(words, code, values))


def _sentences(words: Words, code: str, values: Mapping[str, Any]) -> dict[str, Markup]:
    """The values that are sentences themselves: what the store keeps as a reason, and a pause."""
    if code in PAUSES:
        reason, by, tenant = (str(values.get(name) or "") for name in ("reason", "by", "tenant"))
        return {"pause": say_reason(words, Pause(at=0, reason=reason, by=by, tenant=tenant).words)}
    if code in REASONED:
        kept = str(values.get("reason") or "")
        return {"why": say_reason(words, kept) if kept else words.text("job.no_reason")}
    if code == "waiting.queue_paused":
        kept = str(values.get("reason") or "").rstrip(".")
        return {"why": escape(f": {kept}" if kept else "")}
    return {}


def fixed(words: Words, fix: str) -> Markup:
    """What an answer advises, with its commands as code; in English if a language lacks one of its sentences."""
    if words.language == DEFAULT:
        return with_code(fix)
    said, rest = [], fix
    while rest:
        found = next((match for match in _advice(rest)), None)
        if found is None:
            return with_code(fix)
        key, values, rest = found
        said.append(str(words.texts.template(key)).format(**values))
    return with_code(" ".join(said))


def _advice(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Which sentence of the catalogue the text begins with, its values, and what follows it."""
    for key, pattern in _patterns():
        if (match := pattern.match(text)) is not None:
            yield key, match.groupdict(), text[match.end() :]


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The English sentences, the longest first; a value has no space at its ends and no quote."""
    english = texts_of(DEFAULT)
    found = {key: str(english.template(key)) for key in english.keys() if key.startswith("fix.")}  # noqa: SIM118 - no dict
    ordered = sorted(found.items(), key=lambda one: -len(one[1]))
    return [(key, re.compile(_pattern(text) + r"(?: |$)")) for key, text in ordered]


def _pattern(template: str) -> str:
    parts = [
        re.escape(part) + (f"(?P<{name}>[^`]+?)" if name else "") for part, name, *_ in Formatter().parse(template)
    ]
    return "".join(parts)


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
    if isinstance(value, str) and (at := instant_in(value)) is not None:
        return words.time(at, "minutes")
    if name == "state":
        return state_word(words, str(value))
    return "" if value is None else value
