"""Starts private servers for tests and benchmarks: packages from PyPI, on free loopback ports, without root."""
