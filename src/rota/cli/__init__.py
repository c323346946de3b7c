"""The command line: `rota …`, or `python -m rota …`."""
