"""Runs jobs and schedules: small services with one duty each, on one store."""
