"""Private servers for tests and benchmarks: real ones, from packages on PyPI, on free loopback ports, without root."""
