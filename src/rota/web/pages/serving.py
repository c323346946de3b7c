"""Serves the pages: reads a request, finds out who asks, has the page made in a thread, and answers.

A visitor without a session is shown the login page in place of the page; what they had typed into a form is kept
there, and offered again once they have logged in. A store that is away has a page of its own, which comes back by
itself.
"""

from __future__ import annotations

import base64
import gzip
import logging
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from rota.client.tokens import Identity
from rota.clock import utc_now
from rota.errors import RotaError, StoreError
from rota.web.access import ANYBODY, secret_in
from rota.web.hub import Listener
from rota.web.login import PERSON_FOR, new_form_secret
from rota.web.pages.assets import FOR_EVER, assets
from rota.web.pages.forms import Form, check_same_site, form_token, is_own_form, read_form
from rota.web.pages.page import FORM_TOKEN, Download, Flash, GoTo, Page, Stream, View, Visit
from rota.web.pages.rendering import HEADERS, render
from rota.web.pages.table import PAGES
from rota.web.pages.texts import chosen_language, texts_of
from rota.web.pages.words import Words, zone_of
from rota.web.refusals import Refusal, refusal_of, unexpected
from rota.web.sessions import id_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from rota.app import App
    from rota.web.access import AccessControl
    from rota.web.hub import Hub
    from rota.web.login import SiteLogin
    from rota.web.origins import Origin
    from rota.web.pages.page import Answer
    from rota.web.pages.readings import Readings

log = logging.getLogger("rota.web")

SESSION, THEME, ZONE, LANGUAGE, FLASH = "rota_session", "rota_theme", "rota_zone", "rota_language", "rota_flash"
FORM = "rota_form"  # what the forms of a person whom the site knows are bound to
YEAR = 365 * 24 * 3600
_IN_ADDRESSES = "/?#[]@!$&'()*+,;=:%~"  # characters that an address has as they are
SMALLEST_PACKED = 1_000  # bytes; packing less saves nothing


class Site(Protocol):
    """The ASGI app that the pages are part of."""

    app: App
    hub: Hub
    readings: Readings

    @property
    def access(self) -> AccessControl: ...

    @property
    def site_login(self) -> SiteLogin: ...

    def origin_of(self, request: Request) -> Origin: ...

    def scheme_of(self, request: Request) -> str: ...


