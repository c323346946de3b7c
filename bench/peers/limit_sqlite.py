"""The limit: what plain sqlite3 can do where nothing but the jobs' states is kept."""

import socket
import sqlite3
import threading
from contextlib import contextmanager, suppress

from trial import Contender, Ran, main

BATCH = 100  # claimed and finished in one transaction
BULK = 1_000  # inserted in one transaction, as Rota does
ADDRESS = "notify"

SCHEMA = """
CREATE TABLE IF NOT EXISTS job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS ready ON job (id) WHERE state = 0;
"""
INSERT = "INSERT INTO job (state, payload) VALUES (0, ?)"
FINISH = "UPDATE job SET state = 2 WHERE id = ?"
CLAIM = """
UPDATE job SET state = 1 WHERE id IN (SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT ?) RETURNING id, payload
"""


class Limit(Contender):
    """WAL, synchronous=FULL, a datagram socket to wake the worker."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        self.connection = connect()
        self.connection.executescript(SCHEMA)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.is_idle = threading.Event()

    def enqueue(self) -> None:
        with transaction(self.connection):
            self.connection.execute(INSERT, (b"[]",))
        with suppress(OSError):  # nobody listens
            self.listener.sendto(b"!", ADDRESS)

    def enqueue_many(self, count: int) -> None:
        for start in range(0, count, BULK):
            with transaction(self.connection):
                self.connection.executemany(INSERT, [(b"[]",)] * min(BULK, count - start))

    def work(self) -> None:
        self.listener.bind(ADDRESS)
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self) -> None:
        connection = connect()
        done: list[tuple[int]] = []
        while True:
            with transaction(connection):
                connection.executemany(FINISH, done)
                claimed = connection.execute(CLAIM, (BATCH,)).fetchall()
            done = []
            for number, _ in claimed:
                self.ran()
                done.append((number,))
            if not claimed:
                self.is_idle.set()
                self.listener.recv(1)

    def settle(self) -> None:
        self.is_idle.wait()

    def left(self) -> int:
        (number,) = self.connection.execute("SELECT count(*) FROM job WHERE state <> 2").fetchone()
        return int(number)

    def close(self) -> None:
        self.connection.close()


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect("limit.db", isolation_level=None, timeout=15)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16384"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection):
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")


if __name__ == "__main__":
    main(Limit)
