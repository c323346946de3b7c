"""What happens, as one stream for all tabs of a browser; each page then asks for its own parts again."""

from __future__ import annotations

from rota.web.pages.page import Page, Stream, Visit


def watch(visit: Visit) -> Stream:
    visit.app.open()
    return Stream()


PAGES = (Page(path="/events", role="read", handle=watch),)
