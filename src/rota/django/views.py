"""Serves the dashboard behind Django's login. Permissions are roles, and changes are recorded under the user's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import resolve_url
from django.views.decorators.csrf import csrf_exempt

from rota.django.bridge import PERSON, bridge_of
from rota.django.current import get_app
from rota.web.login import LONGEST_NAME, Person

if TYPE_CHECKING:
    from rota.model.token import Role

ROLES: tuple[tuple[str, Role], ...] = (  # the first that a user has counts
    ("rota.administer_dashboard", "admin"),
    ("rota.operate_dashboard", "operate"),
    ("rota.view_dashboard", "read"),
)
_SKIPPED = {"content-length", "set-cookie"}  # Django says the first itself; cookies have a place of their own


@csrf_exempt  # type: ignore[untyped-decorator]  # forms are bound to a cookie of the dashboard's own
def dashboard(request: Any, rest: str) -> Any:
    """Every page of the dashboard and every path of its API."""
    bridge = bridge_of(get_app(), resolve_url(settings.LOGIN_URL))
    reply = bridge.ask(scope_of(request, rest), request.body)
    response = HttpResponse(reply.body, status=reply.status)
    for name, value in reply.headers:
        if name == "set-cookie":
            response.cookies.load(value)
        elif name not in _SKIPPED:
            response[name] = value
    return response


def person_of(user: Any) -> Person | None:
    """A user of Django with a role; None without a login, and for a site without users."""
    if user is None or not user.is_authenticated:
        return None
    return Person(str(user.get_username())[:LONGEST_NAME], role_of(user))


def role_of(user: Any) -> Role | None:
    """What a user may do on the dashboard; None: nothing."""
    return next((role for permission, role in ROLES if user.has_perm(permission)), None)


def scope_of(request: Any, rest: str) -> dict[str, Any]:
    """A request of Django in the words of ASGI."""
    path, meta = request.path, request.META
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": path,
        "raw_path": path.encode(),
        "root_path": path[: len(path) - len(rest)].rstrip("/"),
        "query_string": meta.get("QUERY_STRING", "").encode("latin-1"),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in {**request.headers, "Host": request.get_host()}.items()  # as Django's settings trust it
        ],
        "client": (meta.get("REMOTE_ADDR") or "", 0),
        "server": (meta.get("SERVER_NAME") or "", int(meta.get("SERVER_PORT") or 0)),
        PERSON: person_of(getattr(request, "user", None)),
    }
