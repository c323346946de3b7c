"""The site: built from pages as GitHub shows them, strict about links, with a search of its own."""

from __future__ import annotations

import functools
import http.server
import importlib
import shutil
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = {
    "docs/README.md": "# Shop\n\nHow it works.\n\n## Guides\n\n- [Orders](orders.md)\n"
    "- [A sample](../sample/README.md)\n",
    "docs/orders.md": "# Orders\n\nSee [returns](#returns), [the code](../sample/orders.py) and [all](../sample).\n\n"
    "## Returns\n\nA giraffe sends parcels back.\n\n```md\n[not a link](gone.md)\n```\n",
    "docs/llms.txt": "- [Orders](orders.md)\n- [A sample](../sample/README.md)\n",
    "sample/README.md": "# A sample\n\nBack to [orders](../docs/orders.md#returns).\n",
    "sample/orders.py": "ORDERS = []\n",
}


@pytest.fixture
def site(monkeypatch, tmp_path):
    """The tool, for a small project in a folder of its own."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    tool, contents = importlib.import_module("tools.site"), importlib.import_module("tools.contents")
    for path, text in PAGES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    for module in (tool, contents):
        for name, path in vars(module).items():
            if isinstance(path, Path) and path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "tools"):
                monkeypatch.setattr(module, name, tmp_path / path.relative_to(ROOT))
    return tool


def test_a_page_links_to_pages_and_to_files_outside_docs(site, tmp_path):
    assert site.main() == 0
    built = tmp_path / "site"
    page = (built / "orders.html").read_text(encoding="utf-8")
    assert 'href="project/sample/orders.py.html"' in page
    assert 'href="project/sample/index.html"' in page
    assert "gone.md" in page  # code stays as it is
    sample = (built / "project" / "sample" / "index.html").read_text(encoding="utf-8")
    assert 'href="../../orders.html#returns"' in sample
    assert "ORDERS" in sample  # a folder's page shows its files
    assert "project/sample/README.md" in (built / "llms.txt").read_text(encoding="utf-8")
    assert (built / "project" / "sample" / "README.md").exists()


@pytest.mark.parametrize("link", ["gone.md", "orders.md#gone", "#gone", "../sample/gone.py"])
def test_a_link_that_leads_nowhere_fails_the_build(site, tmp_path, capsys, link):
    with (tmp_path / "docs" / "orders.md").open("a", encoding="utf-8") as page:
        page.write(f"\n[broken]({link})\n")
    assert site.main() == 1
    assert "orders.md" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_a_page_that_would_ask_another_server_fails_the_build(site, tmp_path, capsys):
    with (tmp_path / "docs" / "orders.md").open("a", encoding="utf-8") as page:
        page.write("\n![a badge](https://badges.example/rota.svg)\n")
    assert site.main() == 1
    assert "https://badges.example/rota.svg" in capsys.readouterr().err


def test_the_search_finds_a_word_and_asks_no_other_server(site, tmp_path):
    if CHROMIUM is None:
        pytest.skip("there is no chromium here; `make setup-system` installs it")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing; `make setup` installs it")
    assert site.main() == 0
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(tmp_path / "site"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    asked: set[str] = set()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.add(request.url))
        page.goto(f"{home}index.html")
        page.get_by_role("button", name="Search").first.click()
        page.get_by_role("combobox", name="Search").fill("giraffe")
        page.get_by_role("option", name="Returns").click()
        page.wait_for_url("**/orders.html**")
        browser.close()
    server.shutdown()
    server.server_close()
    assert [url for url in asked if not url.startswith((home, "blob:", "data:"))] == []


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...
