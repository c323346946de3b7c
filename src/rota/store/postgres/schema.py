"""The schema: made when missing, migrated when old, refused when newer than this code."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from rota.errors import SchemaMismatch

if TYPE_CHECKING:
    from rota.store.postgres.transaction import Transaction

VERSION = 3
MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("0001_tables.sql",),
    2: ("0002_slots.sql", "0002_verbs.sql"),
    3: ("0003_lock_terms.sql",),
}
PATIENCE = 600.0  # seconds that a migration may take, with the wait for others who do the same

_MAKE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS {ns};"
_MAKE_META = "CREATE TABLE IF NOT EXISTS {ns}.meta (name text PRIMARY KEY, value text NOT NULL);"
_REMEMBER = (
    "INSERT INTO {ns}.meta VALUES ('version', '{version}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;"
)


def migrate(tx: Transaction, namespace: str) -> None:
    """Bring the schema to this code's version; racing processes wait and find it done."""
    tx.rows("SELECT pg_advisory_xact_lock(hashtext('rota schema'), hashtext(%s))", (namespace,))
    for script in _missing(tx, namespace):
        tx.run(script)


def scripts_after(version: int, namespace: str) -> list[str]:
    """The SQL that leads from a version to this code's; an owner may run it by hand."""
    if version == VERSION:
        return []
    first = [_filled(_MAKE_SCHEMA, namespace)] if version == 0 else []
    steps = [migration_to(target, namespace) for target in range(version + 1, VERSION + 1)]
    return [*first, *(f"{step}\n" for step in steps)]


def current_version(tx: Transaction, namespace: str) -> int:
    """The version that the schema has; 0 for none."""
    tables = _tables(tx, namespace)
    if "meta" not in tables:
        if "job" in tables:
            raise SchemaMismatch(
                f"the schema {namespace} has a table job that Rota did not make; choose another namespace"
            )
        return 0
    return _version_of(tx, namespace)


def _tables(tx: Transaction, namespace: str) -> set[str]:
    """Read as rows: the quicker to_regclass() may go by what it knew before this transaction waited for its turn."""
    query = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
    return {name for (name,) in tx.rows(query, (namespace,))}


def namespaces(tx: Transaction) -> list[str]:
    """The schemas of this database that Rota made."""
    query = """
        SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND c.relname IN ('meta', 'job', 'schedule')
        GROUP BY n.nspname HAVING count(*) = 3 ORDER BY n.nspname
    """
    return [name for (name,) in tx.rows(query)]


def _version_of(tx: Transaction, namespace: str) -> int:
    row = tx.row("SELECT value FROM {ns}.meta WHERE name = 'version'")
    text = str(row[0]) if row else "0"
    if not text.isdecimal():
        raise SchemaMismatch(
            f"the schema {namespace} has a table meta that Rota did not make; choose another namespace"
        )
    version = int(text)
    if version > VERSION:
        raise SchemaMismatch(
            f"the schema {namespace} has version {version}, this Rota knows up to {VERSION}; "
            "install the newer Rota that made it, or use another namespace"
        )
    return version


def _missing(tx: Transaction, namespace: str) -> list[str]:
    """What is to be run. A schema that is there is not made: its user may lack the right to make one."""
    scripts = scripts_after(current_version(tx, namespace), namespace)
    is_there = tx.rows("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", (namespace,))[0][0]
    return [script for script in scripts if not (is_there and script.startswith("CREATE SCHEMA"))]


def migration_to(target: int, namespace: str) -> str:
    """The scripts of one version, and the note that it was reached."""
    folder = resources.files(__package__).joinpath("migrations")
    scripts = [folder.joinpath(name).read_text(encoding="utf-8") for name in MIGRATIONS[target]]
    whole = "\n".join([_MAKE_META, *scripts, _REMEMBER.replace("{version}", str(target))])
    return _filled(whole, namespace)


def _filled(script: str, namespace: str) -> str:
    return script.replace("{ns_text}", f"'{namespace}'").replace("{ns}", f'"{namespace}"')
