"""Reads when a schedule of rota.yaml runs: one of cron, every, calendar and once, checked as code checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.config.fields import CALENDAR_PARTS, TRIGGERS
from rota.config.nodes import is_mapping, kind_words, said
from rota.config.words import misfit, unknown_key
from rota.errors import RotaError
from rota.triggers import cron, trigger_from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rota.config.nodes import Walk
    from rota.triggers import Trigger

TRIGGER_KEYS = tuple(TRIGGERS)


def read_trigger(
    walk: Walk, path: str, key_node: Any, nodes: Mapping[str, Any], *, dialect: str | None, tz: str | None
) -> str | None:
    """The trigger's text form; None if a complaint was made instead."""
    given = [key for key in TRIGGER_KEYS if key in nodes]
    if len(given) != 1:
        _complain_of_number(walk, path, key_node, nodes, given)
        return None
    key = given[0]
    if "dialect" in nodes and key != "cron":
        walk.complain(nodes["dialect"], f"{path}.dialect", f"says how cron text is read, and this has `{key}`")
    trigger = _read(walk, f"{path}.{key}", key, nodes[key], dialect)
    if trigger is None:
        return None
    if tz is not None and trigger.tz not in {None, tz}:
        what = f"got {tz!r}, and {key} says {trigger.tz!r}; keep one of them"
        walk.complain(nodes["tz"], f"{path}.tz", what)
        return None
    return str(trigger)


def read_cron(walk: Walk, path: str, node: Any, dialect: str | None) -> Trigger | None:
    return _checked(walk, path, "cron", node, lambda text: cron(text, dialect=dialect))


def _complain_of_number(walk: Walk, path: str, key_node: Any, nodes: Mapping[str, Any], given: list[str]) -> None:
    if not given:
        walk.complain(key_node, path, "says nowhere when it runs; wanted one of cron, every, calendar and once")
        return
    what = f"got {' and '.join(given)}, which both say when it runs; keep one of them"
    walk.complain(nodes[given[1]], f"{path}.{given[1]}", what)


def _read(walk: Walk, path: str, key: str, node: Any, dialect: str | None) -> Trigger | None:
    match key:
        case "cron":
            return read_cron(walk, path, node, dialect)
        case "calendar" if is_mapping(node):
            return _read_calendar(walk, path, node)
        case _:
            return _checked(walk, path, key, node, lambda text: trigger_from_text(f"{key} {text}"))


def _checked(walk: Walk, path: str, key: str, node: Any, make: Callable[[str], Trigger]) -> Trigger | None:
    """The trigger that a text makes."""
    kind, text = TRIGGERS[key].kind, said(node)
    if not isinstance(text, str):
        walk.complain(node, path, misfit(kind_words(node), kind.wanted))
        return None
    try:
        return make(text)
    except RotaError as err:
        walk.complain(node, path, f"{misfit(kind.shown(text), kind.wanted)} ({err})")
    return None


def _read_calendar(walk: Walk, path: str, node: Any) -> Trigger | None:
    """A rule given key by key: each is a word of the trigger's text form."""
    before = len(walk.complaints)
    words = []
    for name, key_node, inner in walk.pairs(node, f"{path}.", "the name of a key"):
        text = said(inner)
        if name not in CALENDAR_PARTS:
            walk.complain(key_node, f"{path}.{name}", unknown_key(path, name, CALENDAR_PARTS))
        elif not isinstance(text, str) or not text or any(character.isspace() for character in text):
            walk.complain(inner, f"{path}.{name}", misfit(kind_words(inner), "a single word"))
        else:
            words.append(f"{name}={text}")
    if len(walk.complaints) > before:
        return None
    try:
        return trigger_from_text(f"calendar {' '.join(words)}")
    except RotaError as err:
        walk.complain(node, path, f"{err}; wanted {TRIGGERS['calendar'].kind.wanted}")
    return None
