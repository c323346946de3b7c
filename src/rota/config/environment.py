"""Reads settings from the environment: ROTA_LEASE=30s sets `lease`, ROTA_WORKER_CONCURRENCY=4 sets
`worker.concurrency`.

Variables that name no setting are ignored: orchestrators put their own there (ROTA_PORT, ROTA_SERVICE_HOST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.config.layers import Layer, Origin, Reading, Value
from rota.config.settings import KEYS
from rota.config.words import misfit
from rota.errors import RotaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CONFIG = "ROTA_CONFIG"  # which file to read

_OTHERS = (CONFIG, "ROTA_DEBUG")


def read_environment(environment: Mapping[str, str], folder: Path) -> Reading:
    """The settings of the variables. An empty variable sets nothing, as when a deployment passes on one that it does
    not have."""
    layer: Layer = {}
    complaints: list[str] = []
    for key in KEYS.values():
        text = environment.get(key.variable, "").strip()
        if not text:
            continue
        try:
            layer[key.path] = Value(key.kind.read(text), Origin("environment", key.variable, folder))
        except RotaError as err:
            complaints.append(f"{key.variable}: {misfit(key.kind.shown(text), key.kind.wanted, err)}")
    return Reading(layer, complaints)


def near_misses(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that name no setting, each with the one that it probably should be."""
    import difflib  # noqa: PLC0415 - only lint asks

    known = [*(key.variable for key in KEYS.values()), *_OTHERS]
    for name in sorted(environment):
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.85) if name.startswith("ROTA_") else []
        if close and name not in known:
            yield name, close[0]
