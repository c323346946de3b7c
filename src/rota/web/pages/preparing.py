"""Compiles the templates and reads the texts: the first visitor of each page would wait for both.

Both are CPU work in one process with the visitors. A visitor who comes meanwhile goes first: the next template waits
until no page is being made.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rota.web.pages.assets import assets
from rota.web.pages.texts import languages, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# What the first visit of most people shows: the login page, then the first page.
FIRST = ("login.html", "base.html", "brand.html", "sprite.html", "parts.html", "home.html")
MOST_WAIT = 0.5  # seconds that one step waits for visitors: with enough of them, it would wait for ever


class Visitors:
    """Counts the pages that are being made, so that work for later visitors can wait for those who are here."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._here = 0

    @contextmanager
    def served(self) -> Iterator[None]:
        """While one page is made."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def wait(self, most: float = MOST_WAIT) -> bool:
        """Wait until no page is being made, for so many seconds at most; says whether none is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._here == 0, most)

    def _count(self, change: int) -> None:
        with self._changed:
            self._here += change
            if self._here == 0:
                self._changed.notify_all()


@lru_cache(maxsize=1)
def environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def prepare_first(let_visitors_go: Callable[[], object]) -> None:
    """Read the texts, and compile the templates of the first visit. What is done already costs nothing."""
    for language in languages():
        texts_of(language)
    assets()
    _compile(FIRST, let_visitors_go)


def prepare_rest(let_visitors_go: Callable[[], object]) -> None:
    """Compile all other templates."""
    _compile(environment().list_templates(), let_visitors_go)


def _compile(names: Iterable[str], let_visitors_go: Callable[[], object]) -> None:
    for name in names:
        let_visitors_go()
        environment().get_template(name)
