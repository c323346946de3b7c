"""Writes the parts of docs/architecture.md that are made from the project: the layers and the table of numbers."""

from __future__ import annotations

import ast
import tomllib

from tools.numbers import ROOT, SOURCE, Figure, figures

__all__ = ["Figure", "figures", "layers", "numbers", "stale_figures", "write", "written"]

PAGE = ROOT / "docs" / "architecture.md"
CLOSE = 0.1  # a figure on the page may differ by so much: it need not be written again with every commit


def layers() -> str:
    """The layers of pyproject.toml, top first, each with the first line of its package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    rows = ["| layer | what it does |", "|---|---|"]
    for layer in contract["layers"]:
        names = [name.strip() for name in layer.split("|")]
        rows.append(f"| {', '.join(f'`{name}`' for name in names)} | {' '.join(first_line(name) for name in names)} |")
    return "\n".join(rows)


def first_line(name: str) -> str:
    """The first line of a module's docstring."""
    path = SOURCE / name / "__init__.py"
    text = (path if path.exists() else SOURCE / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def numbers() -> str:
    rows = ["| figure | today | goal |", "|---|---|---|"]
    for figure in figures():
        goal = "" if figure.goal is None else f"{figure.goal:,}"
        rows.append(f"| {figure.name} | {figure.value:,} | {goal} |")
    return "\n".join(rows)


PARTS = {"layers": layers, "numbers": numbers}


def replaced(page: str, part: str, text: str) -> str:
    """The page with one part written between its two marks."""
    before, _, rest = page.partition(f"<!-- {part} -->\n")
    _, _, after = rest.partition(f"<!-- end of {part} -->")
    return f"{before}<!-- {part} -->\n{text}\n<!-- end of {part} -->{after}"


def written(part: str) -> str:
    """What the page has between the marks of a part."""
    rest = PAGE.read_text(encoding="utf-8").partition(f"<!-- {part} -->\n")[2]
    return rest.partition(f"\n<!-- end of {part} -->")[0]


def write() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for part, make in PARTS.items():
        page = replaced(page, part, make())
    PAGE.write_text(page, encoding="utf-8")


def stale_figures() -> list[str]:
    """The figures of the page that are missing, or differ from what is measured by more than a tenth."""
    rows = [line.split("|") for line in written("numbers").splitlines()[2:]]
    shown = {row[1].strip(): int(row[2].strip().replace(",", "")) for row in rows}
    return [
        figure.name
        for figure in figures()
        if figure.name not in shown or abs(shown[figure.name] - figure.value) > CLOSE * max(figure.value, 1)
    ]


if __name__ == "__main__":
    write()
