"""Loads the app that a text names (jobs.py, package.module, module:app)."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import rota
from rota.app import App, internals
from rota.cli.output import warn
from rota.cli.words import first_line
from rota.config.words import shown_path
from rota.errors import BadTarget

if TYPE_CHECKING:
    from types import ModuleType

    from rota.config.loader import Resolved

_OWN_FOLDER = str(Path(rota.__file__).parent)


class Target(NamedTuple):
    """An app, and how to name it."""

    app: App
    name: str


class BrokenTarget(BadTarget):
    """A target whose own code raised while it was imported."""

    def __init__(self, message: str, trace: str) -> None:
        self.trace = trace  # as its author wants it: without Rota's frames
        super().__init__(message)


def load_target(text: str) -> Target:
    """Import what the text names and find the app in it."""
    place, _, attribute = text.partition(":")
    make_importable(Path.cwd())
    if not _is_file(place):
        return find_app(import_module(place), place, attribute)
    path = Path(place).parent.resolve() / Path(place).name
    target = find_app(_import_file(place, path), place, attribute)
    internals(target.app).store.folder = path.parent
    return target


def target_from(found: Resolved) -> str | None:
    """The target that the settings name; a file's path begins where they were said."""
    text, origin = found.settings.app, found.origins["app"]
    if text is None or origin.folder is None or not _is_file(text.partition(":")[0]):
        return text
    return os.path.relpath(origin.folder / text)


def check_tasks(target: Target, *, documents: bool = False) -> None:
    """Refuse an app that has nothing to run: a worker for it would never get a job. Queues of documents are work."""
    if documents and internals(target.app).has_documents:
        return
    if not len(internals(target.app).registry):
        raise BadTarget(
            f"{target.name} has no task, so there is nothing to run; decorate a function with @app.task, "
            "and import the modules that hold tasks where the app is made"
        )


def make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place


def _import_file(place: str, path: Path) -> ModuleType:
    """Import a file under its stem, so that its tasks have the names that its importers give them."""
    if not path.is_file():
        raise BadTarget(f"there is no file {place} in {Path.cwd()}{_neighbours(path)}")
    if path.suffix != ".py":
        raise BadTarget(f"{place} is not a Python file; a target is jobs.py, package.module or module:app")
    _check_stem(place, path)
    make_importable(path.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # noqa: S101 - a .py file always has a loader
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as err:
        sys.modules.pop(path.stem, None)
        raise _broken(place, err) from err
    return module


def import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise BadTarget(f"{name!r} names no module; a target is jobs.py, package.module or module:app")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as err:
        if err.name is None or not f"{name}.".startswith(f"{err.name}."):
            raise _broken(name, err) from err
        raise BadTarget(
            f"there is no module {err.name!r} (looked in {Path.cwd()} and the installed packages)"
            f"{_neighbours(Path(f'{name}.py'))}"
        ) from err
    except (Exception, SystemExit) as err:
        raise _broken(name, err) from err


def find_app(module: ModuleType, place: str, attribute: str) -> Target:
    if attribute:
        return Target(_named_app(module, place, attribute), f"{place}:{attribute}")
    apps = {id(value): name for name, value in reversed(vars(module).items()) if isinstance(value, App)}
    if not apps:
        raise BadTarget(f"{place} has no App; add `app = App()` at its top level, or name another target")
    if len(apps) > 1:
        names = sorted(apps.values())
        choices = " or ".join(f"{place}:{name}" for name in names)
        raise BadTarget(f"{place} has {len(names)} Apps, {', '.join(names)}; say which: {choices}")
    name = next(iter(apps.values()))
    return Target(getattr(module, name), f"{place}:{name}")


def _named_app(module: ModuleType, place: str, attribute: str) -> App:
    found = getattr(module, attribute, None)
    if isinstance(found, App):
        return found
    known = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    instead = f"it has {', '.join(known)}" if known else "it has no App at all"
    what = f"has nothing called {attribute!r}" if found is None else f"has {attribute!r}, but that is no App"
    raise BadTarget(f"{place} {what}; {instead}")


def _check_stem(place: str, path: Path) -> None:
    """Refuse a name that hides a module which Python or Rota needs; point at the package that a file is part of."""
    loaded = sys.modules.get(path.stem)
    is_other = loaded is not None and getattr(loaded, "__file__", None) != str(path)
    if path.stem in sys.stdlib_module_names or is_other:
        raise BadTarget(f"{place} has the name of another module, {path.stem!r}, and would hide it; rename the file")
    if (path.parent / "__init__.py").exists():
        name = f"{path.parent.name}.{path.stem}"
        warn(
            f"{place} is part of the package {path.parent.name!r}, but is loaded as {path.stem!r}. A program that "
            f"imports {name} gives its tasks other names. From {path.parent.parent}, {name} is the target to use"
        )


def _neighbours(path: Path) -> str:
    """Hints about targets with similar names."""
    here = [file.name for file in sorted(path.parent.glob("*.py"))] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, here, n=1)
    return f"; did you mean {close[0]}?" if close else "; go to the project's folder, or check the name"


def _broken(place: str, err: BaseException) -> BrokenTarget:
    if isinstance(err, SystemExit):
        return BrokenTarget(f"{place} ended the program while it was imported; guard that with __main__", trace_of(err))
    what = f"{line_of(err)}{first_line(f'{type(err).__name__}: {err}')}"
    return BrokenTarget(
        f"{place} cannot be imported ({what}); the traceback above shows the line to mend", trace_of(err)
    )


def line_of(err: BaseException) -> str:
    """The place in the target's own code where it was raised, as in `jobs.py:3: `; a SyntaxError names its own."""
    if isinstance(err, SyntaxError):
        return ""
    theirs = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(err.__traceback__)]
    kept = [(file, line) for file, line in theirs if not file.startswith((_OWN_FOLDER, "<"))]
    return f"{shown_path(Path(kept[-1][0]))}:{kept[-1][1]}: " if kept else ""


def trace_of(err: BaseException) -> str:
    """The traceback of the target's own code."""
    shown = traceback.TracebackException.from_exception(err)
    _keep_theirs(shown)
    return "".join(shown.format()).rstrip()


def _keep_theirs(shown: traceback.TracebackException) -> None:
    kept = [frame for frame in shown.stack if not frame.filename.startswith((_OWN_FOLDER, "<frozen importlib"))]
    shown.stack = traceback.StackSummary.from_list(kept)
    for other in (shown.__cause__, shown.__context__):
        if other is not None:
            _keep_theirs(other)
