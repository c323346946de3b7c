"""Describes where a task's code is, so that another process can load it as this one did."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from msgspec import Struct

from rota.errors import BadOption, StoreError, UnknownTask
from rota.tasks.task import Registry, Task

if TYPE_CHECKING:
    from types import ModuleType

_loading = threading.Event()


class Source(Struct, frozen=True):
    """A task's module and its name in it; also a file, if the module belongs to no package."""

    module: str
    qualname: str
    file: str | None = None
    folder: str | None = None  # its app's
    store: str | None = None  # its app's, which the command line may have chosen; None: the code makes its own client
    is_store_shared: bool = True
    before: str | None = None  # a module that is imported first: it sets up the framework of the task's module


def source_of(task: Task[Any, Any]) -> Source:
    """Where a task comes from. A script is named by its stem, as targets are."""
    name = task.function.__module__
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    spec = getattr(module, "__spec__", None)
    if name == "__main__" and spec is not None:
        name = spec.name  # python -m package.module
    elif name == "__main__":
        name = Path(file).stem if file else name
    is_lone = "." not in name and file is not None and not hasattr(module, "__path__")
    app: Any = task.sender
    store = app.open()  # a worker has it open already
    path = getattr(store, "path", None)
    return Source(
        module=name,
        qualname=task.function.__qualname__,
        file=str(Path(file).absolute()) if is_lone and file else None,
        folder=str(app.store.folder),
        store=app.store.url if path is None else f"sqlite:///{quote(str(path))}",
        is_store_shared=store.features.is_shared,
        before=app.child_module,
    )


def find_task(source: Source, name: str) -> Task[Any, Any]:
    """Load a task's module and find the task: by its registered name in an app there, else by its function's name."""
    _loading.set()
    try:
        if source.before is not None:
            importlib.import_module(source.before)
        module = _load(source)
    finally:
        _loading.clear()
    task = task_in(module, name, source.qualname)
    if task is None:
        place = source.file or source.module
        raise UnknownTask(
            f"{place} was loaded in a process of its own, and no app in it has a task named '{name}'; "
            "declare the task at the module's top level, whatever the process that imports it"
        )
    _place(task.sender, source)
    return task


def task_in(module: ModuleType, name: str, qualname: str) -> Task[Any, Any] | None:
    """The task that a process finds in a module: by its name in an app there, else by its function's name."""
    return _in_apps(module, name) or _at(module, qualname)


def refuse_while_loading() -> None:
    """Keep a script that starts its worker unguarded from starting one in each child."""
    if _loading.is_set():
        raise BadOption(
            "a worker was started while a child process imported this module; guard that with "
            "`if __name__ == '__main__':`"
        )


def _load(source: Source) -> ModuleType:
    loaded = sys.modules.get(source.module)
    if loaded is not None and source.module != "__main__":
        return loaded
    if source.module == "__main__":
        raise UnknownTask(f"{source.qualname} was typed into an interpreter; a process of its own needs a file to load")
    if source.file is None:
        return importlib.import_module(source.module)
    spec = importlib.util.spec_from_file_location(source.module, source.file)
    if spec is None or spec.loader is None:
        raise UnknownTask(f"{source.file} is no Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[source.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(source.module, None)
        raise
    return module


def _in_apps(module: ModuleType, name: str) -> Task[Any, Any] | None:
    for value in list(vars(module).values()):
        registry = value.__rota_tasks__ if type(value).__module__ == "rota.app" else None  # the app is above this layer
        if isinstance(registry, Registry) and (task := registry.find(name)) is not None:
            return task
    return None


def _at(module: ModuleType, qualname: str) -> Task[Any, Any] | None:
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, Task) else None


def _place(app: Any, source: Source) -> None:
    """Have what the task enqueues go to the worker's store, or be refused: never to another store by mistake."""
    if source.folder is not None:
        app.store.folder = Path(source.folder)
    if source.store is not None:
        app.store.use(source.store)
    if not source.is_store_shared:
        app.store.find = _refuse_store


def _refuse_store() -> NoReturn:
    raise StoreError(
        "the worker's store lives in its own process, and this task runs in another; give the app a store that "
        "processes share, such as sqlite:///jobs.db"
    )
