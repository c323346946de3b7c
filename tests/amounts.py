"""How much of a long test runs, with `make test` and with `make soak`, and how long a test waits for what must come."""

from __future__ import annotations

import os

IS_SOAK = os.environ.get("ROTA_SOAK") == "1"
PATIENCE = 120.0  # seconds; only a broken test waits this long, however busy the machine is


def amount(usual: int, soak: int, variable: str = "") -> int:
    """A number of seeds, steps or kills; an environment variable of that name decides over both."""
    return int(os.environ.get(variable, "") or (soak if IS_SOAK else usual))
