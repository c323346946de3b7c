"""Builds the documentation as a site: `make site` writes it to site/.

The pages are the files that GitHub shows. A copy of docs/ is made, and in the copy a link that leaves docs/ (to an
example, to the changelog) leads to a page under project/ that shows that file or folder. Zensical builds the copy in
strict mode: a link or an anchor that leads nowhere fails the build.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools.contents import DOCS, LLMS, ROOT, entries

if TYPE_CHECKING:
    from collections.abc import Iterable

WORK = ROOT / ".site"  # the copy of the pages, and Zensical's cache
PAGES = WORK / "pages"
BUILT = WORK / "site"  # Zensical writes inside its own folder only
SITE = ROOT / "site"
SETTINGS = Path(__file__).with_name("site.toml")
STYLE = Path(__file__).with_name("site.css")
OUTSIDE = Path("project")  # where the copy has what lies outside docs/
FENCED = re.compile(r"^( *```.*?^ *```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
LOADING = re.compile(r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*>")
ELSEWHERE = re.compile(r"""(?:src|href|srcset)=["']?((?:https?:)?//[^"'\s>]+)""")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".sql": "sql"}
LONGEST = 20_000  # characters of a file that a page shows


def main() -> int:
    if broken := copy_pages():
        sys.stderr.write("".join(f"{link}: there is no such file\n" for link in broken))
        return 1
    write_settings()
    if failed := build():
        return failed
    if foreign := requests_elsewhere():
        sys.stderr.write(f"the site was not written: its pages would ask other servers: {', '.join(foreign)}\n")
        return 1
    finish()
    sys.stdout.write("the site is in site/: python -m http.server --directory site --bind 127.0.0.1\n")
    return 0


def copy_pages() -> list[str]:
    """Write what the site is built from, and return the links to files that do not exist.

    What has not changed is left alone, for Zensical's cache.
    """
    broken: list[str] = []
    wanted = {path.relative_to(DOCS): path.read_bytes() for path in DOCS.rglob("*") if path.is_file()}
    wanted[Path(STYLE.name)] = STYLE.read_bytes()
    waiting = [page for page in wanted if page.suffix == ".md"]
    while waiting:
        page = waiting.pop()
        text, outside, gone = with_links_of_the_site(wanted[page].decode("utf-8"), page)
        broken += gone
        wanted[page] = text.encode("utf-8")
        for target in outside - wanted.keys():
            wanted[target] = page_of(target).encode("utf-8")
            waiting.append(target)
    for path in [path for path in PAGES.rglob("*") if path.is_file() and path.relative_to(PAGES) not in wanted]:
        path.unlink()
    for path, content in wanted.items():
        _write(PAGES / path, content)
    return broken


def with_links_of_the_site(text: str, page: Path) -> tuple[str, set[Path], list[str]]:
    """The page's text as the site has it, the pages under project/ that it links to, and its broken links."""
    outside: set[Path] = set()
    broken: list[str] = []

    def mended(found: re.Match[str]) -> str:
        source = _in_repository(page)
        target = Path(os.path.normpath(source.parent / found[1]))
        if not (ROOT / target).exists():
            broken.append(f"{source}: {found[1]}")
            return found[1]
        copied = _in_site(target)
        if copied.parts[0] == OUTSIDE.name:
            outside.add(copied)
        return Path(os.path.relpath(copied, page.parent)).as_posix()

    parts = FENCED.split(text)
    parts[::2] = [LINK.sub(mended, part) for part in parts[::2]]
    return "".join(parts), outside, broken


def _in_repository(page: Path) -> Path:
    """Where the repository has a page of the copy."""
    if page.parts[0] != OUTSIDE.name:
        return Path("docs") / page
    shown = page.relative_to(OUTSIDE)
    return shown if (ROOT / shown).exists() or shown.name == "README.md" else shown.with_suffix("")


def _in_site(target: Path) -> Path:
    """Where the copy has a path of the repository. A folder is its README; another file is a page that shows it."""
    if (ROOT / target).is_dir():
        target /= "README.md"
    if target.parts[0] == "docs":
        return target.relative_to("docs")
    return OUTSIDE / (target if target.suffix == ".md" else f"{target}.md")


def page_of(page: Path) -> str:
    """The text of a page under project/: the README of a folder with the folder's files, or one file."""
    source = ROOT / _in_repository(page)
    if source.name == "README.md" and source.parent != ROOT:
        folder = source.parent
        files = sorted(path for path in folder.iterdir() if path.is_file() and path != source)
        text = source.read_text(encoding="utf-8") if source.exists() else f"# {folder.relative_to(ROOT)}\n"
        return "\n\n".join([text, *(f"## {path.name}\n\n{_shown(path)}" for path in files)])
    if source.suffix == ".md":
        return source.read_text(encoding="utf-8")
    return f"# {source.relative_to(ROOT)}\n\n{_shown(source)}\n"


def _shown(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if len(text) > LONGEST:
        return f"{len(text):,} characters: see `{path.relative_to(ROOT)}` in the repository."
    return f"````{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n````"


def write_settings() -> None:
    navigation = _toml([{"Rota": "README.md"}, *_sections(_listed(), depth=0)])
    text = SETTINGS.read_text(encoding="utf-8").replace("nav = []", f"nav = {navigation}")
    folders = f'docs_dir = "{PAGES.name}"\nsite_dir = "{BUILT.name}"\n'
    _write(WORK / "zensical.toml", text.replace("[project]\n", f"[project]\n{folders}", 1).encode("utf-8"))


def _listed() -> list[tuple[tuple[str, ...], str, str]]:
    return [(entry.sections, entry.title, _in_site(_from_docs(entry.path)).as_posix()) for entry in entries()]


def _from_docs(path: str) -> Path:
    return Path(os.path.normpath(Path("docs") / path))


def _sections(listed: list[tuple[tuple[str, ...], str, str]], depth: int) -> list[dict[str, object]]:
    """The navigation below one heading: its pages, and its sections in the order in which they first occur."""
    found: dict[str, object] = {}
    for sections, title, path in listed:
        if len(sections) == depth:
            found[title] = path
        elif sections[depth] not in found:
            inside = [one for one in listed if one[0][: depth + 1] == sections[: depth + 1]]
            found[sections[depth]] = _sections(inside, depth + 1)
    return [{title: value} for title, value in found.items()]


def _toml(value: object) -> str:
    """Lists, tables and texts as one line of TOML."""
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def build() -> int:
    """Run Zensical; its words are shown only if it fails."""
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--strict", "--config-file", str(WORK / "zensical.toml")]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=WORK, check=False)  # noqa: S603 - nothing in it is a user's
    if ran.returncode:
        problems = COLOUR.sub("", ran.stdout + ran.stderr).partition("Traceback (most recent call last)")[0]
        sys.stderr.write(f"{problems}\nthe site was not built: the paths above are those in docs/\n")
    return ran.returncode


def requests_elsewhere() -> list[str]:
    """What the built pages would load from other servers."""
    pages = "".join(path.read_text(encoding="utf-8") for path in BUILT.rglob("*.html"))
    return sorted({found[1] for tag in LOADING.findall(pages) for found in ELSEWHERE.finditer(tag)})


def finish() -> None:
    """Put the site in its place, with the Markdown pages that llms.txt names."""
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(BUILT, SITE)
    for path in _markdown():
        _write(SITE / path.relative_to(PAGES), path.read_bytes())
    text, *_ = with_links_of_the_site(LLMS.read_text(encoding="utf-8"), Path(LLMS.name))
    _write(SITE / LLMS.name, text.encode("utf-8"))


def _markdown() -> Iterable[Path]:
    return PAGES.rglob("*.md")


def _write(path: Path, content: bytes) -> None:
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
