"""Checks and closes Django's connections around each attempt, as Django does around each request.

A connection that is broken, or older than CONN_MAX_AGE, is closed before and after an attempt. One that is kept is
tried before its first use in an attempt, whatever CONN_HEALTH_CHECKS says: a worker may be idle for hours. So a server
that dropped its connections costs the attempts that were running, and none after them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import connections

from rota.tasks.middleware import Middleware

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from rota.tasks.middleware import JobAttempt

_is_for_test: ContextVar[bool] = ContextVar("rota_is_for_test", default=False)


class ConnectionCare(Middleware):
    """The middleware that the app of a Django project begins with."""

    def run(self, job: JobAttempt, call_next: Callable[[JobAttempt], Any]) -> Any:
        """Around a plain function, in its own thread or process."""
        held = [one for one in connections.all(initialized_only=True) if one.in_atomic_block]  # by a test
        _close_old(held)
        try:
            return call_next(job)
        finally:
            _close_old(held)

    async def arun(self, job: JobAttempt, call_next: Callable[[JobAttempt], Awaitable[Any]]) -> Any:
        """Around a coroutine: its database calls have a thread of their own, which ends with the attempt."""
        if _is_for_test.get():
            return await _closing(call_next(job))
        async with ThreadSensitiveContext():
            return await _closing(call_next(job))


async def _closing(attempt: Awaitable[Any]) -> Any:
    """Await an attempt, and close what it has opened in the thread of its database calls."""
    try:
        return await attempt
    finally:
        await sync_to_async(_close_all, thread_sensitive=True)()


def run_for_test(begin: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine of a kit to its end. Its database calls run in this thread: that of the test, in its transaction,
    unless the test is a coroutine itself."""

    async def run() -> Any:
        _is_for_test.set(True)
        return await begin()

    return async_to_sync(run)()


def _close_old(held: list[Any]) -> None:
    """Close what is broken or too old, but for connections whose transaction is not the attempt's."""
    for connection in connections.all(initialized_only=True):
        if connection not in held:
            connection.close_if_unusable_or_obsolete()
            connection.health_check_enabled = True


def _close_all() -> None:
    """Close the connections of a thread that ends: no other thread can use them."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
