"""Calls a user's functions, plain or async, with as many arguments as they take; and gives documents their type."""

from __future__ import annotations

import asyncio
import inspect
from contextvars import ContextVar
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rota.engine.executors.loop import LoopThread


class Handler:
    """A user's function. It gets as many of the offered arguments as it takes, from the first on."""

    def __init__(self, function: Callable[..., Any], what: str, offered: int) -> None:
        if not callable(function):
            raise BadOption(f"{what}={function!r} must be a function")
        self.function = function
        self.is_async = _is_async(function)
        self._taken = _taken(function, what, offered)

    def call(self, *offered: Any) -> Any:
        """The function's return value; a coroutine, if it is async."""
        return self.function(*offered[: self._taken])


calling: ContextVar[object] = ContextVar("rota_document_queue", default=None)  # the queue whose handler runs here


def call_here(handler: Handler, loop: LoopThread, queue: object, *offered: Any) -> None:
    """Call a function and wait for its end. An awaitable that it returns is awaited on the loop's thread."""
    token = calling.set(queue)  # the loop's thread gets a copy of this context
    try:
        found = handler.call(*offered)
        if inspect.isawaitable(found):
            asyncio.run_coroutine_threadsafe(_awaited(found), loop.running_loop()).result()
    finally:
        calling.reset(token)


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _taken(function: Callable[..., Any], what: str, offered: int) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function of an extension without a signature
        return 1
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return offered
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    needed = sum(one.default is one.empty for one in positional)
    named = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if needed > offered or named:
        raise BadOption(f"{what} is called with up to {offered} positional arguments, and this function needs others")
    return min(len(positional), offered)


def typed(document: Any, wanted: Any) -> Any:
    """A document as a dataclass, a msgspec Struct, a TypedDict or a pydantic model; as it is if no type is wanted.

    A field `id` of the type takes the document's `_id`, if the document has no `id` of its own.
    """
    if wanted is None:
        return document
    if isinstance(document, dict) and "_id" in document and "id" not in document:
        document = {**document, "id": document["_id"]}
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(document)
    return msgspec.convert(document, wanted, strict=False, dec_hook=_own_type, builtin_types=(datetime, date, bytes))


def _own_type(wanted: type, value: Any) -> Any:
    """A value of a type that msgspec does not know, such as ObjectId, stays as the driver gave it."""
    if isinstance(value, wanted):
        return value
    raise TypeError(f"expected {wanted.__name__}, got {type(value).__name__}")


def check_type(wanted: Any) -> None:
    """Raise BadOption now, so that not every document fails."""
    if wanted is None or hasattr(wanted, "model_validate"):
        return
    try:
        msgspec.inspect.type_info(wanted)
    except TypeError as err:
        raise BadOption(f"type={wanted!r} cannot be made from a document: {err}") from err
