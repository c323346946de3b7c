"""A browser, and apps with data behind a real server."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from every_store import _servers_end_with_the_session  # noqa: F401 - for its effect
from pages.sample import declare, fill
from pages.stage import TOKEN, Door, Tab
from rota import App
from rota.web.server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class RunningBrowser:
    """A browser with the event loop of its driver."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.loop = asyncio.get_running_loop()
        self.found = self._start()

    def living(self) -> Any:
        """The browser; another one if it has died, so that only the tests of one file fail."""
        if not self.found.is_connected():
            self.found = self._start()
        return self.found

    def _start(self) -> Any:
        return self._driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="session")
def running_browser():
    """One browser for all tests of this process, with the event loop of its driver: a start takes a second of CPU."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium here; `make setup-system` installs it")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing; `make setup` installs it")
    with playwright.sync_playwright() as driver:
        running = RunningBrowser(driver)
        asyncio._set_running_loop(None)
        yield running
        asyncio._set_running_loop(running.loop)
        running.found.close()


@pytest.fixture(scope="module")
def browser(running_browser):
    """The browser, for the tests of a file. Between its calls, this thread counts as one that runs the driver's event
    loop. After the file it does not, so that tests elsewhere can run a loop of their own."""
    asyncio._set_running_loop(running_browser.loop)
    yield running_browser.living()
    asyncio._set_running_loop(None)


@pytest.fixture(scope="module")
def shop() -> Iterator[Door]:
    """A shop with data, served; tests of one module share it, and change no more of it than they look at."""
    app = App("memory://", name="shop", version="2.4")
    declare(app)
    ids = fill(app)
    server = WebServer(app, port=0, token=TOKEN).start()
    yield Door(app, server, ids)
    server.stop()
    app.close()


@pytest.fixture(scope="module")
def open_tab(browser, shop) -> Iterator[Tab]:
    """One tab for the tests of a file: a browser takes a second of CPU to open another."""
    with Tab.open(browser, shop) as found:
        yield found


@pytest.fixture
def tab(open_tab) -> Iterator[Tab]:
    """A logged-in tab that fails its test where the page breaks the content security policy or throws."""
    yield from open_tab.watched()
