"""The driver's faults in Rota's words: which are worth another try, and what each tells to do."""

from __future__ import annotations

import pytest
from redis import exceptions

from rota.errors import BadStoreUrl, StoreError, StoreUnavailable
from rota.store.redis.faults import translate

OLD = "Error running script (call to f_9b1): @user_script:12: @user_script: 12: "  # Redis 6.2
NEW = "script: 9b1, on @user_script:12."  # Redis 7, Valkey

PASSING = [
    (exceptions.ConnectionError("Error 111 connecting to h:1. Connection refused."), "Check that it runs"),
    (exceptions.TimeoutError("Timeout reading from socket"), "did not answer in time"),
    (exceptions.BusyLoadingError("Redis is loading the dataset in memory"), "still loading"),
    (exceptions.ReadOnlyError("You can't write against a read only replica."), "Name its primary"),
    (exceptions.OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'."), "Raise maxmemory"),
    (exceptions.ResponseError("MISCONF Redis is configured to save RDB snapshots"), "Free space on its disk"),
    (exceptions.ResponseError("BUSY Redis is busy running a script."), "BUSY"),
    (exceptions.ResponseError("CLUSTERDOWN Hash slot not served"), "CLUSTERDOWN"),
    (exceptions.ResponseError(f"{OLD}-MISCONF Redis is configured to save RDB snapshots"), "Free space on its disk"),
    (exceptions.ResponseError(f"{OLD}OOM command not allowed when used memory > 'maxmemory'."), "Raise maxmemory"),
    (exceptions.ResponseError(f"{OLD}READONLY You can't write against a read only replica."), "Name its primary"),
    (exceptions.ResponseError(f"NOREPLICAS Not enough good replicas to write. {NEW}"), "NOREPLICAS"),
    (exceptions.ResponseError(f"MASTERDOWN Link with MASTER is down {NEW}"), "MASTERDOWN"),
    (exceptions.MaxConnectionsError("Too many connections"), "raise max_connections"),
    (OSError(32, "Broken pipe"), "Broken pipe"),
]
LASTING = [
    (exceptions.AuthenticationError("WRONGPASS invalid username-password pair"), "check the user and the password"),
    (exceptions.ResponseError("NOAUTH Authentication required."), "check the user and the password"),
    (exceptions.ResponseError(f"{OLD}-NOPERM this user has no permissions to run the 'set' command"), "server's ACL"),
    (exceptions.NoPermissionError("this user has no permissions to run the 'evalsha' command"), "server's ACL"),
]


@pytest.mark.parametrize(("err", "words"), PASSING, ids=lambda value: type(value).__name__)
def test_what_may_pass_is_worth_another_try(err: Exception, words: str):
    raised = translate(err, "redis at h:1")
    assert isinstance(raised, StoreUnavailable)
    assert words in str(raised)
    assert "redis at h:1" in str(raised)


@pytest.mark.parametrize(("err", "words"), LASTING, ids=lambda value: type(value).__name__)
def test_a_refused_login_is_no_outage(err: Exception, words: str):
    raised = translate(err, "redis at h:1")
    assert isinstance(raised, BadStoreUrl)
    assert words in str(raised)


@pytest.mark.parametrize(
    ("err", "words"),
    [
        (exceptions.MovedError("3999 127.0.0.1:6381"), "give a RedisCluster client"),
        (exceptions.ResponseError("unknown command 'ZMSCORE'"), "too old"),
        (exceptions.ResponseError("WRONGTYPE Operation against a key"), "WRONGTYPE"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_will_not_pass_is_told_as_it_is(err: Exception, words: str):
    raised = translate(err, "here")
    assert type(raised) is StoreError
    assert words in str(raised)
