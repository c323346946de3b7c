"""The database: a pool of connections, calls with a deadline, transactions tried again, faults in our words."""

from __future__ import annotations

import logging
import os
import random
import select
import threading
import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolClosed

from rota.errors import StoreError, StoreUnavailable
from rota.failpoints import reach
from rota.store.postgres.address import describe, look_at_server
from rota.store.postgres.calls import Prepared
from rota.store.postgres.deadlines import Deadlines
from rota.store.postgres.faults import WORTH_ANOTHER_TRY, in_our_words, is_lost
from rota.store.postgres.marked import Marked
from rota.store.postgres.parking import Parking
from rota.store.postgres.transaction import Transaction
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.store.postgres.address import Address

log = logging.getLogger("rota.store.postgres")

PLACE = "SELECT current_database()::text, system_identifier::text FROM pg_control_system()"
Result = TypeVar("Result")
Connection = psycopg.Connection[Any]
TRIES = 5
SLOTS = 64  # rows that a queue's counters are spread over
# What is SET LOCAL ends with the transaction, so that it is safe behind a pooler. A process that is stopped in the
# middle of a transaction must not keep its locks from everybody else.
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = {idle}; "
    "SET LOCAL lock_timeout = {lock}"
)


class Database:
    """One database, by an address or by a pool that the caller has."""

    def __init__(
        self, address: Address | None, pool: ConnectionPool[Any] | None, namespace: str, timeout: float
    ) -> None:
        self.namespace = namespace
        self.timeout = timeout
        self.has_pooler = False
        self._address = address
        self._given = pool
        self._pool: ConnectionPool[Any] | None = None
        self._is_open = False
        self._pid = os.getpid()
        self._has_said_so = False
        self._place: tuple[Any, ...] | None = None
        self._begin()
        self._next_slot = count(random.randrange(SLOTS))  # noqa: S311 - spreads writers, guards nothing

    def _begin(self) -> None:
        """What belongs to the connections of one process."""
        self._lock = threading.Lock()
        self._deadlines = Deadlines()
        self._prepared = Prepared()
        self._parking = Parking()
        self._slots: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()
        self._marked: WeakKeyDictionary[Connection, Marked] = WeakKeyDictionary()

    def after_fork(self) -> None:
        """In a child: the pool is the parent's. One that was given cannot be opened again here, see _living_pool."""
        for inherited in (self._pool, self._parking, self._deadlines, self._slots, self._marked):
            forks.abandon(inherited)
        self._begin()
        self._pool = None
        if self._given is None:
            self._pid = os.getpid()

    @property
    def where(self) -> str:
        if self._address is not None:
            return self._address.describe()
        with_pool = self._given
        info = with_pool.conninfo if with_pool is not None and isinstance(with_pool.conninfo, str) else ""
        return describe(dict(psycopg.conninfo.conninfo_to_dict(info))) if info else "postgresql database of the pool"

    def open(self) -> None:
        """Look at the server once; the pool follows when it is needed."""
        self._is_open = True
        self._pid = os.getpid()
        self._living_pool()

    def close(self) -> None:
        self._is_open = False
        self._drop(self._pool)
        self._deadlines.close()

    def connect(self, conninfo: str | None = None) -> Connection:
        """A connection outside the pool, in autocommit."""
        address = self._address
        if conninfo is None and address is None:
            raise StoreError("a store on a pool of yours has no address to connect to")
        with self._told():
            return psycopg.connect(conninfo or (address.conninfo if address else ""), **self._options())

    @contextmanager
    def lease(self, timeout: float | None = None) -> Iterator[Connection]:
        """A connection for one call or transaction, with a deadline on all of it."""
        seconds = timeout or self.timeout
        is_late = 0.0
        pool, connection = self._take()
        try:
            with (
                self._given_back(pool, connection),
                self._in_autocommit(connection),
                self._deadlines.within(connection, seconds) as call,
            ):
                try:
                    yield connection
                finally:
                    is_late = seconds if call.is_late else 0.0
        except psycopg.Error as err:
            if is_lost(err) and not isinstance(err, WORTH_ANOTHER_TRY):
                self._look_after(pool)
            raise in_our_words(err, self.where, is_late=is_late) from err

    def transact(self, verb: str, work: Callable[[Transaction], Result], *, timeout: float | None = None) -> Result:
        """Do the work in one transaction; tried again where others were in the way, from its beginning."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._transact(verb, work, timeout)
            except StoreError as err:
                if not isinstance(err.__cause__, WORTH_ANOTHER_TRY) or attempt == TRIES:
                    raise
                time.sleep(0.002 * attempt**2)  # let the other one get through
        raise AssertionError("unreachable")

    def _transact(self, verb: str, work: Callable[[Transaction], Result], timeout: float | None) -> Result:
        with self.lease(timeout) as connection:
            transaction = Transaction(connection, self.namespace, self._slot_of(connection))
            millis = int((timeout or self.timeout) * 1000)
            transaction.run(_BEGIN.format(idle=int(self.timeout * 1000), lock=millis))
            try:
                result = work(transaction)
                transaction.finish()
                if verb:
                    reach(f"{verb}.before_commit")
                transaction.run("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
        if verb:
            reach(f"{verb}.after_commit")
        return result

    def call(self, work: Callable[[Transaction], Result]) -> Result:
        """One statement that is a transaction by itself."""
        for attempt in range(1, TRIES + 1):
            try:
                with self.lease() as connection:
                    slot, marked = self._slot_of(connection), self._marked_of(connection)
                    return work(Transaction(connection, self.namespace, slot, self._prepared, marked))
            except StoreError as err:
                if not isinstance(err.__cause__, WORTH_ANOTHER_TRY[:2]) or attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def look(self, work: Callable[[Transaction], Result]) -> Result:
        """Several questions about one instant."""
        with self.lease() as connection:
            transaction = Transaction(connection, self.namespace)
            transaction.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                result = work(transaction)
                transaction.run("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
            return result

    def told(self, work: Callable[[], Result]) -> Result:
        """Work on a connection of the caller's, its faults in our words."""
        with self._told():
            return work()

    def place(self) -> tuple[Any, ...]:
        """Which database of which cluster this is."""
        if self._place is None:
            self._place = self.call(lambda tx: tx.rows(PLACE))[0]
        return self._place

    def line(self, conninfo: str | None) -> Connection | None:
        """A connection that hears notifications: at an address of its own, or where no pooler stands between."""
        if conninfo is None and self.has_pooler:
            if not self._has_said_so:
                self._has_said_so = True
                log.warning(
                    "%s is behind a pooler, where LISTEN does not work: workers look for jobs every two seconds. "
                    "Name the server itself for that: ?listen=postgresql://… in the URL, or listen_url=",
                    self.where,
                )
            return None
        if conninfo is None and self._address is None:
            return self._beside_pool()
        return self.connect(conninfo)

    def twin(self) -> Database:
        """Another handle on the same place, not open."""
        return Database(self._address, self._given, self.namespace, self.timeout)

    def visit(self, work: Callable[[Transaction], Result]) -> Result:
        """One look at the place through a handle of its own, whether this one is open or not."""
        twin = self.twin()
        twin.open()
        try:
            return twin.call(work)
        finally:
            twin.close()

    # What these are made of.

    def _beside_pool(self) -> Connection | None:
        """A connection as the caller's pool makes them, but outside it."""
        pool = self._given
        if pool is None or not isinstance(pool.conninfo, str):
            return None
        given = pool.kwargs if isinstance(pool.kwargs, dict) else {}
        return psycopg.connect(pool.conninfo, **{**given, **self._options()})

    def _take(self) -> tuple[ConnectionPool[Any], Connection]:
        """A connection that was up a moment ago, and its pool.

        Where a server went away and came back, its old connections are found dead before anything is sent on them,
        and a fresh pool is asked instead. That is tried once: after a statement was sent, nobody knows what it did.
        """
        pool = self._living_pool()
        try:
            connection = self._parking.take(pool, self.timeout)
            if is_up(connection):
                return pool, connection
            pool.putconn(connection)
            self._look_after(pool)
        except PoolClosed:
            pass  # somebody else has just found it dead
        except psycopg.Error as err:
            raise in_our_words(err, self.where) from err
        pool = self._living_pool()
        with self._told():
            return pool, self._parking.take(pool, self.timeout)

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
        """A fresh pool, once the server answers: its own tries to reconnect would come later and later."""
        if self._given is not None:
            return self._use_given(self._given)
        with self.connect() as connection, self._told():
            self.has_pooler = look_at_server(connection, self.where)
        self._prepared.is_allowed = not self.has_pooler
        address = self._address
        if address is None:
            raise StoreError("this store has neither an address nor a pool")
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    address.conninfo,
                    kwargs=self._options(),
                    min_size=1,
                    max_size=address.pool,
                    open=True,
                    name=f"rota-{self.namespace}",
                    timeout=self.timeout,
                )
                self._parking.open_for(self._pool)
            return self._pool

    def _use_given(self, pool: ConnectionPool[Any]) -> ConnectionPool[Any]:
        with self._told(), pool.connection(timeout=self.timeout) as connection, self._in_autocommit(connection):
            self.has_pooler = look_at_server(connection, self.where)
        self._pool = pool
        return pool

    def _options(self) -> dict[str, Any]:
        """Safe behind a pooler in transaction mode: nothing is prepared, and nothing is set for a session."""
        said = psycopg.conninfo.conninfo_to_dict(self._address.conninfo) if self._address else {}
        link = {
            "connect_timeout": max(2, int(self.timeout)),
            "fallback_application_name": "rota",
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": int(self.timeout * 1000),
        }
        unsaid = {name: value for name, value in link.items() if name not in said}  # the URL has the last word
        return {"autocommit": True, "prepare_threshold": None, "row_factory": tuple_row, **unsaid}

    @contextmanager
    def _given_back(self, pool: ConnectionPool[Any], connection: Connection) -> Iterator[None]:
        try:
            yield
        finally:
            self._parking.give(pool, connection)

    @contextmanager
    def _in_autocommit(self, connection: Connection) -> Iterator[None]:
        """A pool of the caller's may have connections of another mind; they get it back."""
        if connection.autocommit:
            yield
            return
        connection.autocommit = True
        try:
            yield
        finally:
            if not connection.closed:
                connection.autocommit = False

    def _slot_of(self, connection: Connection) -> int:
        """Where a connection counts: in a row of its own, so that no call waits for the commit of another."""
        slot = self._slots.get(connection)
        if slot is None:
            slot = self._slots[connection] = next(self._next_slot) % SLOTS
        return slot

    def _marked_of(self, connection: Connection) -> Marked | None:
        """What a connection knows goes with it: a server that lost its last moments has to be told again.

        Behind a pooler, nobody sees that the server is another.
        """
        if self.has_pooler:
            return None
        marked = self._marked.get(connection)
        if marked is None:
            marked = self._marked[connection] = Marked()
        return marked

    def _look_after(self, pool: ConnectionPool[Any]) -> None:
        """After a fault every idle connection is suspect."""
        if pool is self._given:
            pool.check()
        else:
            self._drop(pool)

    def _drop(self, pool: ConnectionPool[Any] | None) -> None:
        with self._lock:
            if pool is None or self._pool is not pool:
                return
            self._pool = None
            self._parking.close(pool)
        if pool is not self._given:
            pool.close(timeout=0.5)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as err:
            raise in_our_words(err, self.where) from err


def is_up(connection: Connection) -> bool:
    """Whether a connection that nobody uses still has its server: one that went away has left an end to read."""
    if connection.closed:
        return False
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    try:
        while watch.poll(0):  # a word to everybody from the server, or the end
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return True


def _roll_back(connection: Connection) -> None:
    """The server has done it already where the line is gone."""
    if connection.closed or connection.broken:
        return
    try:
        connection.execute("ROLLBACK", prepare=False)
    except psycopg.Error:
        connection.close()
