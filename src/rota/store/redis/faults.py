"""Faults of the driver and the server in Rota's words: what happened, and what to do next. No secrets."""

from __future__ import annotations

import re

from redis import exceptions

from rota.errors import BadStoreUrl, StoreError, StoreUnavailable

_LOGIN = ("NOAUTH", "WRONGPASS", "invalid password", "invalid username-password", "Authentication required")
_FORBIDDEN = (  # what a script says without a code
    "ACL failure in script",
    "can't run this command or subcommand",
    "can't publish to the channel",
)
_PASSING = {"BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED", "ASK", "FAILOVER"}
# A refusal may come from within a script. Redis 6.2 puts its code behind "Error running script (call to f_…):
# @user_script:12: ", Redis 7 and Valkey keep it in front and name the script behind it.
_CODE = re.compile(
    r"(?:^|[:\s-])(MISCONF|OOM|READONLY|LOADING|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|NOREPLICAS|UNBLOCKED|ASK|FAILOVER|"
    r"NOPERM|NOAUTH|WRONGPASS|MOVED)(?=\s)"
)


def translate(err: Exception, address: str) -> StoreError:
    """The error to raise for one of the driver's."""
    text = str(err)
    code = code_of(text)
    if isinstance(err, exceptions.AuthenticationError) or any(word in text for word in _LOGIN):
        return BadStoreUrl(f"{address} refused the login; check the user and the password in the store's URL")
    if isinstance(err, exceptions.NoPermissionError) or code == "NOPERM" or any(words in text for words in _FORBIDDEN):
        return BadStoreUrl(f"{address}: this user may not do what Rota needs ({text}); allow it in the server's ACL")
    if isinstance(err, exceptions.ReadOnlyError) or code == "READONLY":
        return StoreUnavailable(f"{address} is a read-only replica; nothing was written. Name its primary instead")
    if isinstance(err, exceptions.MovedError) or code == "MOVED":
        return StoreError(
            f"{address} is one node of a cluster, and the data live on another; give a RedisCluster client"
        )
    if isinstance(err, exceptions.BusyLoadingError) or code == "LOADING":
        return StoreUnavailable(f"{address} is still loading its data; try again soon")
    if isinstance(err, exceptions.MaxConnectionsError):
        return StoreUnavailable(f"{address}: all connections of the pool are in use; raise max_connections")
    if isinstance(err, exceptions.TimeoutError):
        return StoreUnavailable(f"{address} did not answer in time; it may be stuck, or the network between")
    if isinstance(err, (exceptions.ConnectionError, exceptions.RedisClusterException, OSError)):
        return StoreUnavailable(f"cannot reach {address}: {_cause(err)}. Check that it runs, and the address")
    if isinstance(err, exceptions.ResponseError):
        return _of_response(text, "OOM" if isinstance(err, exceptions.OutOfMemoryError) else code, address)
    return StoreError(f"{address}: {text}")


def code_of(text: str) -> str:
    """The code of a refusal, wherever the server has put it; empty if there is none."""
    found = _CODE.search(text)
    return found[1] if found else ""


def _of_response(text: str, code: str, address: str) -> StoreError:
    if code == "OOM":  # the driver may have taken the code off
        return StoreUnavailable(f"{address} has no memory left; nothing was written. Raise maxmemory, or prune")
    if code == "MISCONF":
        return StoreUnavailable(
            f"{address} cannot save its data and takes no writes; nothing was written. Free space on its disk, and see "
            "its log"
        )
    if code in _PASSING:
        return StoreUnavailable(f"{address}: {text}")
    if "unknown command" in text.lower():
        return StoreError(f"{address} is too old, or forbids a command that Rota needs: {text}")
    return StoreError(f"{address}: {text}")


def _cause(err: BaseException) -> str:
    """The system's own words where there are some: the driver's may repeat the address."""
    cause = err.__cause__ or err.__context__
    words = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(err)
    return words.rstrip(".")
