"""Reads all texts of the dashboard, one file per language: keys, templates with values, and plurals.

English is whole; a key that another language lacks is shown in English. A language is added by adding its file.
"""

from __future__ import annotations

import tomllib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rota.triggers.phrases import Phrases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FOLDER = Path(__file__).parent
DEFAULT = "en"

Template = str | list[str] | dict[str, str]
RULE = "rule."


class Texts:
    """The texts of one language."""

    def __init__(self, language: str, found: Mapping[str, Template], rest: Texts | None) -> None:
        self.language = language
        self._found = found
        self._rest = rest
        self.name = str(found["language.name"])

    def template(self, key: str) -> Template:
        if key in self._found:
            return self._found[key]
        if self._rest is None:
            raise KeyError(f"the catalogue has no text {key!r}")
        return self._rest.template(key)

    def has(self, key: str) -> bool:
        return key in self._found or (self._rest is not None and self._rest.has(key))

    def keys(self) -> Iterator[str]:
        return iter(self._found)

    def words(self, key: str) -> list[str]:
        """A list of the catalogue: the names of months."""
        found = self.template(key)
        return found if isinstance(found, list) else [str(found)]

    @cached_property
    def phrases(self) -> Phrases:
        """Of which the sentence of a rule is made."""
        keys = [key for key in texts_of(DEFAULT).keys() if key.startswith(RULE)]  # noqa: SIM118 - no dict
        return Phrases({key.removeprefix(RULE): self.template(key) for key in keys}, self.language)

    def text(self, key: str, /, **values: Any) -> Markup:
        """A text with its values. `n` decides on the plural; numbers are written as the language writes them.

        Values are escaped unless they are markup already, such as a link inside a sentence.
        """
        template = self.template(key)
        if isinstance(template, dict):
            template = template["one" if values.get("n") == 1 else "other"]
        shown = {name: self.number(value) if _is_number(value) else value for name, value in values.items()}
        return Markup(escape(template)).format(**shown)  # noqa: S704 - the template is escaped, its values are, too

    def number(self, value: float) -> str:
        """22,847"""
        thousands, point = str(self.template("language.thousands")), str(self.template("language.point"))
        return "".join({",": thousands, ".": point}.get(sign, sign) for sign in f"{value:,}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@lru_cache(maxsize=1)
def languages() -> tuple[str, ...]:
    """The languages that there are, English first."""
    found = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return (DEFAULT, *(name for name in found if name != DEFAULT))


@lru_cache(maxsize=32)
def texts_of(language: str) -> Texts:
    found = dict(_flat(tomllib.loads((_FOLDER / f"{language}.toml").read_text("utf-8"))))
    return Texts(language, found, None if language == DEFAULT else texts_of(DEFAULT))


def chosen_language(cookie: str, accepted: str) -> str:
    """The language of a viewer: their own choice, or the first that their browser asks for and that there is."""
    if cookie in languages():
        return cookie
    asked = [part.partition(";") for part in accepted.split(",")[:20]]
    weighted = [(_weight(rest), -index, tag.strip().lower()) for index, (tag, _, rest) in enumerate(asked)]
    for weight, _, tag in sorted(weighted, reverse=True):
        primary = tag.partition("-")[0]
        if weight > 0 and primary in languages():
            return primary
    return DEFAULT


def _weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


def _flat(table: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, Template]]:
    for name, value in table.items():
        key = f"{head}{name}"
        if isinstance(value, dict) and value.keys() != {"one", "other"}:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value
