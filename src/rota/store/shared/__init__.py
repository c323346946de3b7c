"""Rules and steps that every store follows."""
