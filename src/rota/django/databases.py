"""Says where a database of Django is, as the URL of a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

POSTGRES = ("django.db.backends.postgresql", "django.contrib.gis.db.backends.postgis")
SQLITE = ("django.db.backends.sqlite3", "django.contrib.gis.db.backends.spatialite")
_OF_DJANGO = {"assume_role", "isolation_level", "pool", "server_side_binding"}  # options that libpq does not know


def store_url_of(databases: Mapping[str, Any], alias: str) -> str:
    """The URL of a store in this database; ImproperlyConfigured if it can hold none."""
    if alias not in databases:
        known = ", ".join(sorted(databases)) or "none"
        raise ImproperlyConfigured(f"ROTA['database'] is {alias!r}, and DATABASES has {known}")
    database = databases[alias]
    engine = database.get("ENGINE", "")
    if engine in POSTGRES:
        return postgres_url(database)
    if engine in SQLITE and is_in_memory(database):
        raise ImproperlyConfigured(
            f"the database {alias!r} is SQLite in memory, which no other process can see, so that it cannot be the "
            "store; set ROTA['store'], for example to 'memory://' for tests or 'sqlite:///jobs.db'"
        )
    if engine in SQLITE:
        return f"sqlite:///{quote(os.path.abspath(database['NAME']))}"  # noqa: PTH100 - it may be a text
    raise ImproperlyConfigured(
        f"Rota cannot keep its jobs in the database {alias!r} ({engine or 'without an ENGINE'}); set ROTA['store'] to "
        "the URL of a store: postgresql://…, sqlite:///…, redis://… or mongodb://…"
    )


def is_in_memory(database: Mapping[str, Any]) -> bool:
    name = str(database.get("NAME") or "")
    return name in {"", ":memory:"} or "mode=memory" in name


def postgres_url(database: Mapping[str, Any]) -> str:
    """What Django would connect to, as libpq's URL."""
    user, password = str(database.get("USER") or ""), str(database.get("PASSWORD") or "")
    host, port = str(database.get("HOST") or ""), str(database.get("PORT") or "")
    options = {
        name: str(value)
        for name, value in (database.get("OPTIONS") or {}).items()
        if name not in _OF_DJANGO and isinstance(value, (str, int, float)) and not isinstance(value, bool)
    }
    who = f"{quote(user, safe='')}:{quote(password, safe='')}@" if password else f"{quote(user, safe='')}@"
    where = quote(host, safe="") + (f":{port}" if port else "")
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    return f"postgresql://{who if user else ''}{where}/{quote(str(database.get('NAME') or ''), safe='')}{query}"
