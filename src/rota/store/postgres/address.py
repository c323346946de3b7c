"""Parses the URL of a database, describes it without its password, and checks its server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from psycopg import Cursor, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import tuple_row

from rota.errors import BadStoreUrl, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import Connection

OLDEST = 14_00_00  # as the server counts: 14.0
TIMEOUT = 10.0  # seconds that one call may take
MOST_CONNECTIONS = 10

_OURS = {"listen", "timeout", "pool"}


class Address(Struct, frozen=True, kw_only=True):
    """How to reach a database, and how to use it."""

    conninfo: str
    listen: str | None = None  # where to LISTEN, if not at the same address
    timeout: float = TIMEOUT
    pool: int = MOST_CONNECTIONS

    def describe(self) -> str:
        return describe(conninfo_to_dict(self.conninfo))


def parse(url: str) -> Address:
    """A URL as libpq takes it, with our own options beside its own: listen, timeout, pool."""
    base, _, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    ours = {name: value for name, value in options if name in _OURS}
    theirs = urlencode([(name, value) for name, value in options if name not in _OURS])
    return Address(
        conninfo=_conninfo(f"{base}?{theirs}" if theirs else base),
        listen=_conninfo(ours["listen"]) if ours.get("listen") else None,
        timeout=_number(ours.get("timeout"), TIMEOUT, "timeout"),
        pool=int(_number(ours.get("pool"), MOST_CONNECTIONS, "pool")),
    )


def describe(parameters: Mapping[str, object]) -> str:
    """A database for people: no user, no password."""
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = parameters.get("port") or 5432
    name = parameters.get("dbname") or parameters.get("user") or "?"
    return f"postgresql database {name} at {host}:{port}"


def check_server(version: int, encoding: str, isolation: str, where: str) -> None:
    """Refuse a server on which the store would not keep its word."""
    if version < OLDEST:
        shown = f"{version // 10_000}.{version % 10_000}"
        raise StoreError(f"{where} runs PostgreSQL {shown}; 14 or newer is needed")
    if encoding.upper().replace("-", "") != "UTF8":
        raise StoreError(
            f"{where} has the encoding {encoding}, which cannot keep every text; make a database with UTF8"
        )
    if isolation != "read committed":
        raise StoreError(
            f"{where} begins transactions as '{isolation}'; the store needs 'read committed': "
            "ALTER ROLE … SET default_transaction_isolation = 'read committed'"
        )


def look_at_server(connection: Connection[Any], where: str) -> bool:
    """Check the server behind a connection; says whether a pooler stands between."""
    cursor = Cursor(connection, row_factory=tuple_row)  # a pool of the caller's may make rows of another kind
    ((version, encoding, isolation, pid),) = cursor.execute(
        "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), "
        "current_setting('default_transaction_isolation'), pg_backend_pid()",
        prepare=False,
    ).fetchall()
    check_server(version, encoding, isolation, where)
    return bool(connection.info.backend_pid != pid)  # a pooler answers with a number of its own


def _conninfo(url: str) -> str:
    """A URL that libpq can read. Its complaint may quote any part of it, so only what is no secret is passed on."""
    try:
        ports = str(conninfo_to_dict(url).get("port") or "")
        if not all(port.isdecimal() for port in ports.split(",") if port):
            raise BadStoreUrl(f"{ports!r} in the PostgreSQL URL is no port")
        return make_conninfo(url)
    except ProgrammingError as err:
        reason = str(err).partition("\n")[0]
        shown = f" ({reason})" if reason.startswith("invalid URI query parameter") else ""
        raise BadStoreUrl(
            f"the PostgreSQL URL cannot be read{shown}; write postgresql://user:password@host:5432/database, "
            "with %40 for @ and its like in a password"
        ) from None


def _number(text: str | None, default: float, name: str) -> float:
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 10_000:
        raise BadStoreUrl(f"{name}={text!r} in the PostgreSQL URL must be a number above 0")
    return number
