"""The database: a pool of connections, calls with a deadline, transactions with retries, faults translated."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from rota.errors import StoreError, StoreSealed, StoreUnavailable
from rota.failpoints import reach
from rota.store.contract import Seal
from rota.store.postgres.address import Address, describe, look_at_server
from rota.store.postgres.clock import ServerClock
from rota.store.postgres.deadlines import Deadlines
from rota.store.postgres.fast.calls import PreparedCalls
from rota.store.postgres.faults import LOST_STATEMENT, RETRYABLE, RETRYABLE_CALL, is_lost, translate
from rota.store.postgres.notify import Notifier
from rota.store.postgres.transaction import Transaction
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.store.postgres.codec import Row

log = logging.getLogger("rota.store.postgres")

IDENTITY = "SELECT current_database()::text, system_identifier::text FROM pg_control_system()"
Result = TypeVar("Result")
Connection = psycopg.Connection[Any]
TRIES = 5
COUNTER_SLOTS = 64  # rows that a queue's counters are spread over
# What is SET LOCAL ends with the transaction, which makes it safe behind a pooler. A process that is stopped in the
# middle of a transaction must not keep its locks.
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = {idle}; "
    "SET LOCAL lock_timeout = {lock}"
)


class Database:
    """One namespace of one database, reached by an address or by a pool of the caller's."""

    def __init__(
        self, server: Address | ConnectionPool[Any], namespace: str, timeout: float, listen: str | None = None
    ) -> None:
        self.namespace = namespace
        self.timeout = timeout
        self.has_pooler = False
        self.clock = ServerClock()
        self.notifier = Notifier(namespace, self._listening_connection)
        self._server = server
        self._listen = listen
        self._pool: ConnectionPool[Any] | None = None
        self._is_open = False
        self._calls: PreparedCalls | None = None  # behind a pooler, and on a pool of the caller's, there are none
        self._pid = os.getpid()
        self._has_warned = False
        self._begin()

    def _begin(self) -> None:
        """What belongs to the connections of one process."""
        self._lock = threading.Lock()
        self._deadlines = Deadlines()

    def after_fork(self) -> None:
        """In a child: the pool is the parent's. One that was given cannot be opened again here, see _living_pool."""
        for inherited in (self._pool, self._deadlines):
            forks.abandon(inherited)
        self._begin()
        self._pool = None
        if isinstance(self._server, Address):
            self._pid = os.getpid()
        self.notifier.after_fork()
        self.clock.forget()

    @property
    def where(self) -> str:
        if isinstance(self._server, Address):
            return self._server.describe()
        info = self._server.conninfo if isinstance(self._server.conninfo, str) else ""
        return describe(dict(psycopg.conninfo.conninfo_to_dict(info))) if info else "postgresql database of the pool"

    def describe(self) -> str:
        return f"{self.where}, schema {self.namespace}"

    def open(self) -> None:
        """Check the server once; the pool follows when it is needed."""
        self._is_open = True
        self._pid = os.getpid()
        self._living_pool()

    def close(self) -> None:
        self.notifier.close()
        self._is_open = False
        self._drop(self._pool)
        self._deadlines.close()
        self.clock.forget()

    # Calls and transactions.

    def call(self, work: Callable[[Transaction], Result]) -> Result:
        """One statement that is a transaction by itself."""
        for attempt in range(1, TRIES + 1):
            try:
                with self.lease() as connection:
                    return work(self._transaction(connection, self._calls))
            except StoreError as err:
                if isinstance(err.__cause__, LOST_STATEMENT) and self._calls is not None:
                    self._calls = None
                elif not isinstance(err.__cause__, RETRYABLE_CALL) or attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """What one query finds."""
        return self.call(lambda tx: tx.rows(query, values))

    def transact(self, verb: str, work: Callable[[Transaction], Result], *, timeout: float | None = None) -> Result:
        """Do the work in one transaction. If another one was in the way, it starts again from its beginning."""
        begin = _BEGIN.format(idle=int(self.timeout * 1000), lock=int((timeout or self.timeout) * 1000))
        for attempt in range(1, TRIES + 1):
            try:
                with self.lease(timeout) as connection:
                    return _committed(verb, self._transaction(connection), begin, work)
            except StoreError as err:
                if not isinstance(err.__cause__, RETRYABLE) or attempt == TRIES:
                    raise
                time.sleep(0.002 * attempt**2)  # lets the other one finish
        raise AssertionError("unreachable")

    def write(
        self,
        verb: str,
        work: Callable[[Transaction, int], Result],
        now: int | None,
        *,
        is_allowed_when_sealed: bool = False,
    ) -> Result:
        """A transaction that begins by reading the server's clock and the seal, and notifies listeners."""

        def whole(tx: Transaction) -> Result:
            query = "SELECT coalesce(%s::bigint, {ns}.micros()), (SELECT value FROM {ns}.seal)"
            ((at, seal),) = tx.rows(query, (now,))
            if seal is not None and not is_allowed_when_sealed:
                raise self.refusal(seal)
            return work(tx, at)

        result = self.transact(verb, whole)
        self.notifier.notify("jobs")
        self.notifier.notify("schedules")
        return result

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Several queries about one instant."""
        with self.lease() as connection:
            begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            return _committed("read", self._transaction(connection), begin, work)

    def visit(self, work: Callable[[Transaction], Result]) -> Result:
        """One query through a handle of its own, whether this one is open or not."""
        handle = Database(self._server, self.namespace, self.timeout)
        handle.open()
        try:
            return handle.call(work)
        finally:
            handle.close()

    def now(self) -> int:
        """The server's clock."""
        at: int = self.call(lambda tx: tx.rows("SELECT {ns}.micros()"))[0][0]
        self.clock.set(at)
        return at

    def estimated_now(self) -> int:
        """The server's clock, without asking if it is known well enough."""
        at = self.clock.estimate()
        return self.now() if at is None else at

    def refusal(self, seal: str) -> StoreSealed:
        """The error of a sealed store."""
        return msgspec.json.decode(seal, type=Seal).refusal(self.describe())

    def check_seal(self, tx: Transaction) -> None:
        """Raise if the store is sealed. Sealing waits for the transactions that have read this."""
        row = tx.row("SELECT value FROM {ns}.seal")
        if row is not None:
            raise self.refusal(row[0])

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """Which database of which cluster this is."""
        return self.call(lambda tx: tx.rows(IDENTITY))[0]

    @contextmanager
    def lease(self, timeout: float | None = None) -> Iterator[Connection]:
        """A connection for one call or transaction, with a deadline on all of it."""
        seconds = timeout or self.timeout
        pool, connection = self._take()
        try:
            try:
                call = self._deadlines.begin(connection, seconds)
                has_autocommit = connection.autocommit  # a pool of the caller's may have it off, and gets it back so
                try:
                    if not has_autocommit:
                        connection.autocommit = True
                    yield connection
                finally:
                    self._deadlines.end(connection)
                    if not has_autocommit and not connection.closed:
                        connection.autocommit = False
            finally:
                pool.putconn(connection)
        except psycopg.Error as err:
            if is_lost(err) and not isinstance(err, RETRYABLE):
                self._replace(pool)
            raise translate(err, self.where, is_late=seconds if call.is_late else 0.0) from err

    @contextmanager
    def translating(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as err:
            raise translate(err, self.where) from err

    def _transaction(self, connection: Connection, calls: PreparedCalls | None = None) -> Transaction:
        """A connection counts in a row of its own, so that no call waits for the commit of another."""
        slot = connection.pgconn.backend_pid % COUNTER_SLOTS
        return Transaction(connection, self.namespace, counter_slot=slot, calls=calls)

    # The pool.

    def _take(self) -> tuple[ConnectionPool[Any], Connection]:
        """A connection that was just up, and its pool.

        If a server went away and came back, its old connections are found dead before anything is sent on them, and a
        new pool is used instead. That is tried once: after a statement was sent, its effect is unknown.
        """
        pool = self._living_pool()
        try:
            with self.translating(), suppress(PoolClosed):  # another thread has just found it dead
                connection = pool.getconn(timeout=self.timeout)
                if is_up(connection):
                    return pool, connection
                pool.putconn(connection)
                self._replace(pool)
        except StoreUnavailable as err:
            if isinstance(err.__cause__, PoolTimeout):
                self._drop_if_leaked(pool)
            raise
        pool = self._living_pool()
        with self.translating():
            return pool, pool.getconn(timeout=self.timeout)

    def _living_pool(self) -> ConnectionPool[Any]:
        if self._pid != os.getpid():
            raise StoreError(
                "the pool that this store was given was opened before a fork; give the child process a pool of its own"
            )
        if not self._is_open:
            raise StoreUnavailable(f"the store in {self.where} is closed")
        pool = self._pool
        return pool if pool is not None else self._make_pool()

    def _make_pool(self) -> ConnectionPool[Any]:
        """A new pool, once the server answers: the pool's own attempts to reconnect come later and later."""
        server = self._server
        if isinstance(server, ConnectionPool):
            with self.translating(), server.connection(timeout=self.timeout) as connection:
                self.has_pooler = look_at_server(connection, self.where)
            self._pool = server
            return server
        with self._connect(server.conninfo) as connection, self.translating():
            self.has_pooler = look_at_server(connection, self.where)
        with self._lock, self.translating():
            if self._pool is None:
                self._calls = None if self.has_pooler else PreparedCalls()
                pool = ConnectionPool(
                    server.conninfo,
                    kwargs=self._options(),
                    min_size=1,
                    max_size=server.pool,
                    open=True,
                    name=f"rota-{self.namespace}",
                    timeout=self.timeout,
                )
                # A request to an empty pool adds a second connection, and the pool uses its connections in turn: one
                # thread would alternate between two server processes, which makes each call a fifth slower.
                pool.wait(timeout=self.timeout)  # closes it on a timeout
                self._pool = pool
            return self._pool

    def _replace(self, pool: ConnectionPool[Any]) -> None:
        """After a fault, every idle connection is suspect."""
        if pool is self._server:
            pool.check()
        else:
            self._drop(pool)

    def _drop_if_leaked(self, pool: ConnectionPool[Any]) -> None:
        """After a timeout: if no calls have its connections, the next call makes a new pool. A signal handler that
        raises while its thread waits for a connection leaves the pool one less."""
        if pool is not self._server and self._deadlines.number < pool.max_size:
            self._drop(pool)

    def _drop(self, pool: ConnectionPool[Any] | None) -> None:
        with self._lock:
            if pool is None or self._pool is not pool:
                return
            self._pool = None
        if pool is not self._server:
            pool.close(timeout=0.5)

    # Connections outside the pool.

    def _listening_connection(self) -> Connection | None:
        """A connection that receives notifications; None behind a pooler without an address for listening."""
        if self._listen is not None:
            return self._connect(self._listen)
        if self.has_pooler:
            if not self._has_warned:
                self._has_warned = True
                log.warning(
                    "%s is behind a pooler, where LISTEN does not work: workers look for jobs every two seconds. "
                    "Name the server itself for that: ?listen=postgresql://… in the URL, or listen_url=",
                    self.where,
                )
            return None
        if isinstance(self._server, Address):
            return self._connect(self._server.conninfo)
        if not isinstance(self._server.conninfo, str):
            return None
        given = self._server.kwargs if isinstance(self._server.kwargs, dict) else {}
        return psycopg.connect(self._server.conninfo, **{**given, **self._options()})

    def _connect(self, conninfo: str) -> Connection:
        with self.translating():
            return psycopg.connect(conninfo, **self._options())

    def _options(self) -> dict[str, Any]:
        """Safe behind a pooler in transaction mode: nothing is prepared, and nothing is set for a session."""
        said = psycopg.conninfo.conninfo_to_dict(self._server.conninfo) if isinstance(self._server, Address) else {}
        defaults = {
            "connect_timeout": max(2, int(self.timeout)),
            "fallback_application_name": "rota",
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": int(self.timeout * 1000),
        }
        unsaid = {name: value for name, value in defaults.items() if name not in said}  # the URL has the last word
        return {"autocommit": True, "prepare_threshold": None, "row_factory": tuple_row, **unsaid}


def _committed(verb: str, transaction: Transaction, begin: str, work: Callable[[Transaction], Result]) -> Result:
    """Do the work between a BEGIN and a COMMIT; roll back if it fails."""
    transaction.run(begin)
    try:
        result = work(transaction)
        transaction.finish()
        reach(f"{verb}.before_commit")
        transaction.run("COMMIT")
    except BaseException:
        _roll_back(transaction.connection)
        raise
    reach(f"{verb}.after_commit")
    return result


def is_up(connection: Connection) -> bool:
    """Whether an idle connection still has its server: one that went away has left an end of file to read."""
    if connection.closed:
        return False
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    try:
        while watch.poll(0):  # a notice from the server, or the end
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return True


def _roll_back(connection: Connection) -> None:
    """If the connection is gone, the server has rolled back already."""
    if connection.closed or connection.broken:
        return
    try:
        connection.execute("ROLLBACK", prepare=False)
    except psycopg.Error:
        connection.close()
