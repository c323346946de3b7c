"""The contract on PostgreSQL."""
