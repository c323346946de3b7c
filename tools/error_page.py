"""The page about errors: the tree as errors.py draws it, and each class with its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota import errors
from tools.markdown import sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterator


def error_page() -> str:
    first, _, tree = (errors.__doc__ or "").partition("\n\n")
    return "\n\n".join(
        [
            "# Errors",
            first.replace("\n", " "),
            f"```text\n{tree.strip()}\n```",
            "A command that ends with one prints its message, and exits with its code.",
            table(["error", "exit code", "what it means"], _rows(errors.RotaError)),
        ]
    )


def _rows(kind: type[errors.RotaError]) -> Iterator[list[str]]:
    yield [f"`{kind.__name__}`", str(kind.exit_code), sentence(kind)]
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _rows(below)
