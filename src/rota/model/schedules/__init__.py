"""Schedules: the value, which of its times are open, and what edits do."""
