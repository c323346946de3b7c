"""Fires due schedules."""
