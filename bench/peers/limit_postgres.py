"""The limit on PostgreSQL: one statement that finishes a batch and takes the next, COPY for many, LISTEN to wake up."""

import threading

import psycopg
from trial import Contender, Ran, main

BATCH = 100
SCHEMA = """
CREATE TABLE IF NOT EXISTS job (id bigserial, state smallint NOT NULL DEFAULT 0, payload bytea NOT NULL)
WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS ready ON job (id) WHERE state = 0;
CREATE INDEX IF NOT EXISTS ident ON job (id);
"""
STEP = """
WITH done AS (UPDATE job SET state = 2 WHERE id = ANY(%s))
UPDATE job SET state = 1 WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM job WHERE state = 0 ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)) RETURNING id, payload
"""


class Limit(Contender):
    """One table, batches of 100, synchronous commits."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.ran = ran
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("SELECT pg_advisory_lock(1)")
        self.connection.execute(SCHEMA)
        self.connection.execute("SELECT pg_advisory_unlock(1)")
        self.is_idle = threading.Event()

    def enqueue(self) -> None:
        with self.connection.transaction():
            self.connection.execute("INSERT INTO job (payload) VALUES (%s)", (b"[]",))
            self.connection.execute("NOTIFY jobs")

    def enqueue_many(self, count: int) -> None:
        for start in range(0, count, 1_000):
            with self.connection.cursor() as cursor, cursor.copy("COPY job (payload) FROM STDIN") as copy:
                for _ in range(min(1_000, count - start)):
                    copy.write_row((b"[]",))

    def work(self) -> None:
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self) -> None:
        connection = psycopg.connect(self.url, autocommit=True)
        connection.execute("LISTEN jobs")
        done: list[int] = []
        while True:
            claimed = connection.execute(STEP, (done, BATCH)).fetchall()
            done = [number for number, _ in claimed]
            for _ in claimed:
                self.ran()
            if not claimed:
                self.is_idle.set()
                for _ in connection.notifies(timeout=5, stop_after=1):
                    pass

    def settle(self) -> None:
        self.is_idle.wait()

    def left(self) -> int:
        (number,) = self.connection.execute("SELECT count(*) FROM job WHERE state <> 2").fetchone()
        return int(number)

    def close(self) -> None:
        self.connection.close()


if __name__ == "__main__":
    main(Limit)
