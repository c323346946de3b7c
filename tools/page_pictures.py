"""Takes pictures of pages of the dashboard with sample data, wide and narrow, light and dark.

    python -m tools.page_pictures /tmp/pictures / /jobs "/jobs?q=state:failed"

{failed}, {succeeded} and the like in a path stand for the ids of the sample's jobs.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SIZES = ((1440, 900), (390, 844))
SCHEMES = ("light", "dark")


def main(folder: str, *paths: str) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    from pages.sample import sample_app  # noqa: PLC0415 - from the tests' folder
    from rota.web.server import WebServer  # noqa: PLC0415

    Path(folder).mkdir(parents=True, exist_ok=True)
    with sample_app() as (app, ids), sync_playwright() as driver:
        server = WebServer(app, port=0, token="a-token-of-the-pictures").start()  # noqa: S106 - of nobody
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in SCHEMES:
            for width, height in SIZES:
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme, timezone_id="Europe/Riga"
                )
                page = context.new_page()
                page.on("console", lambda message: print("console:", message.text))  # noqa: T201
                page.goto(server.login_link())
                page.wait_for_selector(".frame")
                for number, path in enumerate(paths):
                    _picture(page, server.url + path.format(**ids), f"{folder}/{number}-{scheme}-{width}.png", width)
                context.close()
        browser.close()
        server.stop()


def _picture(page: Any, url: str, file: str, width: int) -> None:
    page.goto(url)
    page.wait_for_timeout(300)
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        print(f"{url} scrolls sideways: {wide} of {width}")  # noqa: T201
    page.screenshot(path=file, full_page=True)
    print(file)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
