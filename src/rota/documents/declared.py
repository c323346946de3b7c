"""Makes sources and queues of what rota.yaml declares. Each mistake is one error with its file, line and key."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.documents.contract import Source
from rota.documents.fields import Fields
from rota.documents.queue import DocumentQueue
from rota.documents.sources.by_url import Wanted, open_source, shown_url
from rota.errors import BadOption, BadSettings, RotaError, UnknownTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.config.declared import FileDocuments
    from rota.documents.host import AppBeside, Host


def make_source(host: Host, said: FileDocuments) -> Source[Any]:
    """The source that a queue names, unopened if it is one with a URL."""
    if "://" not in said.source:
        return _made_by_code(said)
    try:
        fields = Fields(**said.fields)  # type: ignore[arg-type]  # names that were checked
    except RotaError as err:
        raise BadSettings(f"{said.at('fields')}: {err}") from err
    wanted = Wanted(
        url=said.source,
        collection=said.collection or "",
        fields=fields,
        condition=said.condition,
        kind=said.kind,
        folder=host.resolved.folder or Path.cwd(),
    )
    try:
        return open_source(wanted)
    except RotaError as err:
        raise BadSettings(f"{said.at('source')}: {err}") from err


def make_queue(host: Host, app: AppBeside, said: FileDocuments, source: Source[Any]) -> DocumentQueue:
    """The queue, with the app's events; it is not started."""
    return _queue(host, said, source, app=app)


def check_queue(host: Host, said: FileDocuments, source: Source[Any]) -> None:
    """Load the handler and check the options; BadSettings for what is wrong. Nothing is kept."""
    _queue(host, said, source)


def _queue(host: Host, said: FileDocuments, source: Source[Any], app: AppBeside | None = None) -> DocumentQueue:
    options = {"tz": host.settings.tz, **said.options}
    handler = find_handler(host, said)
    try:
        return DocumentQueue(source, handler, name=said.name, app=app, **options)
    except BadOption as err:
        key = next((key for key in said.options if f"{key}=" in str(err)), "handler")
        raise BadSettings(f"{said.at(key)}: {err}") from err


def find_handler(host: Host, said: FileDocuments) -> Callable[..., Any]:
    """The function: that of a task of the app, or one of a module."""
    registry = host.registry
    task = registry.find(said.handler)
    if task is None and ":" not in said.handler:
        try:
            task = registry.get(said.handler)
        except UnknownTask as err:
            raise BadSettings(f"{said.at('handler')}: {err}; or name a function as module:name") from err
    found: Any = _loaded(said, "handler", said.handler) if task is None else task
    function: Any = getattr(found, "function", found)  # of a task, what it runs
    if not callable(function):
        raise BadSettings(f"{said.at('handler')}: {said.handler} is {function!r}, which is not a function")
    chosen: Callable[..., Any] = function
    return chosen


def where(said: FileDocuments) -> str:
    """The address of its documents, without secrets."""
    return " ".join(filter(None, (shown_url(said.source), said.collection)))


def _made_by_code(said: FileDocuments) -> Source[Any]:
    found = _loaded(said, "source", said.source)
    if not isinstance(found, Source) and callable(found):
        try:
            found = found()
        except Exception as err:
            raise BadSettings(f"{said.at('source')}: {said.source}() raised {type(err).__name__}: {err}") from err
    if not isinstance(found, Source):
        raise BadSettings(
            f"{said.at('source')}: {said.source} is {found!r}; wanted a source of documents, such as "
            "MongoSource(collection), or a function that returns one"
        )
    return found


def _loaded(said: FileDocuments, key: str, text: str) -> Any:
    """The object that module:name names."""
    module, _, name = text.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as err:
        raise BadSettings(f"{said.at(key)}: {module} cannot be imported: {type(err).__name__}: {err}") from err
    for part in name.split("."):
        if not hasattr(found, part):
            raise BadSettings(f"{said.at(key)}: the module {module} has no {name!r}")
        found = getattr(found, part)
    return found
