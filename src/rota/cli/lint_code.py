"""Finds all that Rota refuses in a file of code, not only the first: the rest runs without what it refuses.

An import ends at the first mistake. Lint runs the statements of the same file one by one, in a module of its own, and
goes on after each that Rota refuses. What needs a name that such a statement would have given is left out too.
"""

from __future__ import annotations
import __future__

import ast
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

import rota
from rota.cli.words import first_line
from rota.config.words import shown_path
from rota.errors import RotaError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN_FOLDER = Path(rota.__file__).parent


class Salvage(Struct):
    """The part of a file that could run, although the file cannot be imported."""

    module: ModuleType
    mistakes: list[str] = []  # each with its place
    missing: set[str] = set()  # names that have no value, because what gives it was refused


@contextmanager
def salvaged(err: BaseException | None) -> Iterator[Salvage | None]:
    """The part that could run of a file that Rota refused with this error, for the length of the block; None if the
    error is from elsewhere."""
    frame = _of_module(err) if isinstance(err, RotaError) else None
    if frame is None:
        yield None
        return
    file = Path(frame.f_code.co_filename)
    module = ModuleType(frame.f_globals["__name__"])
    module.__dict__.update(__file__=str(file), __package__=frame.f_globals.get("__package__"))
    found = Salvage(module)
    before = _beside(file)  # they may hold the app, with what the first try registered
    for name in before:
        del sys.modules[name]
    known = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        found.mistakes += _refused(file, found)
        yield found
    finally:
        for name in _beside(file):
            del sys.modules[name]
        sys.modules.pop(module.__name__, None)
        sys.modules.update(before if known is None else {**before, module.__name__: known})


def _beside(file: Path) -> dict[str, ModuleType]:
    """The loaded modules of the file's own project: those in its folder and below."""
    return {
        name: module
        for name, module in sys.modules.items()
        if (place := getattr(module, "__file__", None)) is not None
        and Path(place).is_relative_to(file.parent)
        and not Path(place).is_relative_to(_OWN_FOLDER)
        and "site-packages" not in place
        and name != "__main__"
    }


def _of_module(err: BaseException) -> FrameType | None:
    """The last frame that runs a module's own statements."""
    frames = [frame for frame, _ in traceback.walk_tb(err.__traceback__) if frame.f_code.co_name == "<module>"]
    return frames[-1] if frames else None


def _refused(file: Path, found: Salvage) -> Iterator[str]:
    tree = ast.parse(file.read_bytes(), str(file))
    flags = __future__.annotations.compiler_flag if _has_future_annotations(tree) else 0
    for statement in tree.body:
        code = compile(ast.Module([statement], []), str(file), "exec", flags=flags, dont_inherit=True)
        try:
            exec(code, found.module.__dict__)  # noqa: S102 - the user's own code, which lint imports anyway
        except RotaError as err:
            found.missing |= _names_of(statement)
            yield _told(err, file)
        except NameError as err:
            if err.name not in found.missing:
                yield f"{_told(err, file)}; the rest of the file was not run"
                return
            found.missing |= _names_of(statement)
        except BaseException as err:  # noqa: BLE001 - another kind of mistake: the file cannot be run beyond it
            yield f"{_told(err, file)}; the rest of the file was not run"
            return


def _told(err: BaseException, file: Path) -> str:
    return f"{shown_path(file)}:{_line_of(err, file)}: {first_line(f'{type(err).__name__}: {err}')}"


def _has_future_annotations(tree: ast.Module) -> bool:
    return any(
        isinstance(statement, ast.ImportFrom)
        and statement.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.names)
        for statement in tree.body
    )


def _names_of(statement: ast.stmt) -> set[str]:
    """The names that the statement would have defined."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {node.id for node in stored}


def _line_of(err: BaseException, file: Path) -> int:
    lines = [line for frame, line in traceback.walk_tb(err.__traceback__) if frame.f_code.co_filename == str(file)]
    return lines[-1] if lines else 0
