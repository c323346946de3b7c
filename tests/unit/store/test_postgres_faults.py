"""PostgreSQL's faults in Rota's words: which are worth another try, and what to do about the others."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from rota.errors import BadStoreUrl, SchemaMismatch, StoreError, StoreUnavailable
from rota.store.postgres.faults import is_lost, translate

HERE = "postgresql database shop at db:5432"


@pytest.mark.parametrize(
    "kind",
    [
        errors.AdminShutdown,
        errors.CrashShutdown,
        errors.CannotConnectNow,
        errors.TooManyConnections,
        errors.QueryCanceled,
        errors.LockNotAvailable,
        errors.DeadlockDetected,
        errors.SerializationFailure,
        errors.IdleInTransactionSessionTimeout,
        errors.ConnectionFailure,
        errors.OutOfMemory,
        errors.IoError,
        errors.DiskFull,
        errors.ReadOnlySqlTransaction,
        PoolTimeout,
        PoolClosed,
        psycopg.OperationalError,
        psycopg.InterfaceError,
    ],
    ids=lambda kind: kind.__name__,
)
def test_what_passes_is_worth_another_try(kind: type[psycopg.Error]):
    told = translate(kind("something"), HERE)
    assert type(told) is StoreUnavailable
    assert HERE in str(told)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (errors.InsufficientPrivilege, StoreError, "rota migrate"),
        (errors.UndefinedTable, SchemaMismatch, "rota migrate"),
        (errors.UndefinedFunction, SchemaMismatch, "rota migrate"),
        (errors.InvalidSchemaName, SchemaMismatch, "rota migrate"),
        (errors.DivisionByZero, StoreError, HERE),
    ],
)
def test_what_does_not_pass_says_what_to_do(kind: type[psycopg.Error], error: type[StoreError], words: str):
    told = translate(kind("something"), HERE)
    assert type(told) is error
    assert words in str(told)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ('… FATAL:  password authentication failed for user "ann"', BadStoreUrl, "refused the login"),
        ('… FATAL:  no pg_hba.conf entry for host "1.2.3.4"', BadStoreUrl, "pg_hba.conf"),
        ("connection failed: … fe_sendauth: no password supplied", BadStoreUrl, "refused the login"),
        ('… FATAL:  database "shop" does not exist', BadStoreUrl, 'database "shop" does not exist'),
        ("… FATAL:  the database system is starting up", StoreUnavailable, "out of reach"),
        (
            'connection to server at "db" failed: Connection refused\nIs it running?',
            StoreUnavailable,
            ": Connection refused",
        ),
        ("server closed the connection unexpectedly", StoreUnavailable, "out of reach"),
    ],
)
def test_a_refused_connection_says_why(text: str, error: type[StoreError], words: str):
    told = translate(psycopg.OperationalError(text), HERE)
    assert type(told) is error
    assert words in str(told)


def test_of_several_attempts_the_last_is_told():
    text = (
        "connection failed: …, Multiple connection attempts failed. All failures were:\n- host: a: no\n- host: b: never"
    )
    assert "b: never" in str(translate(psycopg.OperationalError(text), HERE))


def test_a_call_that_was_given_up_says_after_how_long():
    told = translate(errors.QueryCanceled("canceling statement"), HERE, is_late=2.5)
    assert "did not answer within 2.5 s" in str(told)


@pytest.mark.parametrize(
    ("err", "expected"),
    [
        (psycopg.OperationalError("gone"), True),
        (errors.AdminShutdown("x"), True),
        (errors.ReadOnlySqlTransaction("x"), True),
        (errors.IdleInTransactionSessionTimeout("x"), True),
        (errors.LockNotAvailable("x"), False),
        (errors.UniqueViolation("x"), False),
        (psycopg.DataError("a text with a NUL"), False),
    ],
)
def test_a_lost_connection_is_told_from_a_refused_statement(err: psycopg.Error, expected: bool):  # noqa: FBT001
    assert is_lost(err) is expected
