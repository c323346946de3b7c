"""Answers a misspelt keyword with the nearest known one, instead of Python's bare TypeError."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")
C = TypeVar("C", bound=type)

_NO_OTHERS: dict[str, str] = {}


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """BadOption for the first name that is no option of this, with the nearest known one.

    `elsewhere` has the words of other job systems: each with an option of Rota, or with a sentence of advice.
    """
    options = sorted(known)
    for name in given:
        if name not in options:
            raise BadOption(f"{what} has no option {name!r}; {_advice(name, options, elsewhere)}")


def known_keywords(what: str, elsewhere: Mapping[str, str] = _NO_OTHERS) -> Callable[[F], F]:
    """Decorate a function: a keyword that it does not have is a BadOption."""

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        known = frozenset(one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY and one.name != "self")
        apt = {word: meant for word, meant in elsewhere.items() if meant in known or not meant.isidentifier()}

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not known.issuperset(kwargs):
                refuse_unknown(what, kwargs, known, apt)
            return function(*args, **kwargs)

        return cast("F", call)

    return decorate


def known_keywords_of_verbs(what: str, elsewhere: Mapping[str, str] = _NO_OTHERS) -> Callable[[C], C]:
    """Decorate a class: the same for each public method that has keywords of its own."""

    def decorate(kind: C) -> C:
        for name, method in list(vars(kind).items()):
            if not name.startswith("_") and inspect.isfunction(method) and _has_keywords(method):
                setattr(kind, name, known_keywords(f"{what}.{name}()", elsewhere)(method))
        return kind

    return decorate


def _has_keywords(method: Callable[..., Any]) -> bool:
    kinds = {one.kind for one in inspect.signature(method).parameters.values()}
    return inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_KEYWORD not in kinds


def _advice(name: str, options: list[str], elsewhere: Mapping[str, str]) -> str:
    meant = elsewhere.get(name)
    if meant is None:
        close = get_close_matches(name, [*options, *elsewhere], n=1)
        meant = elsewhere.get(close[0], close[0]) if close else None
    if meant is None:
        return f"options are {', '.join(options)}"
    return f"did you mean {meant}=?" if meant.isidentifier() else meant.replace("{name}", name)