class Pages:
    """The dashboard of one app."""

    def __init__(self, web: Site, pages: Sequence[Page] = PAGES) -> None:
        self._web = web
        self._pages = pages
        self.visitors = web.readings.visitors

    def routes(self) -> list[StarletteRoute]:
        """Its paths, for the router."""
        found: dict[str, dict[str, Page]] = defaultdict(dict)
        for page in sorted(self._pages, key=lambda page: "{" in page.path):
            found[page.path][page.method] = page
        static = StarletteRoute("/static/{name}", _static)
        return [static, *(StarletteRoute(path, _PagePath(self, pages)) for path, pages in found.items())]

    def missing(self) -> _PagePath:
        """What is shown where there is no page."""
        return _PagePath(self, {})

    async def answer(self, page: Page | None, request: Request) -> Response:
        """The page, or the page that says why it cannot be shown."""
        incoming = _Request(self._web, request)
        try:
            return (
                await self._serve(page, incoming)
                if page
                else await self._refused(incoming, Refusal(404, "not_found", ""))
            )
        except Refusal as refusal:
            return await self._refused(incoming, refusal)
        except ClientDisconnect:
            raise
        except Exception as err:
            log.exception("%s %r failed", request.method, request.url.path)
            return await self._refused(incoming, unexpected(err))

    async def _serve(self, page: Page, incoming: _Request) -> Response:
        if page.method != "GET":
            check_same_site(incoming.headers, incoming.scheme)
            incoming.form = await read_form(incoming.request)
        if page.reads_token and incoming.form.get("token"):
            incoming.bearer = await self._bearer(incoming)
        by_header = secret_in(incoming.headers)
        who = await self._web.access.identify(by_header, incoming.address) if by_header is not None else None
        if who is None and (person := await self._web.site_login.find(incoming.request)) is not None:
            incoming.let_in(person)
        made = await self._web.app.aio.call(partial(self._make, page, incoming, who))
        if isinstance(made, Response):
            return made
        events = self._web.hub.stream(made)  # here, not in the thread: the hub belongs to the event loop
        return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)

    async def _bearer(self, incoming: _Request) -> Identity | None:
        """Who bears the token that was typed in; wrong ones are throttled."""
        try:
            return await self._web.access.identify(incoming.form.get("token").strip(), incoming.address)
        except Refusal as refusal:
            if refusal.status != 401:
                raise
            return None

    def _make(self, page: Page, incoming: _Request, who: Identity | None) -> Response | Listener:
        """In a thread: everything that may ask the store."""
        visitor = who
        if who is not None:
            incoming.session = ""  # a token in a header let the visitor in: a cookie beside it counts for nothing
        try:
            visitor = who or incoming.person or self._visitor(page, incoming)
            if visitor is None and (address := incoming.login_address()) is not None:
                return Response(None, 303, {**HEADERS, "Location": address})
            if visitor is None:
                return incoming.render(_login_view(incoming), Identity("", "read"))
            if page.role is not None:
                is_change = (
                    page.is_change or page.role != "read"
                )  # the form of a change, too: it would be filled in for nothing
                self._web.access.check_role(visitor, page.role, is_change=is_change)
            if (
                page.method != "GET"
                and (secret := incoming.form_secret)
                and not is_own_form(incoming.form.get(FORM_TOKEN), secret)
            ):
                raise Refusal(403, "other_form", "")
            return self._respond(
                page.handle(incoming.visit(visitor, _params(page, incoming.request))), incoming, visitor
            )
        except RotaError as err:
            refusal = refusal_of(err)
            if refusal.status == 503 and (visitor is None or visitor is ANYBODY):
                log.warning("%s %s: %s", page.method, page.path, err)
                refusal = Refusal(503, refusal.fault.code, "")  # anonymous clients do not learn where the store is
            raise refusal from err

    def _visitor(self, page: Page, incoming: _Request) -> Identity | None:
        """Who asks; None if they must log in first."""
        if incoming.session and (who := self._web.access.sessions.identify(incoming.session)) is not None:
            return who
        incoming.session = ""  # it is over
        if page.role is None:
            return ANYBODY
        try:
            return self._web.access.anonymous(incoming.origin, incoming.headers.get("host"))
        except Refusal:
            return None

    def _respond(self, answer: Answer, incoming: _Request, who: Identity) -> Response | Listener:
        if isinstance(answer, GoTo):
            return incoming.go_to(answer)
        if isinstance(answer, Stream):
            lasts = None if incoming.person is None else PERSON_FOR
            return Listener(who, incoming.address, session_id=id_of(incoming.session), is_page=True, lasts=lasts)
        if isinstance(answer, Download):
            named = {"Content-Disposition": f'attachment; filename="{answer.name}"'} if answer.name else {}
            return incoming.packed(answer.body, 200, {**HEADERS, **named}, answer.media)
        if answer.session is not None:
            incoming.session = answer.session
            who = self._web.access.sessions.identify(incoming.session) or who
        return incoming.render(answer, who)

    async def _refused(self, incoming: _Request, refusal: Refusal) -> Response:
        """The page that says why; without the store, who asks is not known."""
        values = {"fault": refusal.fault, "said": refusal.sentence, "status": refusal.status}
        view = View(template="error.html", values=values, status=refusal.status, headers=refusal.headers)
        who = await self._known(incoming) if refusal.status != 503 else None
        return incoming.render(view, who or Identity("", "read"))

    async def _known(self, incoming: _Request) -> Identity | None:
        if incoming.person is not None or not incoming.session:
            return incoming.person
        try:
            return await self._web.app.aio.call(partial(self._web.access.sessions.identify, incoming.session))
        except StoreError:
            return None


