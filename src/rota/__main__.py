"""`python -m rota`: the command line."""

from __future__ import annotations

from rota.cli.entry import start

if __name__ == "__main__":
    start()
