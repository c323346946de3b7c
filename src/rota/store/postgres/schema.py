"""Creates the schema if it is missing, migrates an old one, and refuses one newer than this code."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from rota.store.shared.sql_schema import current_additions, current_version

if TYPE_CHECKING:
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

VERSION = 1
SCRIPTS: dict[int, tuple[str, ...]] = {1: ("schema.sql", "functions.sql")}  # what leads to each version
# What was added to the version since: tables, indexes and functions that code which does not know them leaves alone.
# The script is harmless to repeat, and is run where fewer additions are recorded.
ADDITIONS = 6
ADDITIONS_SCRIPT = "additions.sql"
MIGRATION_TIMEOUT = 600.0  # seconds, with the wait for other processes that migrate

_CREATE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS {ns};"
_CREATE_META = "CREATE TABLE IF NOT EXISTS {ns}.meta (name text PRIMARY KEY, value text NOT NULL);"
_RECORD = "INSERT INTO {ns}.meta VALUES ('{name}', '{value}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;"


def open_schema(database: Database) -> None:
    """Open the database, and bring its schema to this code's version."""
    namespace = database.namespace
    database.open()
    try:
        if database.call(lambda tx: _missing(tx, namespace)):
            database.transact("migrate", lambda tx: _migrate(tx, namespace), timeout=MIGRATION_TIMEOUT)
    except BaseException:
        database.close()
        raise


def pending_scripts(database: Database) -> list[str]:
    """The SQL that opening the schema would run."""
    return database.visit(lambda tx: _needed(tx, database.namespace))


def _migrate(tx: Transaction, namespace: str) -> None:
    """Processes that race wait here, and find it done."""
    tx.rows("SELECT pg_advisory_xact_lock(hashtext('rota schema'), hashtext(%s))", (namespace,))
    for script in _missing(tx, namespace):
        tx.run(script)


def _needed(tx: Transaction, namespace: str) -> list[str]:
    """The SQL that leads from what the schema has to what this code knows; an owner may run it by hand."""
    version = current_version(tx, _tables(tx, namespace), namespace, "", VERSION)
    first = [_filled(_CREATE_SCHEMA, namespace)] if version == 0 else []
    migrations = [f"{_migration_to(target, namespace)}\n" for target in range(version + 1, VERSION + 1)]
    has_all = version > 0 and current_additions(tx) >= ADDITIONS
    return [*first, *migrations, *([] if has_all else [_all_additions(namespace)])]


def _all_additions(namespace: str) -> str:
    script = resources.files(__package__).joinpath(ADDITIONS_SCRIPT).read_text(encoding="utf-8")
    return _filled(f"{script}\n{_recorded('additions', ADDITIONS)}\n", namespace)


def _recorded(name: str, value: int) -> str:
    return _RECORD.replace("{name}", name).replace("{value}", str(value))


def _tables(tx: Transaction, namespace: str) -> set[str]:
    """Read as rows: to_regclass() is faster, but may use what it knew before this transaction waited."""
    query = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
    return {name for (name,) in tx.rows(query, (namespace,))}


def namespaces(tx: Transaction) -> list[str]:
    """The schemas of this database that Rota created."""
    query = """
        SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND c.relname IN ('meta', 'job', 'schedule')
        GROUP BY n.nspname HAVING count(*) = 3 ORDER BY n.nspname
    """
    return [name for (name,) in tx.rows(query)]


def _missing(tx: Transaction, namespace: str) -> list[str]:
    """What must be run. An existing schema is not created: its user may lack the privilege."""
    scripts = _needed(tx, namespace)
    is_there = tx.rows("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", (namespace,))[0][0]
    return [script for script in scripts if not (is_there and script.startswith("CREATE SCHEMA"))]


def _migration_to(target: int, namespace: str) -> str:
    """The scripts of one version, and the record that it was reached."""
    folder = resources.files(__package__)
    scripts = [folder.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS[target]]
    whole = "\n".join([_CREATE_META, *scripts, _recorded("version", target)])
    return _filled(whole, namespace)


def _filled(script: str, namespace: str) -> str:
    return script.replace("{ns_text}", f"'{namespace}'").replace("{ns}", f'"{namespace}"')
