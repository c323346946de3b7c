"""The contract on Redis."""
