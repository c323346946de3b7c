"""The page about settings: the table that the configuration gives of itself."""

from __future__ import annotations

from importlib import import_module


def settings_page() -> str | None:
    try:
        config = import_module("rota.config.describe")
    except ImportError:
        return None
    make = getattr(config, "settings_table", None)
    if make is None:
        return None
    return (
        f"# Settings\n\nHow they are given, and which wins: [the guide](../guides/settings.md).\n\n{make()}\n"
        "## What rota.yaml declares beside settings\n\nHow it reaches the store, and what a deploy changes: "
        f"[the guide](../guides/rota-yaml.md).\n\n{config.declared_tables()}"
    )
