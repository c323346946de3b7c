"""Lists the sections of the dashboard for its navigation. A section is shown if the table has its page."""

from __future__ import annotations

from typing import NamedTuple

from rota.web.pages.table import PAGES


class NavLink(NamedTuple):
    """An entry of the navigation; its text is `nav.NAME` in the catalogue."""

    name: str  # also the icon's: i-NAME
    path: str
    key: str = ""  # pressed after g


MAIN = (
    NavLink("home", "/", "h"),
    NavLink("jobs", "/jobs", "j"),
    NavLink("schedules", "/schedules", "s"),
    NavLink("agenda", "/agenda", "a"),
)
SYSTEM = (
    NavLink("queues", "/queues", "q"),
    NavLink("nodes", "/nodes", "n"),
    NavLink("tasks", "/catalog", "c"),
    NavLink("sources", "/sources"),
    NavLink("documents", "/documents", "d"),
    NavLink("tenants", "/tenants", "t"),
    NavLink("alerts", "/alerts", "l"),
    NavLink("audit", "/audit", "u"),
    NavLink("api", "/api"),
)


class Shown(NamedTuple):
    """An entry as a page shows it."""

    link: NavLink
    is_current: bool


_PATHS = frozenset(page.path for page in PAGES)


def nav_of(path: str) -> dict[str, list[Shown]]:
    """Both groups of sections, with the one that a path belongs to marked as current."""
    return {
        group: [Shown(link, _holds(link, path)) for link in links if link.path in _PATHS]
        for group, links in (("main", MAIN), ("system", SYSTEM))
    }


def _holds(link: NavLink, path: str) -> bool:
    return path == link.path or (link.path != "/" and path.startswith(f"{link.path}/"))
