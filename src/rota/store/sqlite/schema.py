"""Creates the tables when they are missing, migrates them when they are old, and refuses those of a newer Rota."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from rota.errors import StoreUnavailable
from rota.store.contract import Removal
from rota.store.shared.schema_version import namespaces_among
from rota.store.shared.sql_schema import created_by, current_additions, current_version
from rota.store.sqlite.transaction import Tables

if TYPE_CHECKING:
    import sqlite3

    from rota.store.sqlite.connection import Database

MIGRATIONS: dict[int, str] = {1: "schema.sql"}  # schema version -> the script that leads there from the one before
VERSION = max(MIGRATIONS)
# What was added to the version since: tables and indexes that code which does not know them leaves alone. The script is
# harmless to repeat, and is run where fewer additions are recorded.
ADDITIONS = 4
ADDITIONS_SCRIPT = "additions.sql"


def migrate(database: Database, namespace: str) -> None:
    """Bring the schema to this code's version, in one transaction; racing processes wait and find it done."""
    with database.read() as connection:
        if not _missing(connection, namespace):
            return
    with database.write() as connection:
        migrate_within(connection, namespace)


def migrate_within(connection: sqlite3.Connection, namespace: str) -> None:
    """The same in a transaction of the caller's: if that is rolled back, the next call does it again."""
    missing = _missing(connection, namespace)
    for script in missing:
        _run(connection, script, namespace)
    if missing:
        _remember(connection, namespace)


def pending(database: Database, namespace: str) -> list[str]:
    """The SQL that migrate() would run on a file that is not open."""
    with database.look() as connection:
        return [_script(name, namespace) for name in _missing(connection, namespace)]


def check_current(database: Database, namespace: str) -> None:
    """Refuse a file that was put in the place of another and is no store; to make it one is its owner's decision."""
    if pending(database, namespace):
        raise StoreUnavailable(
            f"{database.path} was replaced by a file that holds no store of this version, namespace {namespace}; "
            "restore a backup there, or run `rota migrate`"
        )


def namespaces(database: Database) -> list[str]:
    """The namespaces that were made in a file, open or not."""
    with database.look() as connection:
        return namespaces_among(_tables(connection))


def removal(database: Database, namespace: str) -> Removal:
    """Name the tables of a namespace. The whole file may go only if it holds nothing that Rota did not make."""
    with database.look() as connection:
        names = _tables(connection)
        query = "SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')"  # Rota makes none
        ((others,),) = connection.execute(query)
    made = {own for name in namespaces_among(names) for own in _own_tables(name)}
    is_alone = others == 0 and all(name in made or name.startswith("sqlite_") for name in names)
    path = database.path
    own = ", ".join(sorted(_own_tables(namespace) & names))
    return Removal(
        words=f"drop the tables {own} of {path}",
        whole=f"delete {path}, and {path.name}-wal, {path.name}-shm and {path.name}-notify beside it"
        if is_alone
        else "",
    )


def _own_tables(namespace: str) -> set[str]:
    created = created_by(map(_text, (*MIGRATIONS.values(), ADDITIONS_SCRIPT)))
    return {f"{namespace}_{table}" for table in ("meta", *created["table"])}


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def all_scripts(namespace: str) -> list[str]:
    """The SQL that makes a new file's tables."""
    return [_script(name, namespace) for name in (*MIGRATIONS.values(), ADDITIONS_SCRIPT)]


def _missing(connection: sqlite3.Connection, namespace: str) -> list[str]:
    """The scripts that lead from what the file has to what this code knows."""
    tables = Tables(connection, namespace)
    version = current_version(tables, _tables(connection), namespace, f"{namespace}_", VERSION)
    scripts = [MIGRATIONS[target] for target in range(version + 1, VERSION + 1)]
    has_all = bool(version) and current_additions(tables) >= ADDITIONS
    return scripts if has_all else [*scripts, ADDITIONS_SCRIPT]


def _remember(connection: sqlite3.Connection, namespace: str) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {namespace}_meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
    connection.executemany(
        f"INSERT OR REPLACE INTO {namespace}_meta VALUES (?, ?)", [("version", VERSION), ("additions", ADDITIONS)]
    )


def _run(connection: sqlite3.Connection, name: str, namespace: str) -> None:
    """Statement by statement: executescript() would commit the transaction first."""
    for statement in _statements(_script(name, namespace)):
        connection.execute(statement)


def _script(name: str, namespace: str) -> str:
    return _text(name).replace("{ns}", namespace)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _statements(script: str) -> list[str]:
    plain = "\n".join(line.partition("--")[0] for line in script.splitlines())
    return [statement for statement in plain.split(";") if statement.strip()]
