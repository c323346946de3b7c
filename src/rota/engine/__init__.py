"""The engine: small services, one duty each, around a store."""
