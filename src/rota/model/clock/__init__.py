"""Records the state of the store's own clock, and repairs the effects of a wrong one."""
