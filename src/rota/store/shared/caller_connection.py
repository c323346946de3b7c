"""Finds the driver's connection in what a caller hands in as `tx=`: a session of SQLAlchemy, a connection of Django.

Neither library is imported: an object of a library can exist only if the caller has imported it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from rota.errors import BadOption, RotaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

R = TypeVar("R")

LATER = "enqueue after your commit instead, for example in transaction.on_commit() or an after_commit event"
_WRAPPED = ("driver_connection", "dbapi_connection", "connection")  # of proxies and cursors, the innermost first
_DEEPEST = 6


class OnLoop:
    """An async connection with the loop that it belongs to: another thread calls its coroutines, and waits for them."""

    def __init__(self, connection: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = connection
        self._loop = loop

    def wait(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def is_async(transaction: object) -> bool:
    """Whether a transaction belongs to coroutines."""
    return isinstance(transaction, (*_alchemy_async(), *_async_drivers()))


class _Turns(NamedTuple):
    """Who may use a transaction now, among the coroutines of one loop."""

    loop: asyncio.AbstractEventLoop
    lock: asyncio.Lock


_turns: WeakKeyDictionary[Any, _Turns] = WeakKeyDictionary()


async def use_on_loop(transaction: object, work: Callable[[OnLoop], Awaitable[R]]) -> R:
    """Have a thread use the connection of an async transaction. Coroutines that share the transaction take turns: their
    statements would otherwise mix, and one of them could undo or release the savepoint of another."""
    loop = asyncio.get_running_loop()
    turns = _turns.get(transaction)
    if turns is None or turns.loop is not loop:
        turns = _turns[transaction] = _Turns(loop, asyncio.Lock())
    async with turns.lock:
        return await _to_its_end(work(await _on_loop(transaction)))


async def _on_loop(transaction: object) -> OnLoop:
    """The driver's connection of an async transaction, with a transaction begun by SQLAlchemy if that holds it."""
    loop = asyncio.get_running_loop()
    if isinstance(transaction, _async_drivers()):
        return OnLoop(transaction, loop)
    found: Any = transaction
    try:
        if not hasattr(found, "get_raw_connection"):
            found = await found.connection()  # a session's
        await found.exec_driver_sql("SELECT 1")  # begins its transaction, and raises if it can have none
        raw = await found.get_raw_connection()
    except Exception as err:
        raise unusable(transaction, err) from err
    return OnLoop(raw.driver_connection, loop)


async def _to_its_end(using: Awaitable[R]) -> R:
    """Wait for a thread that uses a connection. If the caller is cancelled, the thread still ends first."""
    task = asyncio.ensure_future(using)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])  # or the thread would go on to use the connection
        raise


def driver_connection(transaction: object, drivers: tuple[type, ...]) -> Any:
    """The connection of one of these drivers that this is, or that it wraps; None if it wraps none."""
    if is_async(transaction):
        raise BadOption(
            f"tx= is an async connection ({type(transaction).__name__}), which only a coroutine can use: "
            "write `await task.using(tx=…).aenqueue(…)`, or `await current_job.afinish_in(…)`"
        )
    try:
        return _innermost(_begun(transaction), drivers)
    except RotaError:
        raise
    except Exception as err:
        raise unusable(transaction, err) from err


def _begun(transaction: Any) -> Any:
    """SQLAlchemy and Django keep transactions of their own: begin them, or their commit would do nothing."""
    if isinstance(transaction, _alchemy()):
        found: Any = transaction
        if not hasattr(found, "exec_driver_sql"):
            found = found.connection()  # a session's
        found.exec_driver_sql("SELECT 1")  # begins its transaction, and raises if it can have none
        return found
    if isinstance(transaction, _django()):
        _check_atomic(transaction)
    return transaction


def _check_atomic(connection: Any) -> None:
    connection.ensure_connection()
    if not connection.in_atomic_block and connection.get_autocommit():
        raise BadOption(
            "tx= is a connection of Django in autocommit, so that nothing would bind the job to your writes; "
            "enqueue inside `with transaction.atomic():`"
        )
    if connection.needs_rollback:
        raise BadOption("tx= is a transaction of Django that has failed already: the block will be rolled back")


def _innermost(found: Any, drivers: tuple[type, ...]) -> Any:
    for _ in range(_DEEPEST):
        if isinstance(found, drivers):
            return found
        found = _unwrapped(found, drivers)
        if found is None:
            return None
    return None


def _unwrapped(found: Any, drivers: tuple[type, ...]) -> Any:
    for name in _WRAPPED:
        inner = getattr(found, name, None)
        if name == "connection" and callable(inner) and not isinstance(inner, drivers):
            inner = inner()
        if inner is not None and inner is not found:
            return inner
    return None


def unusable(transaction: object, err: Exception) -> BadOption:
    """What is said of a session or connection that its own library refuses to use."""
    first = (str(err).splitlines() or [""])[0]
    return BadOption(f"tx= is a {type(transaction).__name__} that cannot be used: {first}")


def not_begun(begin: str) -> BadOption:
    """What is said of a connection that has no transaction; `begin`: how to begin one."""
    return BadOption(
        "tx= is a connection in autocommit without a transaction, so that nothing would bind the job to your writes; "
        f"begin one: {begin}"
    )


def elsewhere(shown: str, kept: object, unit: str) -> BadOption:
    """What is said of a connection to another file or database than the store's."""
    return BadOption(
        f"tx= is a connection to {shown}, but the jobs are kept in {kept}: one transaction needs one {unit}"
    )


def not_taken(transaction: object, driver: str, more: str, other: str) -> BadOption:
    """What is said of another object than a connection of the store's driver; `more`: what else there is of it."""
    given = transaction.connection if isinstance(transaction, OnLoop) else transaction
    return BadOption(
        f"tx= takes a {driver} connection here, or SQLAlchemy's, SQLModel's or Django's over one{more}; "
        f"got {type(given).__name__}. For {other}, {LATER}"
    )


def _of(module: str, *names: str) -> tuple[type, ...]:
    """Classes of a library, if the caller has imported it."""
    loaded = sys.modules.get(module)
    return tuple(kind for name in names if isinstance(kind := getattr(loaded, name, None), type))


def _alchemy() -> tuple[type, ...]:
    return _of("sqlalchemy.orm", "Session", "scoped_session") + _of("sqlalchemy.engine", "Connection")


def _django() -> tuple[type, ...]:
    wrapper = _of("django.db.backends.base.base", "BaseDatabaseWrapper")
    return wrapper + _of("django.utils.connection", "ConnectionProxy")


def _alchemy_async() -> tuple[type, ...]:
    return _of("sqlalchemy.ext.asyncio", "AsyncSession", "AsyncConnection", "async_scoped_session")


def _async_drivers() -> tuple[type, ...]:
    return _of("psycopg", "AsyncConnection") + _of("aiosqlite", "Connection") + _of("asyncpg", "Connection")


@contextmanager
def within_savepoint(run: Callable[[str], object], is_open: Callable[[], bool]) -> Iterator[None]:
    """If the block fails, its writes are undone, and no others; the server may have ended the transaction itself."""
    run("SAVEPOINT rota_jobs")
    try:
        yield
    except BaseException:
        if is_open():
            run("ROLLBACK TO SAVEPOINT rota_jobs")
            run("RELEASE SAVEPOINT rota_jobs")
        raise
    run("RELEASE SAVEPOINT rota_jobs")
