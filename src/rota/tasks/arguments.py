"""Arguments: whether a call fits a function, and how JSON values become the types that its hints ask for."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadPayload
from rota.model.codecs import Codecs
from rota.model.lossless import changed_type, is_open
from rota.model.marks import Marks, hints_of, marks_of, positional, secrets_of
from rota.model.redaction import Redaction, hidden, texts_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rota.model.payload import Call

_CLOSED = object()  # a parameter whose hint says what its value is
_PLAIN = {Any, str, int, float, bool, list, dict, type(None), inspect.Parameter.empty, object}


class Signature:
    """One function's parameters, looked at once."""

    def __init__(self, function: Callable[..., Any], name: str, codecs: Codecs | None = None) -> None:
        self._function = function
        self._name = name
        self.codecs = codecs or Codecs()  # of the app's own types
        self.encode = self.codecs.encode
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        simple = all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        required = sum(parameter.default is parameter.empty for parameter in parameters)
        self._counts = range(required, len(parameters) + 1) if simple else range(0)
        self._types: dict[str, Any] | None = None
        self._open: dict[str, Any] | None = None  # parameters whose hints say too little to make a value again
        self._marks: Marks | None = None
        self.shows_all: bool | None = None  # nothing of it is hidden by a mark or by the names of always

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The function's parameters, by name."""
        return self._signature.parameters

    @property
    def marks(self) -> Marks:
        """What the hints mark as secret; looked for once."""
        if self._marks is None:
            self._marks = marks_of(self._function)
        return self._marks

    def is_secret(self, name: str, extra: tuple[str, ...] = ()) -> bool:
        """Whether the value of this parameter is hidden from those who look."""
        return name in self.marks.parameters or Redaction(extra).is_secret(name)

    def secrets(self, args: tuple[Any, ...], kwargs: dict[str, Any], extra: tuple[str, ...] = ()) -> list[int | str]:
        """What a payload of this call must say is secret; most say nothing."""
        if self.shows_all is None:
            self.shows_all = not self.marks and not any(map(self.is_secret, self.parameters))
        if self.shows_all and not extra:
            return []
        return secrets_of(self.parameters, self.marks, extra, args, kwargs)

    @property
    def _shape(self) -> str:
        """The parameters for an error: a default may be a secret, so that it is shown as an ellipsis."""
        shown = [
            one if one.default is one.empty else one.replace(default=...) for one in self._signature.parameters.values()
        ]
        return str(self._signature.replace(parameters=shown)).replace("Ellipsis", "…")

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse a call that the function would refuse, before anything is stored."""
        if not kwargs and len(args) in self._counts:
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as err:
            raise BadPayload(f"{self._name}{self._shape}: {err}") from err

    def canonical(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """A call's arguments as JSON, the same for `f(1, b=2)` and `f(b=2, a=1)`, defaults filled in."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return msgspec.json.encode(bound.arguments, order="sorted", enc_hook=self.encode)

    def refuse_changed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse a value that JSON would give back as something else, because its parameter has no hint."""
        if self._open is None:
            self._open = self._find_open()
        for name, value in [*zip(positional(self.parameters), args, strict=False), *kwargs.items()]:
            hint = self._open.get(name if name in self.parameters else self._rest, _CLOSED)
            changed = "" if hint is _CLOSED else changed_type(value, hint)
            if changed:
                raise BadPayload(
                    f"argument '{name}' of {self._name} has a {changed}, and nothing says how to make that again from "
                    f"JSON; annotate the parameter, as in `{name}: {changed.partition(' ')[0]}`, or pass plain values"
                )

    @property
    def _rest(self) -> str:
        return next((name for name, one in self.parameters.items() if one.kind is one.VAR_KEYWORD), "")

    def _find_open(self) -> dict[str, Any]:
        hints = hints_of(self._function)
        return {name: hints.get(name, Any) for name in self.parameters if is_open(hints.get(name, Any))}

    def typed(self, call: Call) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the hints ask for them: a date where JSON has text."""
        types = self._types if self._types is not None else self._find_types()
        if not types:
            return call.args, call.kwargs
        try:
            bound = self._signature.bind(*call.args, **call.kwargs)
        except TypeError as err:
            raise BadPayload(f"{self._name}{self._shape}: {err}") from err
        for name, hint in types.items():
            if name in bound.arguments:
                bound.arguments[name] = self._converted(name, bound.arguments[name], hint)
        return list(bound.args), bound.kwargs

    def misfit(self, call: Call) -> str:
        """Why the function, as it is now, does not take a call that was kept; "" where it does."""
        try:
            self.check(tuple(call.args), call.kwargs)
            self.typed(call)
        except BadPayload as err:
            return str(err)
        except Exception as err:  # noqa: BLE001 - a type's own code may raise anything
            return f"{type(err).__name__}: {err}"
        return ""

    def _find_types(self) -> dict[str, Any]:
        """The hints that JSON alone does not satisfy; one that cannot be resolved leaves the plain JSON value."""
        hints = hints_of(self._function)
        self._types = {
            name: hint
            for name, hint in hints.items()
            if name in self.parameters and not _is_plain(hint) and not isinstance(hint, str)
        }
        return self._types

    @property
    def returns(self) -> Any:
        """The return type; Any where there is none, or it cannot be resolved."""
        hint = hints_of(self._function).get("return", Any)
        return Any if hint is type(None) or isinstance(hint, str) else hint

    def _converted(self, name: str, value: Any, hint: Any) -> Any:
        """An argument as its hint asks for it; of `*rest` and `**rest`, each."""
        match self.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                return tuple(self._convert(name, item, hint) for item in value)
            case inspect.Parameter.VAR_KEYWORD:
                return {key: self._convert(key, item, hint) for key, item in value.items()}
            case _:
                return self._convert(name, value, hint)

    def _convert(self, name: str, value: Any, hint: Any) -> Any:
        try:
            return msgspec.convert(value, hint, strict=False, dec_hook=self.codecs.decode)
        except msgspec.ValidationError as err:
            if not self.is_secret(name):
                raise BadPayload(f"argument '{name}' of {self._name}: {err}") from err
            words = hidden(str(err), texts_in([value]))
            raise BadPayload(f"argument '{name}' of {self._name}: {words}") from None  # the cause has the value
        except (TypeError, NotImplementedError):
            return value  # a hint that no JSON value can become: the function gets what was sent


def decode_value(packed: bytes, hint: Any, codecs: Codecs) -> Any:
    """JSON as the type that a hint names; as plain JSON where it names none that JSON can become."""
    try:
        return msgspec.json.decode(packed, type=hint, strict=False, dec_hook=codecs.decode)
    except (msgspec.ValidationError, TypeError, NotImplementedError):
        return msgspec.json.decode(packed)


def _is_plain(hint: Any) -> bool:
    return any(hint is plain for plain in _PLAIN)
