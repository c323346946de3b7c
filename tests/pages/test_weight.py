"""What a first visit loads, packed: little, and from this server alone."""

from __future__ import annotations

import gzip

from pages.stage import Tab
from rota.web.pages.assets import assets

KILOBYTE = 1_024


def test_the_script_is_small():
    assert len(assets()["rota.js"].packed) <= 10 * KILOBYTE


def test_a_first_visit_loads_little_and_asks_no_other_site(browser, shop):
    asked: list[str] = []
    fixed = sum(len(assets()[name].packed) for name in ("rota.js", "rota.css", "icon.svg"))
    with Tab.open(browser, shop) as tab:
        tab.page.on("request", lambda request: asked.append(request.url))
        for path in ("/", "/jobs", f"/jobs/{shop.ids['failed']}"):
            page = tab.go(path).body()
            assert len(gzip.compress(page)) + fixed <= 60 * KILOBYTE, path
    assert asked
    assert [url for url in asked if not url.startswith(shop.url)] == []
