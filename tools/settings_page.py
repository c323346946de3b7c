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
        f"# Settings\n\n[The guide](../guides/settings.md) says how to set them, and which value wins.\n\n{make()}\n"
        "## What rota.yaml declares beside settings\n\n"
        f"[The guide](../guides/rota-yaml.md) says how it reaches the store, and what a deploy changes.\n\n"
        f"{config.declared_tables()}"
    )
