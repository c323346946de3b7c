"""Defines the ASGI app of the API and the pages: it reads a request, checks access, and runs a handler in a thread."""

from __future__ import annotations

import logging
from collections import defaultdict
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router

from rota.errors import RotaError, VersionConflict
from rota.web.access import AccessControl, secret_in
from rota.web.hub import Hub, Listener
from rota.web.login import PERSON_FOR, SiteLogin, check_change
from rota.web.origins import Network, Origin, check_framing, client_address, forwarded_for, is_in, networks_of
from rota.web.pages.readings import Readings
from rota.web.pages.serving import Pages
from rota.web.reading import read_body, read_params, read_query, read_version
from rota.web.refusals import Refusal, refusal_of, unexpected
from rota.web.route import Answer, Ask, Follow, Watch
from rota.web.table import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from rota.app import App
    from rota.client.tokens import Identity
    from rota.web.login import Login
    from rota.web.route import Route

log = logging.getLogger("rota.web")

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class WebOptions(TypedDict, total=False):
    """How the HTTP API is served, where the settings do not say it."""

    token: str | None  # an admin's, beside those that the store has
    read_only: bool
    anonymous: bool  # clients on the loopback address may read without a token
    login: Login | None  # who sends a request, by the word of the site that this is mounted in
    login_url: str | None  # where the site's people log in; `next` in its query says where they come from


