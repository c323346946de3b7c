"""Lists the runs of the coming days over HTTP."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from rota.inspector.facts.agenda import AgendaFacts, agenda_page
from rota.store.contract import Page
from rota.web.route import Ask, Route
from rota.web.types import NotesQuery


class AgendaQuery(NotesQuery, frozen=True, kw_only=True):
    """How many days ahead, and which page."""

    days: Annotated[int, Meta(ge=1, le=366)] = 7


def get_agenda(ask: Ask) -> Page[AgendaFacts]:
    query: AgendaQuery = ask.query
    return agenda_page(ask.app.open(), query.days, limit=query.limit, cursor=query.cursor)


ROUTES = (
    Route(method="GET", path="/api/v1/agenda", role="read", handle=get_agenda, query=AgendaQuery,
          answer=Page[AgendaFacts],
          says="What is to run in the coming days, the earliest first; a schedule with more than three runs a day "
               "has one entry."),
)  # fmt: skip
