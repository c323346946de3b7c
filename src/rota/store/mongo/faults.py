"""Translates the driver's errors into Rota's: what happened, whether to try again, and what to do next."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pymongo import errors

from rota.errors import BadStoreUrl, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGIN = {18, 8000}  # AuthenticationFailed, and its name in Atlas
_RIGHTS = {13}  # Unauthorized
_NO_SPACE = {14031}
_AWAY = {  # of a server that stops, steps down or starts: the same call may succeed later
    *(6, 7, 43, 89, 91, 134, 175, 189, 237, 262, 317, 358, 9001, 10058, 10107, 11600, 11601, 11602, 13435, 13436),
    *(24, 50, 64, 100, 112, 133, 202, 211, 225, 244, 246, 251),
}
NOT_REPLICATED = 64  # WriteConcernFailed
WRITE_CONFLICT = 112
ILLEGAL = 20
DUPLICATE = 11000
_PASSING = ("TransientTransactionError", "RetryableWriteError", "UnknownTransactionCommitResult")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise the driver's errors as Rota's, with their cause."""
    try:
        yield
    except errors.PyMongoError as err:
        raise translate(err, where) from err


def translate(err: errors.PyMongoError, where: str) -> StoreError:
    if isinstance(err, (errors.InvalidURI, errors.InvalidName)):
        return BadStoreUrl(f"{where}: {err}. Write mongodb://user:password@host:port/database")
    if isinstance(err, errors.NotPrimaryError):
        return StoreUnavailable(
            f"{where} has no primary at this moment, or only read-only members can be reached; nothing was lost, "
            "the next call looks for the primary again"
        )
    if isinstance(err, errors.OperationFailure) and not isinstance(
        err, (errors.ExecutionTimeout, errors.WTimeoutError)
    ):
        return _of_operation(err, where)
    if isinstance(err, errors.ConfigurationError):
        return BadStoreUrl(f"{where}: {err}")
    if isinstance(err, (errors.ConnectionFailure, errors.ExecutionTimeout, errors.WTimeoutError)) or err.timeout:
        return StoreUnavailable(f"{where} does not answer: {_short(err)}. Is the server running and reachable?")
    if isinstance(err, errors.InvalidOperation):
        return StoreUnavailable(f"{where} is closed")
    return StoreError(f"{where}: {_short(err)}")


def _of_operation(err: errors.OperationFailure, where: str) -> StoreError:
    codes = _codes_of(err)
    if codes & _LOGIN:
        return BadStoreUrl(
            f"{where} refused the login; check the user and the password in the URL, and authSource= where the user "
            "is kept in another database"
        )
    if codes & _RIGHTS:
        return StoreError(
            f"{where} does not let this user do that ({_short(err)}); give it the role readWrite on the database, "
            "or put a user who has it into the URL"
        )
    if codes & _NO_SPACE:
        return StoreUnavailable(f"no space is left for {where}; nothing was written. Free some, then go on")
    if codes & _AWAY or is_passing(err) or err.timeout or _is_mistaken(err):
        return StoreUnavailable(f"{where} cannot answer now: {_short(err)}. The same call may go through later")
    return StoreError(f"{where}: {_short(err)}")


def is_passing(err: errors.PyMongoError) -> bool:
    """Whether the server says that the same call may succeed later."""
    details = (err.details if isinstance(err, errors.OperationFailure) else None) or {}
    labels = details.get("errorLabels") or ()
    return any(err.has_error_label(label) or label in labels for label in _PASSING)


def _is_mistaken(err: errors.OperationFailure) -> bool:
    """Whether the driver took a single server, whose connection had just broken, for a member of a replica set."""
    return err.code == ILLEGAL and "ransaction numbers" in str((err.details or {}).get("errmsg"))


def is_duplicate(err: errors.BulkWriteError) -> bool:
    """Whether the only problem is that some documents exist already."""
    found = err.details.get("writeErrors", [])
    return not err.details.get("writeConcernErrors") and all(error.get("code") == DUPLICATE for error in found)


def is_conflict(err: errors.PyMongoError) -> bool:
    """Whether another transaction has written the same document."""
    return isinstance(err, errors.OperationFailure) and WRITE_CONFLICT in _codes_of(err)


def _codes_of(err: errors.OperationFailure) -> set[int]:
    """The error codes. Each part of a bulk write has its own; a majority that was not reached is a timeout."""
    codes = {int(part["code"]) for part in _parts_of(err) if "code" in part}
    if isinstance(err, errors.WriteConcernError) or (
        isinstance(err, errors.BulkWriteError) and err.details.get("writeConcernErrors")
    ):
        codes.add(NOT_REPLICATED)
    return codes or ({err.code} if err.code is not None else set())


def _parts_of(err: errors.PyMongoError) -> list[dict[str, Any]]:
    if not isinstance(err, errors.BulkWriteError):
        return []
    return [*err.details.get("writeErrors", ()), *err.details.get("writeConcernErrors", ())]


def _short(err: errors.PyMongoError) -> str:
    """The message without the topology that the driver adds; of a bulk write, that of its first error."""
    text = next((str(part["errmsg"]) for part in _parts_of(err) if "errmsg" in part), str(err))
    return text.partition(", full error:")[0].partition(", Timeout:")[0].partition("(configured timeouts")[0].strip()
