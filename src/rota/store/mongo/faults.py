"""MongoDB's faults in our words: what happened, whether it is worth another try, and what to do next."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    ExecutionTimeout,
    InvalidName,
    InvalidOperation,
    InvalidURI,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from rota.errors import BadStoreUrl, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGIN = {18, 8000}  # AuthenticationFailed, and its name in Atlas
_RIGHTS = {13}  # Unauthorized
_NO_SPACE = {14031}
_AWAY = {  # of a server that goes down, steps down or comes up: the same call may go through later
    *(6, 7, 89, 91, 189, 262, 317, 358, 9001, 10058, 10107, 11600, 11602, 13435, 13436),
    *(50, 64, 112, 133, 202, 211, 246, 251),
}


@contextmanager
def told(where: str) -> Iterator[None]:
    """Translate at the border, and keep the cause."""
    try:
        yield
    except PyMongoError as err:
        raise in_our_words(err, where) from err


def in_our_words(err: PyMongoError, where: str) -> StoreError:
    if isinstance(err, (InvalidURI, InvalidName)):
        return BadStoreUrl(f"{where}: {err}. Write mongodb://user:password@host:port/database")
    if isinstance(err, NotPrimaryError):
        return StoreUnavailable(
            f"{where} has no primary at this moment, or only read-only members can be reached; nothing was lost, "
            "the next call looks for the primary again"
        )
    if isinstance(err, OperationFailure) and not isinstance(err, (ExecutionTimeout, WTimeoutError)):
        return _of_operation(err, where)
    if isinstance(err, ConfigurationError):
        return BadStoreUrl(f"{where}: {err}")
    if isinstance(err, (ConnectionFailure, ExecutionTimeout, WTimeoutError)) or err.timeout:
        return StoreUnavailable(f"{where} does not answer: {_short(err)}. Is the server running and reachable?")
    if isinstance(err, InvalidOperation):
        return StoreUnavailable(f"{where} is closed")
    return StoreError(f"{where}: {_short(err)}")


def _of_operation(err: OperationFailure, where: str) -> StoreError:
    if err.code in _LOGIN:
        return BadStoreUrl(
            f"{where} refused the login; check the user and the password in the URL, and authSource= where the user "
            "is kept in another database"
        )
    if err.code in _RIGHTS:
        return StoreError(
            f"{where} does not let this user do that ({_short(err)}); give it the role readWrite on the database, "
            "or put a user who has it into the URL"
        )
    if err.code in _NO_SPACE:
        return StoreUnavailable(f"no space is left for {where}; nothing was written. Free some, then go on")
    is_passing = err.has_error_label("TransientTransactionError") or err.has_error_label("RetryableWriteError")
    if err.code in _AWAY or is_passing or err.timeout:
        return StoreUnavailable(f"{where} cannot answer now: {_short(err)}. The same call may go through later")
    return StoreError(f"{where}: {_short(err)}")


def _short(err: PyMongoError) -> str:
    """Its first words: the driver adds the whole topology, which helps nobody."""
    return (
        str(err).partition(", full error:")[0].partition(", Timeout:")[0].partition("(configured timeouts")[0].strip()
    )
