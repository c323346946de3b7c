"""Huey by its consumer, on Redis (blocking pop) or on a SQLite file (synchronous=FULL); it keeps results."""

from asrun_work import URL, main, work
from huey import RedisHuey, SqliteHuey

if URL.startswith("redis"):
    huey = RedisHuey("bench", url=URL, blocking=True)
else:
    huey = SqliteHuey("bench", filename="huey.db", journal_mode="wal", cache_mb=16, fsync=True)
task = huey.task(name="work")(work)


def enqueue_many(count: int) -> None:
    """It has no other way than one by one; on SQLite the disk is not waited for here."""
    if not URL.startswith("redis"):
        huey.storage.conn.execute("PRAGMA synchronous = OFF")
    for number in range(count):
        task(number, "word")


if __name__ == "__main__":
    main(task, enqueue_many)
