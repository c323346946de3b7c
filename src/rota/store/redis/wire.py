"""What scripts are told, as MessagePack that every server's Lua understands: it knows text, but no binary type."""

from __future__ import annotations

from typing import Any

import msgspec

encode = msgspec.msgpack.Encoder().encode


def binary(data: bytes) -> msgspec.Raw:
    """Bytes as text of any content: Lua's strings are bytes."""
    size = len(data)
    head = b"\xda" + size.to_bytes(2, "big") if size < 65_536 else b"\xdb" + size.to_bytes(4, "big")
    return msgspec.Raw(head + data)


def wired(value: Any) -> Any:
    """A value with all bytes within it made ready, and with false for nothing: a nil would end a Lua list."""
    if value is None:
        return False
    if isinstance(value, bytes):
        return binary(value)
    if isinstance(value, (list, tuple)):
        return [wired(part) for part in value]
    if isinstance(value, dict):
        return {name: wired(part) for name, part in value.items()}
    return value
