"""What is here for speed alone: each file can be deleted, and the store falls back to its ordinary path."""
