"""Says how to remove a namespace from a database, and looks for what its users have put into its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Removal
from rota.store.postgres.schema import created

if TYPE_CHECKING:
    from rota.store.postgres.transaction import Transaction

# What DROP SCHEMA … CASCADE would delete, and Rota did not make: in the schema, then foreign keys and views elsewhere.
_OTHERS = """
    WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = %(namespace)s),
    relation AS (SELECT c.* FROM pg_class c JOIN here ON c.relnamespace = here.oid)
    SELECT relname::text FROM relation c
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'c', 'S') AND NOT relname::text = ANY(%(relations)s)
      AND NOT (relkind = 'S' AND EXISTS (  -- the sequence of a column
          SELECT FROM pg_depend d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')))
    UNION SELECT proname::text FROM pg_proc p JOIN here ON p.pronamespace = here.oid
    WHERE NOT proname::text = ANY(%(functions)s)
    UNION SELECT typname::text FROM pg_type t JOIN here ON t.typnamespace = here.oid WHERE typtype IN ('d', 'e')
    UNION SELECT k.conrelid::regclass::text FROM pg_constraint k JOIN relation c ON c.oid = k.confrelid
    WHERE k.contype = 'f' AND k.conrelid NOT IN (SELECT oid FROM relation)
    UNION SELECT r.ev_class::regclass::text FROM pg_depend d
    JOIN relation c ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
    JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.ev_class NOT IN (SELECT oid FROM relation)
    ORDER BY 1
"""


def removal_of(tx: Transaction) -> Removal:
    """Name the schema. If it holds anything else, or anything else refers to it, name each part that Rota made."""
    made = created()
    relations = [name for kind in ("table", "view", "sequence") for name in made[kind]]
    values = {"namespace": tx.namespace, "relations": relations, "functions": made["function"]}
    others = [name for (name,) in tx.rows(_OTHERS, values)]
    if not others:
        return Removal(words=f'run DROP SCHEMA "{tx.namespace}" CASCADE')
    parts = "; ".join(f"the {kind}s {', '.join(names)}" for kind, names in made.items())
    return Removal(
        words=f'do not drop the schema "{tx.namespace}" with CASCADE, which would also delete {", ".join(others)}, '
        f"which Rota did not make; drop by name, in that schema, {parts}"
    )
