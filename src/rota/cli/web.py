"""Runs `web`: serves the dashboard and the HTTP API; also beside `dev` and `demo`, if the extra is installed."""

from __future__ import annotations

import os
import secrets
import signal
from typing import TYPE_CHECKING, Any

import click

from rota.app import internals
from rota.cli import early
from rota.cli.endings import INTERRUPTED
from rota.cli.log_lines import LEVELS, set_up_logging
from rota.cli.options import app_on_store, app_option, store_option
from rota.cli.output import heading, say, warn
from rota.cli.stopping import Stopping
from rota.cli.store_wait import wait_option, when_reached
from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.web.server import WebServer

PORT = 8080
HOW = "pip install 'rota[web]'"

_HANDED_ON = "_ROTA_WEB"  # the port and the token, for the process that a reload starts: both stay valid

port_option = click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help=f"The port of the pages and the API; 0: any free one.  [default: {PORT}, or a free one if that is taken]",
)


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="The address to listen on; 0.0.0.0 is every address.  [default: 127.0.0.1]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    metavar="PORT",
    help=f"The port to listen on; 0: any free one.  [default: {PORT}]",
)
@click.option("--read-only", is_flag=True, help="Refuse every change, also from admins.")
@app_option
@store_option
@wait_option
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    metavar="LEVEL",
    help="debug, info, warning or error.  [setting: log.level; default: info]",
)
def web(
    host: str,
    port: int,
    target: str | None,
    store_url: str | None,
    wait_for: str | None,
    log_level: str | None,
    *,
    read_only: bool,
) -> None:
    """Serve the dashboard and the HTTP API."""
    early.heed()
    make_server = load_server()
    app = when_reached(lambda: app_on_store(target, store_url, "make"), wait_for, warn)
    stopping = Stopping()
    try:
        set_up_logging(log_level or app.settings.log.level or "info")
        server = make_server(app, host=host, port=port, read_only=read_only)
        stopping.listen()
        _greet(app, server.start())
        reason = stopping.news()
        server.stop()
    finally:
        app.close()
    click.get_current_context().exit(INTERRUPTED if reason == signal.SIGINT else 0)


def load_server() -> type[WebServer]:
    try:
        from rota.web.server import WebServer  # noqa: PLC0415 - it needs an extra
    except ImportError as err:
        raise BadOption(f"they need an extra; install it with {HOW}") from err
    return WebServer


class Beside:
    """Serves the HTTP API beside an app's services, on this machine only, with a token that ends with them."""

    def __init__(self, app: App, port: int | None) -> None:
        handed_port, _, handed_token = os.environ.pop(_HANDED_ON, "").partition(" ")
        self.token = handed_token or secrets.token_urlsafe(24)
        self._server: WebServer | None = None
        self._problem = ""
        self._own = f"the token {self.token}" if app.settings.web.token is None else "the token of the settings"
        try:
            make_server = load_server()
        except BadOption as err:
            self._problem = f"the dashboard and the HTTP API are not served: {err}"
            return
        self._server = self._make(make_server, app, port, int(handed_port or PORT)).start()

    def greeting(self) -> Iterator[str]:
        """The address, with a link that logs in. It is printed once: after a reload the first link still works."""
        if self._server is None:
            yield self._problem
            return
        yield f"{heading('dashboard')}: {self._server.login_link()}"
        yield "  the link logs in once, within 15 minutes; after that, log in with the token"
        yield f"{heading('HTTP')}: {self._server.url}/api/v1/jobs with {self._own}"

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def hand_on(self) -> None:
        """Give the process that a reload starts the same port and the same token."""
        if self._server is not None:
            os.environ[_HANDED_ON] = f"{self._server.port} {self.token}"

    def _make(self, make_server: type[WebServer], app: App, port: int | None, usual: int) -> WebServer:
        """The server on the port that is named; if none is, on the usual one, or on any if another program has that."""
        options: dict[str, Any] = {} if app.settings.web.token else {"token": self.token}
        if port:
            return make_server(app, port=port, **options)
        try:
            return make_server(app, port=usual if port is None or usual != PORT else 0, **options)
        except BadOption:
            return make_server(app, port=0, **options)


def _greet(app: App, server: WebServer) -> None:
    say(f"{heading('dashboard')}: {server.url} shows {app.open().describe()}; log in with a token")
    say(f"{heading('HTTP')}: {server.url}/api/v1/openapi.json lists what can be asked of it")
    if server.is_everywhere:
        say(f"it listens on every address of this machine ({server.host}), port {server.port}")
    secret = _first_token(app)
    if secret is not None:
        say("the first token, an admin's; it is shown this once, and `rota token` makes and revokes others:")
        say(f"  {secret}")
    elif not app.settings.web.token:
        say(_about_tokens(app))
    if not len(internals(app).registry):
        say("no tasks are known here, so no job can be enqueued by its task's name; --app names an app that has some")


def _about_tokens(app: App) -> str:
    """How to get a token, if this store has some: a secret is shown only when its token is made."""
    how = "make one with `rota token create --name NAME --role admin`"
    if all(token.role == "read" for token in app.tokens.list().items):
        return f"every token that exists can only read; to change something here, {how}"
    return f"if you have no token, {how}"


def _first_token(app: App) -> str | None:
    """A token to begin with, if there is none yet."""
    if app.settings.web.token or app.tokens.list(limit=1).items:
        return None
    return app.tokens.create("first", role="admin").secret
