"""The pages in a real browser: they show what there is, fit a phone, serve everybody, and run no script of others."""

from __future__ import annotations

import pytest

from pages.examples import addresses
from pages.stage import Tab

PARTS = 3  # of all pages: on a busy machine, one test would take longer than a test may


@pytest.mark.slow_first
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_serves_everybody_in_both_themes_and_fits_a_phone(browser, shop, part):
    with Tab.open(browser, shop) as tab:
        for path in addresses(shop)[part::PARTS]:
            assert tab.go(path).status in {200, 404}, path
            assert tab.page.title().endswith("Rota")
            assert tab.faults() == [], path
            assert tab.errors == [], path


def test_the_login_page_serves_everybody_too(browser, shop):
    context = browser.new_context()
    try:
        tab = Tab(context.new_page(), shop)
        for path in ("/login", "/jobs", "/login?once=x"):
            tab.page.route("**/rota.*.js", lambda route: route.abort())  # it would post the form of the link
            tab.page.goto(f"{shop.url}{path}")
            assert tab.faults() == []
    finally:
        context.close()


def test_the_pages_are_whole_without_a_script(browser, shop):
    with Tab.open(browser, shop, java_script_enabled=False) as tab:
        tab.go("/jobs?q=state:failed")
        assert tab.shows("payments.charge(3, 384)")
        tab.page.check(f'input[value="{shop.ids["failed"]}"]')
        tab.page.click('button[value="delete"]')
        assert tab.shows("Delete 1 job?")
        tab.page.click("a:has-text('Leave them as they are')")
        assert tab.shows("payments.charge(3, 384)")
