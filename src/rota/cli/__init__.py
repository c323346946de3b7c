"""Defines the command line: `rota …`, or `python -m rota …`."""
