"""How much of a long test runs: the usual amount with `make test`, all of it with `make soak`."""

from __future__ import annotations

import os

IS_SOAK = os.environ.get("ROTA_SOAK") == "1"


def amount(usual: int, soak: int, variable: str = "") -> int:
    """A number of seeds, steps or kills; an environment variable of that name decides over both."""
    return int(os.environ.get(variable, "") or (soak if IS_SOAK else usual))
