"""Defines pages as values: a path, its visitors, and the function that shows it or acts on it.

A page's function runs in a thread. It gets a visit and returns a view (a template and its values), the path of
another page, a download or a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from msgspec import Struct

from rota.model.token import Role

if TYPE_CHECKING:
    from rota.app import App
    from rota.client.tokens import Identity
    from rota.web.access import AccessControl
    from rota.web.pages.forms import Form
    from rota.web.pages.readings import Readings
    from rota.web.pages.words import Words

FORM_TOKEN = "_form"  # noqa: S105 - the field's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request for a page, by somebody who may see it."""

    app: App
    access: AccessControl
    readings: Readings  # shared by all visitors
    who: Identity
    words: Words  # the viewer's language and timezone
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Form
    mounted: str  # the path under which the dashboard is
    address: str = ""  # the client's
    form_token: str = ""  # proves that a form was made for this session
    bearer: Identity | None = None  # of the token that was typed in, if the page reads one
    session: str = ""  # the cookie that let the visitor in; empty for a header or for nobody
    is_person: bool = False  # whether the site's own login let the visitor in

    @property
    def by(self) -> str:
        return self.who.name

    def may(self, role: Role) -> bool:
        """Whether a control of that role is shown; the server decides again when it is used."""
        return self.who.may(role) and (role == "read" or not self.access.is_read_only)

    def url(self, path: str, **query: object) -> str:
        """The address of a page of the dashboard, wherever it is mounted; what is None or empty is left out."""
        said = {name: value for name, value in query.items() if value not in {None, ""}}
        return f"{self.mounted}{quote(path)}" + (f"?{urlencode(said)}" if said else "")


class Flash(Struct, frozen=True, kw_only=True):
    """What the last action did: a text of the catalogue with its values."""

    key: str  # of the table `flash`
    values: dict[str, str | int] = {}
    tone: Literal["ok", "warn", "bad"] = "ok"


class View(Struct, frozen=True, kw_only=True):
    """A template and the values that it shows."""

    template: str
    values: Mapping[str, Any] = {}
    status: int = 200
    headers: Mapping[str, str] = {}
    session: str | None = None  # a new session's cookie


class GoTo(Struct, frozen=True, kw_only=True):
    """Another page is shown instead; a change always ends like this, so that reloading repeats nothing."""

    path: str  # within the dashboard, with its query
    flash: Flash | None = None
    session: str | None = None  # a new session's cookie; "" ends the one that there is
    cookies: Mapping[str, str] = {}  # choices that the browser keeps for a year


class Download(Struct, frozen=True, kw_only=True):
    """A file, or a part of a page."""

    body: bytes
    media: str
    name: str = ""  # under which it is saved; empty: it is not


class Stream(Struct, frozen=True):
    """What happens, as server-sent events."""


Answer = View | GoTo | Download | Stream


class Page(Struct, frozen=True, kw_only=True):
    """One method of one path."""

    path: str  # /jobs/{job_id}
    role: Role | None  # None: anybody
    handle: Callable[[Visit], Answer]
    method: str = "GET"
    params: type[Struct] | None = None  # the path's; what does not fit is not found
    reads_token: bool = False  # the form's field `token` is checked, slowly if it is wrong
    changes_nothing: bool = False  # a POST that is no change of the store's work: logging in, the theme

    @property
    def is_change(self) -> bool:
        return self.method != "GET" and not self.changes_nothing
