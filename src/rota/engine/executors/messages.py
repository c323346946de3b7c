"""Encodes the messages between a worker and its child processes, as frames over one socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.engine.executors.sources import Source
from rota.model.jobs.job import Job
from rota.model.jobs.outcome import (
    Died,
    Failed,
    RetryAsked,
    Returned,
    Snoozed,
    Stopped,
    Succeeded,
    TaskUnknown,
    Undecodable,
)

if TYPE_CHECKING:
    from rota.model.jobs.outcome import Outcome

_HEAD = 4  # bytes of a frame's length


class RunRequest(Struct, frozen=True, tag=True):
    """Run this job. Its payload is the JSON from the store; no object is ever pickled."""

    job: Job
    source: Source
    log_level: int
    redact: tuple[str, ...] = ()  # names of the worker's settings
    checks_types: bool = False
    middleware: tuple[str, ...] = ()  # the classes that the worker's app uses; the child's must be the same


class Started(Struct, frozen=True, tag=True):
    """The task was found, and is called now."""


class Output(Struct, frozen=True, tag=True):
    """Text that the task wrote; a log record is a whole line."""

    level: str
    text: str
    is_record: bool = False


class Progress(Struct, frozen=True, tag=True):
    """The task's progress, as it reports it."""

    progress: str


class Secrets(Struct, frozen=True, tag=True):
    """Texts to hide in what the task writes: middleware decrypted them in the child."""

    texts: tuple[str, ...]


class Finished(Struct, frozen=True, tag=True):
    """How the task ended: an outcome's name and fields."""

    kind: str
    fields: list[Any]


Message = RunRequest | Started | Output | Progress | Secrets | Finished

_OUTCOMES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Succeeded, Failed, RetryAsked, Snoozed, Stopped, TaskUnknown, Undecodable, Returned, Died)
}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def pack(message: Message) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(_HEAD) + body


def ended(outcome: Outcome) -> Finished:
    return Finished(type(outcome).__name__, list(outcome))


def outcome_in(message: Finished) -> Outcome:
    outcome: Outcome = _OUTCOMES[message.kind](*message.fields)
    return outcome


class Frames:
    """Decodes messages from bytes as they arrive."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        self._rest += data
        messages: list[Message] = []
        at = 0
        while len(self._rest) >= at + _HEAD:
            end = at + _HEAD + int.from_bytes(self._rest[at : at + _HEAD])
            if len(self._rest) < end:
                break
            messages.append(_decode(self._rest[at + _HEAD : end]))
            at = end
        del self._rest[:at]
        return messages
