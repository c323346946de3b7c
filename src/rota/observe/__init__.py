"""Observers of the engine's events."""
