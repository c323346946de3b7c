"""Defines schedules: the value, its open times, and its edits."""
