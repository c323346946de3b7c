"""Takes everything out of a namespace that a test has used, so that the next one need not make tables and indexes.

Making them takes from 40 to 100 ms of CPU, and a server with thousands of namespaces grows slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.sql import SQL, Identifier

if TYPE_CHECKING:
    import psycopg
    from pymongo.database import Database

PATIENCE = "60s"  # who still holds a lock then has been left behind by a test
# Positions are never drawn twice: an open handle may know up to which of them all jobs were claimed.
RELATIONS = """
SELECT relname, relkind FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE n.nspname = %s AND relkind IN ('r', 'S') AND relname NOT IN ('meta', 'job_seq_seq')
"""
START_ANEW = "SELECT setval({}, seqstart, false) FROM pg_sequence WHERE seqrelid = {}::regclass"


def empty_postgres(connection: psycopg.Connection, namespace: str) -> None:
    """Whatever tables the schema has; one that is not there is empty already."""
    found = connection.execute(RELATIONS, [namespace]).fetchall()
    orders = [SQL("SET lock_timeout = {}").format(PATIENCE)]
    for name, kind in sorted(found):
        relation = Identifier(namespace, name)
        if kind == "r":
            orders.append(SQL("DELETE FROM {}").format(relation))
        else:
            text = relation.as_string()
            orders.append(SQL(START_ANEW).format(text, text))
    connection.execute(SQL("; ").join(orders))


def empty_mongo(database: Database, namespace: str) -> None:
    """All collections but that of notifications, which is capped and read from its end."""
    names = database.list_collection_names(filter={"name": {"$regex": f"^{namespace}_"}})
    for name in _filled(database, [name for name in names if not name.endswith("_notifications")]):
        if name.endswith("_meta"):
            # Marks of time stay: an open handle remembers which it has made, and one without jobs does no harm.
            database[name].delete_many({"_id": {"$not": {"$regex": "^(control|slice)"}}})
            database[name].update_one(
                {"_id": "control"}, {"$set": {"paused": []}, "$unset": {"seal": "", "busy": "", "added": ""}}
            )
        else:
            database[name].delete_many({})


def _filled(database: Database, names: list[str]) -> list[str]:
    """Which of these collections have a document, by one question: most tests write to a few of them."""
    if not names:
        return []
    one_of = {name: [{"$limit": 1}, {"$project": {"_id": 0, "of": {"$literal": name}}}] for name in names}
    first, *others = names
    unions = [{"$unionWith": {"coll": name, "pipeline": one_of[name]}} for name in others]
    return [found["of"] for found in database[first].aggregate([*one_of[first], *unions])]
