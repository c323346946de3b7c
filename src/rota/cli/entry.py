"""Starts and ends the command's process: signals count from the first moment, and nothing keeps it from ending.

`rota` and `python -m rota` begin here, before the library is imported: a signal that comes meanwhile waits until it is
known what it means. They also end here: what a job has left behind, such as a thread, must not hold the process.
"""

from __future__ import annotations

import os
import sys

from rota.cli import early


def start(args: list[str] | None = None, prog_name: str = "rota") -> None:
    """Run the command that was typed, or the one of a framework that was given its arguments."""
    early.hold()
    _open_closed_streams()
    from rota.cli.leaving import watch_exit  # noqa: PLC0415 - these bring in the whole library
    from rota.cli.main import main  # noqa: PLC0415

    try:
        main(args=args, prog_name=prog_name)
    except early.EndedEarly:
        code: object = 0
    except SystemExit as end:
        code = end.code
    watch_exit(code if isinstance(code, int) else 0)
    sys.exit(code)  # type: ignore[arg-type]  # whatever it was


def _open_closed_streams() -> None:
    """Give a process that was started without stderr, for instance by `2>&-`, one that goes nowhere. Otherwise the next
    file that it opens takes the number, and gets what is written there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))
