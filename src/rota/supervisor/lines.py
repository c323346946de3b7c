"""Writes the parent's log lines to stderr, in the form of the workers' lines."""

from __future__ import annotations

import json
import os
import time

_LEVELS = ("debug", "info", "warning", "error")
_COLOURS = {"info": 34, "warning": 33, "error": 31}


class Lines:
    """Logs what the parent does. While nothing is wrong it logs nothing: workers log their own starts and stops."""

    def __init__(self, level: str, form: str = "text") -> None:
        self._form = form
        self._least = _LEVELS.index(level)
        self._has_colours = os.isatty(2) and not os.environ.get("NO_COLOR")

    def say(self, level: str, text: str) -> None:
        """Write one line, in one write. A terminal that is gone is no error."""
        if _LEVELS.index(level) < self._least:
            return
        now = time.time()
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
        line = self._json(at, level, text) if self._form == "json" else self._plain(at, level, text)
        try:
            os.write(2, f"{line}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            return

    def _json(self, at: str, level: str, text: str) -> str:
        fields = {"time": at, "level": level, "logger": "rota.parent", "msg": text, "component": "parent"}
        return json.dumps(fields)

    def _plain(self, at: str, level: str, text: str) -> str:
        shown = f"{level.upper():<7}"
        if self._has_colours and level in _COLOURS:
            shown = f"\x1b[{_COLOURS[level]}m{shown}\x1b[0m"
        return f"{at} {shown} rota.parent: {text}"
