"""The settings in words: tables for the reference, and a commented rota.yaml to begin with, made from what is read."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rota.config.fields import (
    ALERT,
    CHANNEL,
    COLLECTION,
    DOCUMENT_FIELDS,
    DOCUMENTS,
    HEARTBEAT,
    SCHEDULE,
    SOURCE,
    TENANT,
)
from rota.config.settings import KEYS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rota.config.fields import Field
    from rota.config.settings import Key

WIDTH = 100
DECLARED = {
    "schedules.ID": (
        "A schedule, by its id: a task, one of `cron`, `every`, `calendar` and `once`, options.",
        SCHEDULE,
    ),
    "tenants.NAME": ("A tenant, by its name.", TENANT),
    "sources.NAME": ("A source whose collections are kept in sync, by its name.", SOURCE),
    "sources.NAME.collections": ("Each item is a mapping, or a bare name.", COLLECTION),
    "documents.NAME": ("A queue of documents, by its name.", DOCUMENTS),
    "documents.NAME.fields": ("Paths of fields; the word `four` alone: the lock has no fields.", DOCUMENT_FIELDS),
    "alerts.NAME": ("An alert rule, by its name: a condition, what it is about, and who is told.", ALERT),
    "channels.NAME": ("Where alerts are sent, by its name: `webhook` or `email`.", CHANNEL),
    "heartbeats.ID": ("A URL that is called when runs of the schedule of that id end.", HEARTBEAT),
}
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


def settings_table() -> str:
    """Every key as a row of a Markdown table."""
    rows = ["| key | meaning | wanted | default | environment |", "|---|---|---|---|---|"]
    for key in KEYS.values():
        text = key.text(key.default)
        default = key.otherwise or (f"`{text}`" if text else "none")
        rows.append(f"| `{key.path}` | {key.meaning} | {_escaped(key.kind.wanted)} | {default} | `{key.variable}` |")
    return "\n".join(rows) + "\n"


def declared_tables() -> str:
    """The keys of what a file declares, a Markdown table for each."""
    parts = (f"### {path}\n\n{words}\n\n{_field_table(fields)}" for path, (words, fields) in DECLARED.items())
    return "\n".join(parts)


def _field_table(fields: Mapping[str, Field]) -> str:
    rows = [f"| `{name}` | {field.meaning} | {_escaped(field.kind.wanted)} |" for name, field in fields.items()]
    return "\n".join(["| key | meaning | wanted |", "|---|---|---|", *rows]) + "\n"


def _escaped(text: str) -> str:
    """Text in which an underscore does not begin an emphasis."""
    return text.replace("_", "\\_")


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
    """What it means. Two signs, so that a line to uncomment differs from one to read."""
    otherwise = f" Default: {key.otherwise}." if key.otherwise and key.otherwise not in {"none", key.example} else ""
    text = f"{key.meaning}{otherwise}".replace("`", "")
    yield from (f"## {line}" for line in textwrap.wrap(text, WIDTH))
