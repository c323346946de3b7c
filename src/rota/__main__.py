"""Runs the command line: `python -m rota`."""

from __future__ import annotations

from rota.cli.entry import start

if __name__ == "__main__":
    start()
