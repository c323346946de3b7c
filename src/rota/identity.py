"""Identity: who makes a change, where nobody says it: the user of the system, and the host."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def whoami() -> str:
    """ann@build-7"""
    import getpass  # noqa: PLC0415 - who only enqueues needs neither a terminal
    import socket  # noqa: PLC0415 - nor a network

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
