"""Names the database of a django-celery-beat, so that two spellings of the same one name the same source.

Only spellings that are the same for certain are joined: paths of one file, the names of this machine, default ports.
The name has no password.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from rota.importers.import_plan import origin_of
from rota.importers.take_over_record import read_every
from rota.model.secrets.masking import masked
from rota.store.contract import ScheduleFilter

if TYPE_CHECKING:
    from rota.importers.take_over_record import TakeOver
    from rota.store.contract import Store

SYSTEM = "django-celery-beat"
SQLITE = "sqlite:///"
HERE = {"localhost", "127.0.0.1", "::1"}
NAMING = {"host", "hostaddr", "port", "dbname", "user", "options"}  # parameters that say which tables are meant


def identity_of(url: str) -> str:
    """The URL of a database in its one spelling."""
    if url.startswith(SQLITE):
        return f"{SQLITE}{quote(os.path.realpath(unquote(url.removeprefix(SQLITE))))}"
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        return masked(url)
    if parts.scheme not in {"postgres", "postgresql"} or "," in parts.netloc:
        return masked(url)
    host = parts.hostname or ""
    host = "localhost" if host in HERE else f"[{host}]" if ":" in host else host
    user = f"{parts.username}@" if parts.username else ""
    rest = urlencode(sorted(pair for pair in parse_qsl(parts.query) if pair[0] in NAMING))
    where = f"{user}{host}" + (f":{port}" if host else "")
    return masked(f"postgresql://{where}{parts.path}{'?' if rest else ''}{rest}")


def is_same(source: str, identity: str) -> bool:
    """Whether the source of a record, or of a schedule, is this database."""
    system, _, url = source.partition(" ")
    return system == SYSTEM and identity_of(url) == identity


class Source:
    """One database as the store knows it: its records, and the name under which its schedules were imported."""

    def __init__(self, store: Store, url: str) -> None:
        self._identity = identity_of(url)
        every = read_every(store)
        self.records: dict[str, TakeOver] = {name: one for name, one in every.items() if self.has(one.source)}
        self.others: dict[str, TakeOver] = {name: one for name, one in every.items() if name not in self.records}
        self.name = self._known_name(store, url)

    @property
    def origin(self) -> str:
        return origin_of(SYSTEM, self.name).app

    def has(self, source: str) -> bool:
        """Whether a record or a schedule is of this database."""
        return is_same(source, self._identity)

    def _known_name(self, store: Store, url: str) -> str:
        """As an earlier version spelt it, so that its schedules are found again; else the one spelling."""
        spelt = masked(url)
        where = ScheduleFilter(origin=origin_of(SYSTEM, spelt).name)
        if spelt != self._identity and store.list_schedules(where, limit=1).items:
            return spelt
        known = (one.source for one in self.records.values())
        return next(known, origin_of(SYSTEM, self._identity).app).removeprefix(f"{SYSTEM} ")
