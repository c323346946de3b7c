"""Creates the schema if it is missing, migrates an old one, and refuses one newer than this code."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from rota.store.shared.sql_schema import current_additions, current_version

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_RECORD = "INSERT INTO {ns}.meta VALUES ('{name}', '{value}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;"


def open_schema(database: Database) -> None:
    """Open the database, and bring its schema to this code's version."""
    database.open()
    try:
        if database.call(_missing):
            database.transact("migrate", _migrate, timeout=MIGRATION_TIMEOUT)
    except BaseException:
        database.close()
        raise


def _migrate(tx: Transaction) -> None:
    """Processes that race wait here, and find it done."""
    tx.rows("SELECT pg_advisory_xact_lock(hashtext('rota schema'), hashtext(%s))", (tx.namespace,))
    for script in _missing(tx):
        tx.run(script)


def pending_scripts(tx: Transaction) -> list[str]:
    """The SQL that leads from what the schema has to what this code knows; an owner may run it by hand."""
    version = current_version(tx, _tables(tx), tx.namespace, "", VERSION)
    parts = [_CREATE_SCHEMA] if version == 0 else []
    parts += [_script(SCRIPTS[target], "version", target) for target in range(version + 1, VERSION + 1)]
    if version == 0 or current_additions(tx) < ADDITIONS:
        parts.append(_script((ADDITIONS_SCRIPT,), "additions", ADDITIONS))
    return [part.replace("{ns_text}", f"'{tx.namespace}'").replace("{ns}", f'"{tx.namespace}"') for part in parts]


def _tables(tx: Transaction) -> set[str]:
    """Read as rows: to_regclass() is faster, but may use what it knew before this transaction waited."""
    query = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
    return {name for (name,) in tx.rows(query, (tx.namespace,))}


def namespaces(tx: Transaction) -> list[str]:
    """The schemas of this database that Rota created."""
    query = """
        SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND c.relname IN ('meta', 'job', 'schedule')
        GROUP BY n.nspname HAVING count(*) = 3 ORDER BY n.nspname
    """
    return [name for (name,) in tx.rows(query)]


def _missing(tx: Transaction) -> list[str]:
    """What must be run. An existing schema is not created: its user may lack the privilege."""
    scripts = pending_scripts(tx)
    is_there = tx.rows("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", (tx.namespace,))[0][0]
    return [script for script in scripts if not (is_there and script.startswith("CREATE SCHEMA"))]


def _script(names: Sequence[str], name: str, value: int) -> str:
    """Some of the files, and the record that they were run."""
    folder = resources.files(__package__)
    files = [folder.joinpath(file).read_text(encoding="utf-8") for file in names]
    return "\n".join([*files, f"{_RECORD.replace('{name}', name).replace('{value}', str(value))}\n"])
