"""What is secret, and how values are shown without it."""
