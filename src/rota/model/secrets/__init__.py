"""Decides which values are secret, and shows values without them."""
