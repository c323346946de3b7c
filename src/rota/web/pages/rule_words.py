"""Writes the rule of a schedule in the viewer's language, and the place where the schedule is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import RotaError
from rota.triggers import trigger_from_text
from rota.triggers.every import Every
from rota.web.pages.texts import DEFAULT

if TYPE_CHECKING:
    from markupsafe import Markup

    from rota.inspector.known_schedule import KnownSchedule
    from rota.model.schedules.schedule import Origin
    from rota.web.pages.words import Words


def sentence_of(words: Words, known: KnownSchedule) -> str:
    """What it does. An interval counts from its schedule's creation, which need not be said each time."""
    if known.problem:
        return known.sentence
    rule = trigger_from_text(known.record.spec.trigger)
    return (rule if isinstance(rule, Every) else known.view.trigger).explain(words.texts.phrases)


def rule_sentence(words: Words, rule: str, english: str) -> str:
    """The sentence of a rule that is given as text; in English it is the very sentence of the API."""
    if words.language == DEFAULT:
        return english
    try:
        return trigger_from_text(rule).explain(words.texts.phrases)
    except RotaError:  # written by another version, or by hand
        return english


def origin_words(words: Words, origin: Origin) -> Markup:
    kind = origin.kind if origin.kind in {"import", "code", "file"} else "api"
    return words.text(f"origin.{kind}_of" if origin.app else f"origin.{kind}", app=origin.app)
