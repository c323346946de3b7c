"""Patience: how long a client may take to say what it wants. Uvicorn waits for ever, so that a few could hold it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from typing import Any

PATIENCE = 30.0  # seconds from the first moment of a request to the end of its body

_OWING = (h11.IDLE, h11.SEND_BODY)  # states of a client whose request is not whole yet


class PatientProtocol(H11Protocol):
    """Cuts off who does not come to the end of a request. Answers take as long as they take: streams live on."""

    patience = PATIENCE

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """What comes in bits does not turn the clock back: only a whole request stops it."""
        if self.conn.their_state not in _OWING or self.transport.is_closing():
            self._stop()
        elif self._end is None:
            self._end = self.loop.call_later(self.patience, self.transport.abort)  # closing waits for who does not read

    def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


def protocol_with(patience: float) -> type[PatientProtocol]:
    return type("Protocol", (PatientProtocol,), {"patience": patience})
