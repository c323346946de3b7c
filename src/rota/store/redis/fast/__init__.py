"""Special paths for speed: without them, the store does the same by its general ones."""
