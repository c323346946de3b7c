"""The store's own clock: what is kept about it, and repair after it was wrong."""
