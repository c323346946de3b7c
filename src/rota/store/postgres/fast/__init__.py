"""Holds the special paths for speed: each file can be deleted, and the store uses its ordinary path."""
