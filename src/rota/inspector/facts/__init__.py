"""What JSON says about each thing: one struct per kind, the same for the command line, HTTP, event streams and pages.

Instants are UTC. Spans that somebody configured are text such as "6h"; measured durations are seconds.
"""
