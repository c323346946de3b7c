"""Writes docs/reference, tables of docs/architecture.md, and the indexes of the docs: `make docs`.

With --check it writes nothing, and fails if a page of the reference or an index is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools import architecture, contents
from tools.command_page import command_page
from tools.error_page import error_page
from tools.event_page import event_page
from tools.feature_page import feature_page
from tools.python_page import python_page
from tools.route_page import route_page
from tools.settings_page import settings_page

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = Path(__file__).parents[1] / "docs" / "reference"
PAGES: dict[str, Callable[[], str | None]] = {  # None: there is nothing to say yet
    "cli.md": command_page,
    "python.md": python_page,
    "errors.md": error_page,
    "events.md": event_page,
    "features.md": feature_page,
    "settings.md": settings_page,
    "http.md": route_page,
}
NOTE = "<!-- Made from the code by `make docs`: change the code, not this page. -->"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which pages are stale")
    check = parser.parse_args().check
    old = stale()
    old_indexes = contents.stale()
    for name in old:
        sys.stdout.write(f"{'stale' if check else 'written'}: docs/reference/{name}\n")
        if not check:
            PLACE.mkdir(exist_ok=True)
            (PLACE / name).write_text(text_of(name), encoding="utf-8")
    for path in old_indexes:
        sys.stdout.write(f"{'stale' if check else 'written'}: {path.relative_to(contents.ROOT)}\n")
    if not check:
        architecture.write()
        contents.write()
    return 1 if check and (old or old_indexes) else 0


def stale() -> list[str]:
    """The pages that are not what the code says."""
    return [name for name in PAGES if text_of(name) != _written(name)]


def text_of(name: str) -> str:
    text = PAGES[name]()
    return f"{NOTE}\n\n{text.strip()}\n" if text else ""


def _written(name: str) -> str:
    path = PLACE / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
