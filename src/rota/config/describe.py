"""The settings in words: a table for the reference, and a commented rota.yaml to begin with. Both come from KEYS."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rota.config.settings import KEYS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.config.settings import Key

WIDTH = 100


def settings_table() -> str:
    """Every key as a row of a Markdown table."""
    rows = ["| key | environment | wanted | default | meaning |", "|---|---|---|---|---|"]
    for key in KEYS.values():
        default = key.otherwise or f"`{key.text(key.default)}`"
        rows.append(f"| `{key.path}` | `{key.variable}` | {key.kind.wanted} | {default} | {key.meaning} |")
    return "\n".join(rows) + "\n"


def sample(app: str) -> str:
    """A rota.yaml in which everything but the app is commented out."""
    lines = [
        "# Settings of this project; what is commented out shows its default, or an example.",
        "# Each can be set by a variable too, as in ROTA_LEASE=30s and ROTA_WORKER_CONCURRENCY=4.",
        "",
    ]
    for key in (key for path, key in KEYS.items() if "." not in path):
        lines += [*_comment(key), f"app: {app}" if key.path == "app" else f"# {key.path}: {key.example}", ""]
    for name, part in PARTS.items():
        lines.append(f"{name}:  # {part.__doc__}")
        for key in (key for path, key in KEYS.items() if path.startswith(f"{name}.")):
            lines += [f"  {line}" for line in (*_comment(key), f"# {key.path.partition('.')[2]}: {key.example}")]
        lines.append("")
    return "\n".join(lines)


def _comment(key: Key) -> Iterator[str]:
    """What it means. Two signs, so that a line to be uncommented can be told from one to be read."""
    otherwise = f" Default: {key.otherwise}." if key.otherwise and key.otherwise not in {"none", key.example} else ""
    text = f"{key.meaning}{otherwise}".replace("`", "")
    yield from (f"## {line}" for line in textwrap.wrap(text, WIDTH))
