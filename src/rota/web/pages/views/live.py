"""Sends all events as one stream for all tabs of a browser. Each page then requests its own parts again."""

from __future__ import annotations

from rota.web.pages.page import Page, Stream, Visit


def watch(visit: Visit) -> Stream:
    visit.app.open()
    return Stream()


PAGES = (Page(path="/events", role="read", handle=watch),)
