"""Renders templates. Every value is escaped, and the content security policy allows nothing but this server's files.

Characters that change the direction of the text after them are shown as escapes, such as `\\u202e`: in a stored text
they could turn the rest of a line around. Fields of forms keep them, so that saving a form changes nothing.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from rota import __version__
from rota.web.pages.assets import assets
from rota.web.pages.nav import nav_of
from rota.web.pages.preparing import environment
from rota.web.pages.readings import Trouble
from rota.web.pages.said_words import say, say_finding, say_reason
from rota.web.pages.texts import languages, texts_of
from rota.web.pages.words import with_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.web.pages.page import Flash, View, Visit

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

UNCOUNTED = ("error.html", "login.html")  # pages that are shown without a login, or while the store is away

_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # embeddings, overrides and isolates, and their ends
# Escaped text has no quote and no "<", so that these are parts of tags. What a form sends back and addresses stay.
_KEPT = r'\b(?:value|name|href|action)="[^"]*"|<textarea[^<>]*>[^<]*'
_KEPT_OR_TURNS = re.compile(f"(?P<kept>{_KEPT})|{_TURNS.pattern}")


def render(view: View, visit: Visit, *, path: str, theme: str, flash: Flash | None) -> str:
    template = environment().get_template(view.template)
    is_framed = view.template not in UNCOUNTED
    trouble = visit.readings.trouble.get() if is_framed else Trouble()
    return shown(template.render(**frame_values(visit, path, theme, flash, trouble), **view.values))


def shown(html: str) -> str:
    """A page on which no text turns the direction of what follows it."""
    return _KEPT_OR_TURNS.sub(_escaped, html) if _TURNS.search(html) else html


def _escaped(found: re.Match[str]) -> str:
    return found["kept"] or f"\\u{ord(found[0]):04x}"


def frame_values(visit: Visit, path: str, theme: str, flash: Flash | None, trouble: Trouble) -> Mapping[str, Any]:
    """What every template has: the viewer's words, addresses, and the frame around the page."""
    words = visit.words
    return {
        "t": words.text,
        "num": words.number,
        "time": words.time,
        "span": words.span,
        "about": words.about,
        "words": words,
        "with_code": with_code,
        "say": partial(say, words),
        "say_finding": partial(say_finding, words),
        "say_reason": partial(say_reason, words),
        "url": visit.url,
        "asset": lambda name: f"{visit.mounted}/static/{assets()[name].served_as}",
        "may": visit.may,
        "who": visit.who,
        "has_session": bool(visit.session),
        "is_person": visit.is_person,
        "is_read_only": visit.access.is_read_only,
        "form_token": visit.form_token,
        "flash": flash,
        "frame": {
            "path": path,
            "mounted": visit.mounted or "/",
            "theme": theme,
            "app": visit.app.name,
            "app_version": visit.app.version,
            "version": __version__,
            "nav": nav_of(path),
            "counts": {"jobs": trouble.failed_jobs, "schedules": trouble.schedules},
            "languages": [(name, texts_of(name).name) for name in languages()],
        },
    }
