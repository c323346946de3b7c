"""Turns the verbs of an app's part into coroutines: each call runs in a thread of the app's own."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import ThreadPoolExecutor

P = ParamSpec("P")
R = TypeVar("R")


class Shell:
    """Verbs of one of the app's parts, called in its threads."""

    def __init__(self, verbs: Any, threads: ThreadPoolExecutor) -> None:
        self._verbs = verbs
        self._threads = threads

    async def call(self, function: Callable[[], R]) -> R:
        """Call anything that blocks, in one of the app's threads, with the caller's context variables."""
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, function)


class Awaited(Generic[P, R]):
    """A method of an app's part as a coroutine, with the same parameters."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._name = method.__name__
        self.__wrapped__ = method  # for documentation and tests

    def __get__(self, shell: Shell, owner: type | None = None) -> Callable[P, Awaitable[R]]:
        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
            verb = getattr(shell._verbs, self._name)  # noqa: SLF001 - its own shell
            return shell.call(partial(verb, *args, **kwargs))

        return call
