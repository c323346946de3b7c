"""What the tests of the pages share: a server with an app behind it, and a tab that watches over itself."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import cache
from html import unescape
from http.cookies import SimpleCookie
from importlib.resources import files
from re import sub
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener
from weakref import WeakKeyDictionary

from amounts import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rota import App
    from rota.web.server import WebServer

TOKEN = "a-token-of-the-tests"  # noqa: S105 - of nobody


class Door(NamedTuple):
    """An app behind HTTP, and the ids of some of its jobs."""

    app: App
    server: WebServer
    ids: Mapping[str, str]

    @property
    def url(self) -> str:
        return self.server.url


_sessions: WeakKeyDictionary[WebServer, str] = WeakKeyDictionary()


def session_of(door: Door) -> str:
    """A session of the server's own token, begun once for all tabs."""
    if door.server not in _sessions:
        request = Request(f"{door.url}/login", urlencode({"token": TOKEN}).encode())  # noqa: S310 - http
        with build_opener(_Stay).open(request) as answer:
            _sessions[door.server] = SimpleCookie(answer.headers["Set-Cookie"])["rota_session"].value
    return _sessions[door.server]


def page_text(door: Door, path: str, language: str = "en") -> str:
    """What a page says, read without a browser."""
    cookies = f"rota_session={session_of(door)}; rota_language={language}"
    request = Request(f"{door.url}{path}", headers={"Cookie": cookies})  # noqa: S310 - http
    with build_opener().open(request) as answer:
        html = answer.read().decode()
    return shown_text(html)


def shown_text(html: str) -> str:
    """What a page says, with one space between words."""
    return " ".join(unescape(sub(r"<[^>]*>", " ", html.partition("<main")[2])).split())


class _Stay(HTTPRedirectHandler):
    """Follows no redirect, so that the answer to a form can be read."""

    def http_error_303(self, _request, answer, *_):  # type: ignore[no-untyped-def]
        return answer


# Rows of a list are alike, and so are the operations of the API: the first ones stand for all.
_ALIKE = "{exclude: [['tbody tr:nth-child(n + 5)'], ['.op:nth-of-type(n + 4)']]}"


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


# The elements that reach beyond a width, with their right ends.
_TOO_WIDE = """width => [...document.querySelectorAll('body *')]
    .map(one => [one, one.getBoundingClientRect().right])
    .filter(([one, right]) => right > width)
    .map(([one, right]) => `${right} ${one.outerHTML.slice(0, 200)}`)
    .slice(-5)"""


class Tab:
    """A page of a browser, with everything that went wrong on it."""

    def __init__(self, page: Any, door: Door) -> None:
        self.page = page
        self.door = door
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._heard)
        page.on("dialog", lambda dialog: (self.errors.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    @classmethod
    @contextmanager
    def open(cls, browser: Any, door: Door, **options: Any) -> Iterator[Tab]:
        options = {"viewport": {"width": 1440, "height": 900}, "timezone_id": "Europe/Riga", **options}
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        kept = {"rota_session": session_of(door), "rota_zone": options["timezone_id"]}
        context.add_cookies([{"name": name, "value": value, "url": door.url} for name, value in kept.items()])
        try:
            tab = cls(context.new_page(), door)
            yield tab
            assert tab.errors == []
        finally:
            context.close()

    def watched(self) -> Iterator[Tab]:
        """For one test: nothing goes wrong on the page until the test is over."""
        self.errors.clear()
        yield self
        assert self.errors == []

    def log_in(self, token: str = TOKEN) -> None:
        self.page.goto(f"{self.door.url}/login")
        self.page.fill("#token", token)
        self.page.click("button:has-text('Log in')")
        self.page.wait_for_selector(".frame")

    def go(self, path: str) -> Any:
        answer = self.page.goto(f"{self.door.url}{path}")
        self.page.wait_for_load_state()
        return answer

    def go_until(self, path: str, shown: str) -> None:
        """Load the page again until it shows this."""
        ends_at = time.monotonic() + PATIENCE
        while not (self.go(path) and self.page.locator(shown).count()):
            assert time.monotonic() < ends_at, f"{path} never showed {shown}"

    def text(self) -> str:
        return self.page.inner_text("main")

    def shows(self, text: str) -> bool:
        """Whether the page shows this, at once or after the load that a click began."""
        ends_at = time.monotonic() + PATIENCE
        while text not in self.text():
            if time.monotonic() > ends_at:
                return False
        return True

    def width(self) -> int:
        return self.page.evaluate("document.documentElement.scrollWidth")

    def faults(self) -> list[str]:
        """What is wrong for somebody with the page, as rule: element. Nothing may scroll sideways, wide or narrow.

        All rules of axe are checked twice: with the light theme on a wide screen, and with the dark theme on a phone.
        One load of the page serves for both.
        """
        found: list[str] = []
        self.page.evaluate(_axe())
        for scheme, width in (("light", 1440), ("dark", 390)):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # a row that just came fades in
            self.page.set_viewport_size({"width": width, "height": 844})
            if self.width() > width:
                found.append(f"it scrolls sideways: {self.width()} of {width}: {self.page.evaluate(_TOO_WIDE, width)}")
            result = self.page.evaluate(f"axe.run({_ALIKE}, {{resultTypes: ['violations']}})")
            found += [
                f"{scheme} {one['id']}: {node['html'][:200]}" for one in result["violations"] for node in one["nodes"]
            ]
        return found

    def _heard(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)
