"""Compiles the templates and reads the texts: the first visitor of each page would wait for both."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rota.web.pages.assets import assets
from rota.web.pages.texts import languages, texts_of


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


def prepare() -> None:
    """Do it now. What is done already costs nothing."""
    for language in languages():
        texts_of(language)
    assets()
    for name in environment().list_templates():
        environment().get_template(name)
