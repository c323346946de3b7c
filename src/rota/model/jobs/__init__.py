"""Defines jobs: the value, its states, and the decisions about it."""
