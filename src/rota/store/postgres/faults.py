"""Translates faults of PostgreSQL: what happened, whether a retry can help, what to do next."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from rota.errors import BadStoreUrl, SchemaMismatch, StoreError, StoreUnavailable


class StaleRead(psycopg.OperationalError):
    """What a transaction had read changed before it could be locked; the transaction starts again."""


RETRYABLE = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation, StaleRead)
RETRYABLE_CALL = (errors.DeadlockDetected, errors.SerializationFailure)
# A prepared statement is gone, or exists twice, or returns something else by now: a pooler may be in between.
LOST_STATEMENT = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement, errors.FeatureNotSupported)

_LOGIN = ("password authentication failed", "no password supplied", "no pg_hba.conf entry", "authentication failed")
_MISSING = ("does not exist", "no such database", "no such user")
_UNAVAILABLE = ("08", "53", "57", "58")  # classes: connection, resources, operator intervention, system
_BUSY = {"55P03", "25P03", "25P04", "40001", "40P01"}


def translate(err: psycopg.Error, where: str, *, is_late: float = 0.0) -> StoreError:
    """The error to raise instead. `is_late`: the seconds after which this side stopped waiting."""
    if is_late:
        return StoreUnavailable(f"{where} did not answer within {is_late:g} s; it is tried again")
    if isinstance(err, PoolTimeout | TooManyRequests):
        return StoreUnavailable(
            f"no connection to {where} became free in time ({_first_line(err)}); raise pool= in the URL"
        )
    if isinstance(err, PoolClosed):
        return StoreUnavailable(f"the pool of connections to {where} is closed")
    return _by_state(err, err.sqlstate, where) if err.sqlstate else _by_text(err, where)


def _by_state(err: psycopg.Error, state: str, where: str) -> StoreError:
    if state == "25006":
        return StoreUnavailable(
            f"{where} is read-only (a standby, or default_transaction_read_only is on); "
            "point the URL at the primary, or wait for it"
        )
    if state == "42501":
        return StoreError(
            f"the role of the URL may not do this in {where}: {_first_line(err)}. Grant it, or let its owner run "
            "`rota migrate`"
        )
    if state in {"3F000", "42P01", "42883", "42703"}:
        return SchemaMismatch(
            f"the tables in {where} are not what this Rota made ({_first_line(err)}); run `rota migrate`"
        )
    if state in {"28P01", "28000", "3D000"}:
        return _by_text(err, where)
    if state == "53100":
        return StoreUnavailable(f"no space is left for {where}; nothing was written. Free some, then go on")
    if state[:2] in _UNAVAILABLE or state in _BUSY:
        return StoreUnavailable(f"{where} is out of reach or busy: {_first_line(err)}")
    return StoreError(f"{where}: {_first_line(err)}")


def _by_text(err: psycopg.Error, where: str) -> StoreError:
    """Errors before the login carry no code."""
    text = str(err)
    if any(words in text for words in _LOGIN):
        return BadStoreUrl(f"{where} refused the login; check user and password in the URL, and pg_hba.conf")
    if "FATAL" in text and any(words in text for words in _MISSING):
        said = text.partition("FATAL:")[2].partition("\n")[0].strip()
        return BadStoreUrl(f"{where}: {said}; create it, or name another in the URL")
    if isinstance(err, errors.OperationalError | errors.InterfaceError):
        return StoreUnavailable(f"{where} is out of reach: {_first_line(err)}. Check that it runs, and the address")
    return StoreError(f"{where}: {_first_line(err)}")


def is_lost(err: psycopg.Error) -> bool:
    """Whether the connection, or the server behind it, is no longer the one to talk to."""
    state = err.sqlstate or ""
    if not state:
        return not isinstance(err, psycopg.DataError)  # a value that the driver refuses to send
    return state.startswith(("08", "57P")) or state in {"25006", "25P03", "25P04"}


def _first_line(err: psycopg.Error) -> str:
    """What an error says in one line, without the address that libpq puts before it."""
    lines = str(err).strip().splitlines() or [""]
    text = lines[-1] if "attempts failed" in lines[0] else lines[0]
    return text.rpartition("failed: ")[2] or type(err).__name__
