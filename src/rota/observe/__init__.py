"""Observes the engine's events: logs, metrics and JSON lines."""
