"""The four stores, each private and new, as long as a block lasts."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.environments import FILES, scratch

# A server's package is imported when its turn has come.


@contextmanager
def on_sqlite() -> Iterator[str]:
    with scratch() as folder:
        yield f"sqlite:///{Path(folder) / 'rota.db'}"


@contextmanager
def on_redis() -> Iterator[str]:
    from rota.testing.servers.redis import RedisServer  # noqa: PLC0415

    FILES.mkdir(exist_ok=True)
    with RedisServer(FILES) as server:
        yield server.url()


@contextmanager
def on_postgres() -> Iterator[str]:
    from rota.testing.servers.postgres import PostgresServer  # noqa: PLC0415

    FILES.mkdir(exist_ok=True)
    with PostgresServer(FILES, is_durable=True) as server:
        yield server.url()


@contextmanager
def on_mongo() -> Iterator[str]:
    from rota.testing.servers.mongo import MongoServer  # noqa: PLC0415

    FILES.mkdir(exist_ok=True)
    with MongoServer(FILES) as server:
        yield server.url()


STORES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "sqlite": on_sqlite,
    "redis": on_redis,
    "postgres": on_postgres,
    "mongo": on_mongo,
}
