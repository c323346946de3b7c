"""Measures the code: lines per package, the largest classes, import cycles. `docs/architecture.md` shows the table.

Lines are counted without comments, docstrings and blank lines. Imports inside functions and for type checkers count
as imports.
"""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rota"
CODE = (".py", ".sql", ".lua")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LAZY = {("rota.app", "rota.web.asgi")}  # app.asgi() loads the web package when it is called; the one exception


class Figure(NamedTuple):
    """A row of the table; a goal of None states no bound."""

    name: str
    value: int
    goal: int | None


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The definitions and imports of one file. Three figures read them, and reading them is what takes the time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, (*DOCUMENTED, ast.Import, ast.ImportFrom))]


@cache
def code_lines(path: Path) -> int:
    """Lines of one file that are code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("--"))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes_of(path):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def lines_of(folder: Path) -> int:
    return sum(code_lines(path) for path in folder.rglob("*") if path.suffix in CODE)


def modules() -> dict[str, Path]:
    """The modules of the package by their dotted names."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports() -> dict[str, set[str]]:
    """The modules that each module imports, however it does."""
    known = modules()
    return {name: {to for to in _imported(path, known) if (name, to) not in LAZY} for name, path in known.items()}


def _imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "rota":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def cycles() -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    graph = imports()
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for to in graph.get(name, set()) - {name}:
            if to not in index:
                visit(to)
            if to in stack:
                low[name] = min(low[name], low[to])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def public_methods() -> dict[str, int]:
    """How many public methods and properties each class has, without the tests and the facades of stores."""
    counts = {}
    for name, path in modules().items():
        if name.startswith("rota.testing"):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.endswith("Store"):
                own = {
                    item.name
                    for item in node.body
                    if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and not item.name.startswith("_")
                }
                counts[f"{name}.{node.name}"] = len(own)
    return counts


# Packages that came after the goals were set. Each has a row of its own, and the total that has a goal leaves them out.
LATER = ("web/pages", "documents", "django", "importers", "alerts")
STORE_GOALS = {"postgres": 3_200, "mongo": 3_200, "redis": 3_200}
LARGEST_CLASS = 25
WITHOUT_LATER = 34_000


def _lines_of_package(folder: Path) -> int:
    """The lines of a package, without the part of it that has a row of its own."""
    inside = [SOURCE / name for name in LATER if name.startswith(f"{folder.name}/")]
    return lines_of(folder) - sum(map(lines_of, inside))


def figures() -> list[Figure]:
    """The rows of the table."""
    packages = sorted(path for path in SOURCE.iterdir() if (path / "__init__.py").exists() and path.name != "store")
    later = [name for name in LATER if (SOURCE / name / "__init__.py").exists()]
    stores = sorted(path for path in (SOURCE / "store").iterdir() if (path / "__init__.py").exists())
    methods = public_methods()
    largest = max(methods, key=methods.__getitem__)
    left_out = [*later, "testing"]
    return [
        *(Figure(f"code lines of `{path.name}`", _lines_of_package(path), None) for path in packages),
        *(Figure(f"code lines of `{name}`", lines_of(SOURCE / name), None) for name in later if "/" in name),
        *(Figure(f"code lines of `store/{path.name}`", lines_of(path), STORE_GOALS.get(path.name)) for path in stores),
        Figure(
            f"code lines without {', '.join(f'`{name}`' for name in left_out)}",
            lines_of(SOURCE) - sum(lines_of(SOURCE / name) for name in left_out),
            WITHOUT_LATER,
        ),
        Figure("code lines without `testing`", lines_of(SOURCE) - lines_of(SOURCE / "testing"), None),
        Figure(
            f"public methods of the largest class (`{largest.rpartition('.')[2]}`)", methods[largest], LARGEST_CLASS
        ),
        Figure("import cycles", len(cycles()), 0),
    ]