class _Request:
    """One request with what its cookies and headers say about the visitor."""

    def __init__(self, web: Site, request: Request) -> None:
        self.web = web
        self.request = request
        self.headers = request.headers
        self.origin = web.origin_of(request)
        self.address = self.origin.address
        self.scheme = web.scheme_of(request)
        root = str(request.scope.get("root_path", ""))
        self.mounted = quote(root)  # a part of it may be the visitor's own choice, as in Mount("/{shop}/rota")
        self.path = str(request.scope["path"]).removeprefix(root) or "/"
        self.session = request.cookies.get(self.session_cookie, "")
        self.theme = theme if (theme := request.cookies.get(THEME, "")) in {"light", "dark"} else ""
        self.form = Form()
        self.bearer: Identity | None = None
        self.person: Identity | None = None  # whom the site knows
        self._form_cookie = request.cookies.get(FORM, "")
        language = chosen_language(request.cookies.get(LANGUAGE, ""), request.headers.get("accept-language", ""))
        self.words = Words(texts_of(language), zone_of(request.cookies.get(ZONE, "")), utc_now())
        self.has_flash = FLASH in request.cookies

    def let_in(self, person: Identity) -> None:
        """By the site's word; a session that a token began counts for nothing beside it."""
        self.person, self.session = person, ""

    @property
    def form_secret(self) -> str:
        """What a form must prove to know: that of its session, or of the cookie for people whom the site knows."""
        if self.person is None:
            return self.session
        self._form_cookie = self._form_cookie or new_form_secret()
        return f"{self._form_cookie} {self.person.name}"

    def login_address(self) -> str | None:
        """Where the visitor logs in at the site; None: here, with a token. An action is no page to come back to."""
        query = f"?{self.request.url.query}" if self.request.url.query else ""
        back = f"{quote(self.path)}{query}" if self.request.method == "GET" else "/"
        return self.web.site_login.address(f"{self.mounted}{back}")

    def visit(self, who: Identity, path: Mapping[str, str]) -> Visit:
        return Visit(
            app=self.web.app,
            access=self.web.access,
            readings=self.web.readings,
            who=who,
            words=self.words,
            path=path,
            query=dict(self.request.query_params),
            form=self.form,
            mounted=self.mounted,
            address=self.address,
            form_token=form_token(self.form_secret),
            is_person=self.person is not None,
            bearer=self.bearer,
            session=self.session,
        )

    def render(self, view: View, who: Identity) -> Response:
        flash = _read_flash(self.request.cookies.get(FLASH, ""), self.words)
        text = render(view, self.visit(who, {}), path=self.path, theme=self.theme, flash=flash)
        media = "text/html; charset=utf-8"
        response = self.packed(text.encode("utf-8", "replace"), view.status, {**HEADERS, **view.headers}, media)
        if view.session is not None:
            self._keep(response, self.session_cookie, view.session, None)
        if self.person is not None and self.request.cookies.get(FORM) != self._form_cookie:
            self._keep(response, FORM, self._form_cookie, None)
        if self.has_flash:
            response.delete_cookie(FLASH, path=self.cookie_path)
        return response

    def packed(self, body: bytes, status: int, headers: Mapping[str, str], media: str) -> Response:
        said = {**headers, "Vary": "Accept-Encoding, Accept-Language, Cookie"}
        if len(body) >= SMALLEST_PACKED and "gzip" in self.headers.get("accept-encoding", ""):
            body = gzip.compress(body, 4, mtime=0)
            said["Content-Encoding"] = "gzip"
        return Response(body, status, said, media)

    def go_to(self, answer: GoTo) -> Response:
        response = Response(
            None, 303, {**HEADERS, "Location": quote(f"{self.mounted}{answer.path}", safe=_IN_ADDRESSES)}
        )
        if answer.session == "":
            response.delete_cookie(self.session_cookie, path=self.cookie_path, secure=self.scheme == "https")
        elif answer.session is not None:
            self._keep(response, self.session_cookie, answer.session, None)
        for name, value in answer.cookies.items():
            self._keep(response, name, value, YEAR if value else 0)
        if answer.flash is not None:
            packed = base64.urlsafe_b64encode(msgspec.json.encode(answer.flash)).decode()
            self._keep(response, FLASH, packed, 60)
        return response

    def _keep(self, response: Response, name: str, value: str, seconds: int | None) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path=self.cookie_path,
            secure=self.scheme == "https",
            httponly=name != ZONE,  # the script sets the zone
            samesite="strict",
        )

    @property
    def session_cookie(self) -> str:
        """Its name. With the prefix, browsers take it only from this host, over HTTPS and for all paths: a server of a
        neighbouring name cannot plant one. It is read under this name alone."""
        return f"__Host-{SESSION}" if self.scheme == "https" and not self.mounted else SESSION

    @property
    def cookie_path(self) -> str:
        return self.mounted or "/"


class _PagePath:
    """All methods of one path, as an ASGI app."""

    def __init__(self, server: Pages, pages: Mapping[str, Page]) -> None:
        self._server = server
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        method = "GET" if request.method == "HEAD" else request.method
        try:
            with self._server.visitors.served():
                response = await self._server.answer(self._pages.get(method), request)
        except ClientDisconnect:
            return
        if request.method == "HEAD" and isinstance(response, StreamingResponse):
            response = Response(None, response.status_code, HEADERS, "text/event-stream")  # it would never end
        await response(scope, receive, send)


async def _static(request: Request) -> Response:
    asset = assets().get(request.path_params["name"])
    if asset is None or asset.served_as != request.path_params["name"]:
        return Response("there is no such file", 404, HEADERS, "text/plain; charset=utf-8")
    headers = {**HEADERS, "Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, 200, {**headers, "Content-Encoding": "gzip"}, asset.media)
    return Response(asset.body, 200, headers, asset.media)


def _params(page: Page, request: Request) -> Mapping[str, str]:
    """The path's parameters; what no thing can be called leads nowhere."""
    if page.params is not None:
        try:
            msgspec.convert(dict(request.path_params), page.params)
        except msgspec.ValidationError as err:
            raise Refusal(404, "not_found", "") from err
    return dict(request.path_params)


def _login_view(incoming: _Request) -> View:
    """The login page in place of another, with what was to be done there."""
    query = f"?{incoming.request.url.query}" if incoming.request.url.query else ""
    is_form = incoming.request.method == "POST"
    values = {
        "back": f"{incoming.path}{query}",
        "kept": [(name, value) for name, value in incoming.form if name != FORM_TOKEN],
        "is_form": is_form,
        "problem": "login.over" if is_form else "",
        "once": "",
    }
    return View(template="login.html", values=values, status=401)


def _read_flash(cookie: str, words: Words) -> Flash | None:
    """What the last action said. Others can set the cookie, so that only texts of the catalogue are shown, and a
    message that cannot be shown is none."""
    try:
        flash = msgspec.json.decode(base64.urlsafe_b64decode(cookie), type=Flash) if cookie else None
        if flash is None or not words.texts.has(f"flash.{flash.key}"):
            return None
        words.text(f"flash.{flash.key}", **flash.values)
    except (ValueError, KeyError, TypeError, RecursionError, msgspec.MsgspecError):
        return None
    return flash
