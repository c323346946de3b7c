"""Writes a commented rota.yaml to begin with, made from the settings."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rota.config.settings import KEYS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.config.settings import Key

WIDTH = 100
EXAMPLES = """\
## Schedules beside those of the code, tenants, sources, queues of documents and alerts; rota lint checks them.
# schedules:
#   nightly: {task: cleanup, cron: "0 3 * * *", kwargs: {max_age_days: 30}}
# tenants:
#   acme: {tz: Asia/Kolkata}
# sources:
#   shop: {task: shop.sync, collections: [{name: orders, schedule: "@hourly"}]}
# documents:
#   reminders: {source: mongodb://localhost/shop, collection: orders, handler: shop:remind}
# channels:
#   ops: {webhook: env:OPS_WEBHOOK}
# alerts:
#   nightly: {when: fails, schedule: nightly, channels: [ops]}
# heartbeats:
#   nightly: {url: env:NIGHTLY_HEARTBEAT}
"""


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
    return "\n".join([*lines, EXAMPLES])


def _comment(key: Key) -> Iterator[str]:
    """The meaning of a key. Two signs, so that a line to uncomment differs from one to read."""
    otherwise = f" Default: {key.otherwise}." if key.otherwise and key.otherwise not in {"none", key.example} else ""
    text = f"{key.meaning}{otherwise}".replace("`", "")
    yield from (f"## {line}" for line in textwrap.wrap(text, WIDTH))
