"""Encoders and decoders of an app's own types, for arguments and results that JSON does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.inspect import CustomType, type_info

from rota.errors import BadOption, DuplicateName

if TYPE_CHECKING:
    from collections.abc import Callable


class Codec(NamedTuple):
    """The encoder and the decoder for values of one type."""

    encode: Callable[[Any], Any]  # to what JSON can keep
    decode: Callable[[Any], Any]  # and back


class Codecs:
    """The codecs of one app, by type."""

    def __init__(self) -> None:
        self._codecs: dict[type, Codec] = {}

    def add(self, kind: type, codec: Codec) -> None:
        """Register a type; refuses one for which the codec would never be called."""
        if not isinstance(kind, type) or not callable(codec.encode) or not callable(codec.decode):
            raise BadOption(f"codec({kind!r}) takes a class, encode=function and decode=function")
        if not _is_unknown(kind):
            raise BadOption(
                f"{kind.__qualname__} needs no codec: it is kept as it is where the parameter is annotated with it"
            )
        if self._codecs.setdefault(kind, codec) is not codec:
            raise DuplicateName(f"{kind.__qualname__} has a codec already; keep one of them")

    def encode(self, value: Any) -> Any:
        """The JSON form of a value of an own type. A subclass is encoded as its nearest registered base."""
        for kind in type(value).__mro__:
            if kind in self._codecs:
                return self._codecs[kind].encode(value)
        name = type(value).__qualname__
        raise TypeError(f"a value of type {name} is no JSON; register the type with app.codec({name}, …)")

    def decode(self, kind: type, value: Any) -> Any:
        """The value of an own type, from its JSON form."""
        codec = self._codecs.get(kind)
        if codec is None:
            raise NotImplementedError(kind)
        return value if isinstance(value, kind) else codec.decode(value)


def _is_unknown(kind: type) -> bool:
    """Whether msgspec asks for help with values of this type."""
    try:
        return isinstance(type_info(kind), CustomType)
    except TypeError:
        return False
