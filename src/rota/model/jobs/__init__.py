"""Jobs: the value, its states, and what becomes of it."""
