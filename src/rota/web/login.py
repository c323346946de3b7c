"""Asks the site that the dashboard is mounted in who sends a request: `app.asgi(login=…)`.

A token in a header counts before the site's login, and the site's login before a session that a token began. A site
knows its people by cookies, which a browser sends along with requests of other sites. So a change that a person makes
must come from this site: its Origin says so, and a form carries a token that is bound to a cookie of its own.
"""

from __future__ import annotations

import inspect
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct

from rota.client.tokens import Identity
from rota.errors import BadOption
from rota.model.token import ROLES, Role
from rota.web.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    from starlette.requests import Request

    from rota.app import App

    Login: TypeAlias = Callable[[Request], "Person | Awaitable[Person | None] | None"]

LONGEST_NAME = 200
PERSON_FOR = 60.0  # seconds that a stream of a person lasts: the next one asks the site again who it is


class Person(Struct, frozen=True):
    """Somebody whom the site knows, and what they may do here: read, operate, admin, or nothing (None)."""

    name: str  # changes are recorded under this name
    role: Role | None = "read"


class SiteLogin:
    """The site's own login, as the dashboard uses it. Without a `login`, the site knows nobody."""

    def __init__(self, app: App, login: Login | None, login_url: str | None) -> None:
        if login is not None and not callable(login):
            raise BadOption(f"login={login!r} must be a function that takes a request and returns a Person or None")
        if login_url is not None and login is None:
            raise BadOption(f"login_url={login_url!r} needs a login=: without it, a login there is not seen here")
        self._app = app
        self._login = login
        self._url = login_url

    async def find(self, request: Request) -> Identity | None:
        """Who asks, by the site's word; None if the site knows nobody. A plain function is called in a thread."""
        login = self._login
        if login is None:
            return None
        found: Any = login(request) if _is_async(login) else await self._app.aio.call(lambda: login(request))
        if inspect.isawaitable(found):
            found = await found
        return None if found is None else _identity_of(found)

    def address(self, back: str) -> str | None:
        """Where somebody whom the site does not know logs in, and comes back from; None: with a token."""
        if self._url is None:
            return None
        return f"{self._url}{'&' if '?' in self._url else '?'}next={quote(back, safe='/')}"


def check_change(headers: Mapping[str, str], scheme: str) -> None:
    """Refuse a change over the API that a browser did not send from a page of this very site."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = f"{scheme}://{headers.get('host', '')}".lower()
    is_own = site == "same-origin" if site is not None else origin is not None and origin.lower() == own
    if not is_own:
        message = (
            "a change in the name of a logged-in person must come from a page of this site; programs send a token: "
            "Authorization: Bearer TOKEN"
        )
        raise Refusal(403, "other_site", message, field="Origin")


def new_form_secret() -> str:
    """The value of the cookie that a person's forms are bound to."""
    return secrets.token_urlsafe(18)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _identity_of(found: object) -> Identity:
    if not isinstance(found, Person):
        raise BadOption(f"login= must return a rota.web.Person or None, got {found!r}")
    if not isinstance(found.name, str) or not 0 < len(found.name) <= LONGEST_NAME:
        raise BadOption(f"a Person needs a name of 1 to {LONGEST_NAME} characters, got {found.name!r:.100}")
    if found.role is None:
        message = f"{found.name} is logged in and may not use this dashboard; ask an administrator of the site"
        raise Refusal(403, "forbidden", message)
    if found.role not in ROLES:
        raise BadOption(f"the role of {found.name}, {found.role!r}, must be one of {', '.join(ROLES)}, or None")
    return Identity(name=found.name, role=found.role)
