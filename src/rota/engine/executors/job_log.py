"""Collects the lines that one run writes, until the store has them."""

from __future__ import annotations

import threading
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codecs import IncrementalDecoder
    from collections.abc import Callable

MOST_LINES = 10_000
MOST_BYTES = 1024 * 1024
LONGEST_LINE = 64 * 1024  # a line that never ends is cut here

_Decoder = getincrementaldecoder("utf-8")


class JobLog:
    """The lines that one run has written and that are not yet in the store."""

    def __init__(
        self, now: Callable[[], int], hide: Callable[[str], str] = str, longest_secret: Callable[[], int] = int
    ) -> None:
        self._now = now
        self._hide = hide  # hides the job's secrets
        self._longest_secret = longest_secret  # characters of the longest that it hides
        self.flushing = threading.RLock()  # held while lines are in transit to the store
        self._lock = threading.Lock()
        self._lines: list[tuple[int, str, str]] = []  # time, level, text
        self._open: dict[str, str] = {}  # level -> a line that has not ended yet
        self._decoders: dict[str, IncrementalDecoder] = {}  # level -> the half of a character that bytes ended with
        self._in_flight: list[tuple[int, str, str]] = []  # taken, and not yet known to be in the store
        self._count = 0
        self._bytes = 0
        self._is_full = False

    def write(self, level: str, text: str) -> None:
        """Add text. Whole lines are kept; the rest is kept until its line ends."""
        with self._lock:
            *lines, rest = (self._open.pop(level, "") + text).split("\n")
            for line in lines:
                self._keep(level, line)
            if len(rest) > LONGEST_LINE:
                rest = self._cut(level, rest)
            if rest:
                self._open[level] = rest

    def _cut(self, level: str, text: str) -> str:
        """Keep the pieces of a line that is too long; return the rest. A secret that begins in a piece and ends after
        it is hidden before the cut: so much of the text is left that it is whole."""
        least = LONGEST_LINE + self._longest_secret()
        while len(text) > least:
            text = self._hide(text)
            self._keep(level, text[:LONGEST_LINE])
            text = text[LONGEST_LINE:]
        return text

    def write_bytes(self, level: str, data: bytes) -> None:
        """Add bytes as UTF-8; other bytes are shown as \\xff."""
        with self._lock:
            decoder = self._decoders.setdefault(level, _Decoder("backslashreplace"))
            text = decoder.decode(data)
        self.write(level, text)

    def line(self, level: str, text: str) -> None:
        """Add a whole line (a log record, which may span several)."""
        with self._lock:
            self._keep(level, text)

    def put_back(self, lines: list[tuple[int, str, str]]) -> None:
        """Keep lines that could not be written for the next try."""
        with self._lock:
            self._in_flight = []
            self._lines = lines + self._lines

    def kept(self) -> None:
        """The store has what was taken."""
        with self._lock:
            self._in_flight = []

    def take(self, *, is_over: bool = False) -> list[tuple[int, str, str]]:
        """Return the lines so far; at the end also those that have not ended."""
        with self._lock:
            if is_over:
                for level, rest in self._open.items():
                    text = self._hide(rest) if len(rest) > LONGEST_LINE else rest
                    for start in range(0, len(text), LONGEST_LINE):
                        self._keep(level, text[start : start + LONGEST_LINE])
                self._open.clear()
                self._lines = self._in_flight + self._lines  # a line that is stored twice is better than a lost one
            lines, self._lines = self._lines, []
            self._in_flight = lines
            return lines

    def _keep(self, level: str, text: str) -> None:
        if self._is_full:
            return
        kept = self._hide(text).replace("\x00", "\N{SYMBOL FOR NULL}").rstrip("\r").encode("utf-8", "backslashreplace")
        text = kept.decode()
        self._count += 1
        self._bytes += len(kept)
        if self._count > MOST_LINES or self._bytes > MOST_BYTES:
            self._is_full = True
            level, text = "system", f"the log is full ({MOST_LINES:,} lines or 1 MiB); what follows is not kept"
        self._lines.append((self._now(), level, text))
