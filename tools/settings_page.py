"""The page about settings: tables of all keys, made from those that Rota reads."""

from __future__ import annotations

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
from rota.config.settings import KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.config.fields import Field

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
    "alerts.NAME": ("An alert rule, by its name: a condition, what it is about, and the channels to notify.", ALERT),
    "channels.NAME": ("Where alerts are sent, by its name: `webhook` or `email`.", CHANNEL),
    "heartbeats.ID": ("A URL that is called when runs of the schedule of that id end.", HEARTBEAT),
}


def settings_page() -> str:
    return (
        "# Settings\n\n[The guide](../guides/settings.md) says how to set them, and which value wins.\n\n"
        f"{settings_table()}\n"
        "## What rota.yaml declares beside settings\n\n"
        "[The guide](../guides/rota-yaml.md) says how it reaches the store, and what a deploy changes.\n\n"
        f"{declared_tables()}"
    )


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
