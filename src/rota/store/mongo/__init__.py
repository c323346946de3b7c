"""The contract on MongoDB."""
