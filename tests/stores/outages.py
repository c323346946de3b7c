"""Calls to a server that comes back after an outage."""

from __future__ import annotations

import time

from rota.errors import StoreUnavailable


def in_the_end(work, within=20.0):
    """What a service does: try again while the store is away."""
    until = time.monotonic() + within
    while True:
        try:
            return work()
        except StoreUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)  # a server that comes back sends no signal