class Web:
    """The HTTP API of one app."""

    def __init__(self, app: App, routes: Sequence[Route] = ROUTES, **options: Unpack[WebOptions]) -> None:
        self.app = app
        self.hub = Hub(app)
        self.readings = Readings(app)
        self._options = options
        self.site_login = SiteLogin(app, self._options.get("login"), self._options.get("login_url"))
        paths = [StarletteRoute(path, _Path(self, found)) for path, found in _by_path(routes).items()]
        pages = Pages(self)
        self._no_page = pages.missing()
        self._router = Router([*paths, *pages.routes()], redirect_slashes=False, default=self._nowhere)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_framing(scope.get("headers", ()))
        except Refusal as refusal:
            await refused(refusal)(scope, receive, send)
            return
        await self._router(scope, receive, send)

    @cached_property
    def access(self) -> AccessControl:
        """Made at the first request: the settings are not read before."""
        said, options = self.app.settings.web, self._options
        return AccessControl(
            self.app,
            token=options.get("token") or said.token,
            is_read_only=options.get("read_only", False),
            anonymous=options.get("anonymous", said.anonymous == "read"),
            hosts=said.hosts,
        )

    @cached_property
    def trusted(self) -> tuple[Network, ...]:
        """The proxies whose X-Forwarded-For is believed."""
        return networks_of(self.app.settings.web.trusted_proxies)

    async def respond(self, route: Route, request: Request) -> Response:
        headers, pairs = request.headers, request.query_params.multi_items()
        origin = self.origin_of(request)
        person = await self._person(route, request)
        who = await self.access.admit(route, headers, origin, person)
        ask = Ask(
            app=self.app,
            who=who,
            path=read_params(route, request.path_params),
            query=read_query(route, pairs),
            expect_version=read_version(route, pairs, headers),
            last_event=_last_event(headers),
            accept=headers.get("accept", ""),
            mounted=quote(request.scope.get("root_path", "")),
            body=await read_body(
                route, headers.get("content-type", ""), headers.get("content-length"), request.stream()
            ),
        )
        by_header = "if-match" in headers or "if-none-match" in headers
        answer = await self._handle(route, ask, by_header=by_header)
        lasts = None if person is None else PERSON_FOR
        return self._response(route, answer, who, origin.address, lasts)

    async def _person(self, route: Route, request: Request) -> Identity | None:
        """Whom the site knows, unless a token says who asks."""
        if route.role is None or secret_in(request.headers) is not None:
            return None
        person = await self.site_login.find(request)
        if person is not None and route.method != "GET":
            check_change(request.headers, self.scheme_of(request))
        return person

    def origin_of(self, request: Request) -> Origin:
        peer, forwarded = request.client.host if request.client else "", forwarded_for(request.headers.raw)
        return Origin(
            server=str((request.scope.get("server") or ("",))[0]),
            peer=peer,
            forwarded=forwarded,
            address=client_address(peer, forwarded, self.trusted),
        )

    def scheme_of(self, request: Request) -> str:
        """How the client reached the server: https also if a trusted proxy says so."""
        peer = request.client.host if request.client else ""
        forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        is_told = forwarded == "https" and is_in(peer, self.trusted)
        return "https" if is_told else request.url.scheme

    async def _nowhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        """There is no such path: a browser is shown a page, a program a fault."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] != "http":
            return
        elif "text/html" in Request(scope).headers.get("accept", ""):
            await self._no_page(scope, receive, send)
        else:
            message = "there is nothing at this path; /api/v1/openapi.json lists all that there is"
            await refused(Refusal(404, "not_found", message))(scope, receive, send)

    async def _handle(self, route: Route, ask: Ask, *, by_header: bool) -> Any:
        try:
            return await self.app.aio.call(partial(route.handle, ask))
        except VersionConflict as err:
            refusal = refusal_of(err)
            refusal.status = 412 if by_header else 409
            raise refusal from err
        except RotaError as err:
            raise refusal_of(err) from err

    def _response(self, route: Route, answer: Any, who: Identity, address: str, lasts: float | None) -> Response:
        if isinstance(answer, (Watch, Follow)):
            job_id, after = (None, 0) if isinstance(answer, Watch) else (answer.job_id, answer.after)
            events = self.hub.stream(Listener(who, address, job_id, after, lasts=lasts))
            return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)
        if not isinstance(answer, Answer):
            answer = Answer(answer, route.status)
        body = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
        if answer.status == 204:
            return Response(None, 204, {**HEADERS, **answer.headers})
        return Response(body, answer.status, {**HEADERS, **answer.headers}, route.media)


class _Path:
    """All methods of one path, as an ASGI app."""

    def __init__(self, web: Web, routes: Iterable[Route]) -> None:
        self._web = web
        self._routes = {route.method: route for route in routes}
        self._allow = ", ".join(sorted({*self._routes, *(["HEAD"] if "GET" in self._routes else [])}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        method = "GET" if request.method == "HEAD" else request.method
        try:
            response = await self._answer(self._routes.get(method), request)
        except ClientDisconnect:
            return
        if request.method == "HEAD" and isinstance(response, StreamingResponse):
            response = Response(None, response.status_code, HEADERS, "text/event-stream")  # it would never end
        await response(scope, receive, send)

    async def _answer(self, route: Route | None, request: Request) -> Response:
        if route is None:
            return refused(self._not_allowed(request))
        try:
            return await self._web.respond(route, request)
        except Refusal as refusal:
            return refused(refusal)
        except ClientDisconnect:
            raise
        except Exception as err:
            log.exception("%s %r failed", request.method, request.url.path)
            return refused(unexpected(err, "something went wrong here; the server's log says what"))

    def _not_allowed(self, request: Request) -> Refusal:
        message = f"this path has no {request.method[:20]}; it has {self._allow}"
        return Refusal(405, "method_not_allowed", message, headers={"Allow": self._allow})


def make_asgi(app: App, **options: Any) -> Web:
    """The HTTP API of an app, as an ASGI app."""
    return Web(app, **options)


def refused(refusal: Refusal) -> Response:
    return Response(refusal.body, refusal.status, {**HEADERS, **refusal.headers}, "application/json")


def _by_path(routes: Iterable[Route]) -> Mapping[str, list[Route]]:
    """Fixed paths first: /schedules/x is not asked for what /schedules/{id} would say."""
    found: dict[str, list[Route]] = defaultdict(list)
    for route in sorted(routes, key=lambda route: "{" in route.path):
        found[route.path].append(route)
    return found


def _last_event(headers: Mapping[str, str]) -> int | None:
    said = headers.get("last-event-id", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) <= 18 else None
