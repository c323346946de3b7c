"""The pictures of the docs: made here from the pages as they are.

`ROTA_PICTURES=1 make test args=tests/pages/test_pictures.py` writes them into docs/images. Otherwise they are made and
thrown away, and the ones in the docs must be of the same pages and sizes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pages.pictured import pictured_shop
from pages.stage import TOKEN, Door, Tab
from rota.web.server import WebServer

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PICTURES = {
    "dashboard-home": ("/", "light", 1280, 900),
    "dashboard-schedule": ("/schedules/invoices-sync", "light", 1280, 900),
    "dashboard-agenda": ("/agenda", "dark", 1280, 700),
    "dashboard-jobs": ("/jobs?q=state:failed", "light", 1280, 620),
    "dashboard-phone": ("/", "dark", 390, 844),
}
LARGEST = 200_000  # bytes of a picture


@pytest.fixture(scope="module")
def door():
    with pictured_shop() as app:
        server = WebServer(app, port=0, token=TOKEN).start()
        yield Door(app, server, {})
        server.stop()


def size_of(picture: bytes) -> tuple[int, int]:
    """As the head of a PNG says it."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_docs_is_made_from_the_page(browser, door, name):
    path, scheme, width, height = PICTURES[name]
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
    with Tab.open(browser, door, **options) as tab:
        assert tab.go(path).status == 200
        picture = tab.page.screenshot()
    file = IMAGES / f"{name}.png"
    if os.environ.get("ROTA_PICTURES"):
        file.write_bytes(picture)
    assert size_of(file.read_bytes()) == size_of(picture) == (width, height)
    assert len(file.read_bytes()) <= LARGEST


def test_the_docs_show_the_pictures():
    guide = (ROOT / "docs" / "guides" / "dashboard.md").read_text("utf-8")
    shown = set(re.findall(r"images/(dashboard-[a-z]+)\.png", guide))
    assert shown == set(PICTURES)
    assert "docs/images/dashboard-home.png" in (ROOT / "README.md").read_text("utf-8")
