"""Defines the JSON of each thing: one struct per kind, the same for the command line, HTTP, event streams and pages.

Instants are UTC. Configured spans are text such as "6h"; measured durations are seconds.
"""
