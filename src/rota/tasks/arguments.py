"""Checks whether a call fits a function, and converts JSON values to the types that its hints ask for."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec

from rota.errors import BadPayload
from rota.model.jobs.codecs import Codecs
from rota.model.jobs.lossless import changed_type, fitting_hint, is_open
from rota.model.jobs.payload import Passed
from rota.model.secrets.hints import Marks, hints_of, is_scalar, marks_of, positional, readable, secrets_of
from rota.model.secrets.redaction import Redaction, hidden, texts_in
from rota.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rota.model.jobs.payload import Call

_CLOSED = object()  # a parameter whose hint names the type of its value
_CHECKED = (str, int, float, bool, list, dict)
_SCALARS = (str, int, float, bool, type(None))
_PLAIN = {Any, str, int, float, bool, list, dict, type(None), inspect.Parameter.empty, object}


class Signature:
    """One function's parameters, read once."""

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
        self._scalars: dict[str, tuple[type, ...]] | None = None
        self.shows_all: bool | None = None  # no parameter is hidden by a mark or by the names that are always hidden

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The function's parameters, by name."""
        return self._signature.parameters

    @property
    def marks(self) -> Marks:
        """The values that the hints mark as secret; read once."""
        if self._marks is None:
            self._marks = marks_of(self._function)
        return self._marks

    def is_secret(self, name: str, extra: tuple[str, ...] = ()) -> bool:
        """Whether the value of this parameter is hidden from readers."""
        return name in self.marks.parameters or Redaction(extra).is_secret(name)

    def secrets(self, args: tuple[Any, ...], kwargs: dict[str, Any], extra: tuple[str, ...] = ()) -> list[int | str]:
        """The entries of a payload that name the secrets of this call; most calls have none."""
        if self.shows_all is None:
            self.shows_all = not self.marks and not any(map(self.is_secret, self.parameters))
        if self.shows_all and not extra and all(map(is_scalar, args)) and all(map(is_scalar, kwargs.values())):
            return []
        return secrets_of(self.parameters, self.marks, extra, args, kwargs)

    @property
    def shape(self) -> str:
        """The parameters for people: a default may be a secret, so that it is shown as an ellipsis."""
        signature = self.readable
        shown = [one if one.default is one.empty else one.replace(default=...) for one in signature.parameters.values()]
        return str(signature.replace(parameters=shown)).replace("Ellipsis", "…")

    @property
    def readable(self) -> inspect.Signature:
        """The function's signature for people: without marks such as `Annotated[…, Secret]`."""
        return readable(self._function, self._signature)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse a call that the function would refuse, before anything is stored."""
        if not kwargs and len(args) in self._counts:
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as err:
            unknown = next(self._unknown_keywords(kwargs), None)  # named first: it is the cause of a missing one
            said = err if unknown is None else unknown
            raise BadPayload(
                sentence("arguments.misfit", "{task}{shape}: {error}", task=self._name, shape=self.shape, error=said)
            ) from err

    def check_types(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse a value that does not fit a plain hint such as `int` or `str | None`. It is not shown."""
        if self._scalars is None:
            self._scalars = self._find_scalars()
        if not self._scalars:
            return
        bound = self._signature.bind(*args, **kwargs)
        for name, kinds in self._scalars.items():
            if name != "return" and name in bound.arguments:
                for value in self._each(name, bound.arguments[name]):
                    if not _is_one_of(value, kinds):
                        raise BadPayload(
                            sentence(
                                "arguments.kind",
                                "argument '{name}' of {task} must be {kinds}, got {got}",
                                name=name,
                                task=self._name,
                                kinds=_words(kinds),
                                got=type(value).__name__,
                            )
                        )

    def wrong_result(self, value: Any) -> str:
        """Why a result does not fit a plain return hint; "" if it does."""
        if self._scalars is None:
            self._scalars = self._find_scalars()
        kinds = self._scalars.get("return")
        if kinds is None or _is_one_of(value, kinds):
            return ""
        return f"{type(value).__name__}, and its return hint says {_words(kinds)}"

    def _find_scalars(self) -> dict[str, tuple[type, ...]]:
        found = {name: _scalar_kinds(hint) for name, hint in hints_of(self._function).items()}
        defaults = {name: one.default for name, one in self.parameters.items()}
        return {
            name: kinds if defaults.get(name, ...) is not None else tuple({**dict.fromkeys(kinds), type(None): None})
            for name, kinds in found.items()
            if kinds and kinds != (type(None),) and (name in self.parameters or name == "return")
        }

    def _each(self, name: str, value: Any) -> Any:
        match self.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                return value
            case inspect.Parameter.VAR_KEYWORD:
                return value.values()
            case _:
                return (value,)

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
                    f"JSON; annotate the parameter, as in `{name}: {fitting_hint(value)}`, or pass plain values"
                )

    @property
    def _rest(self) -> str:
        return next((name for name, one in self.parameters.items() if one.kind is one.VAR_KEYWORD), "")

    def _find_open(self) -> dict[str, Any]:
        hints = hints_of(self._function)
        return {name: hints.get(name, Any) for name in self.parameters if is_open(hints.get(name, Any))}

    def typed(self, call: Call) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the hints define them: a date where JSON has text."""
        types = self._needed_types()
        if not types:
            return call.args, call.kwargs
        try:
            bound = self._signature.bind(*call.args, **call.kwargs)
        except TypeError as err:
            raise BadPayload(
                sentence("arguments.misfit", "{task}{shape}: {error}", task=self._name, shape=self.shape, error=err)
            ) from err
        for name, hint in types.items():
            if name in bound.arguments:
                bound.arguments[name] = self._converted(name, bound.arguments[name], hint)
        return list(bound.args), bound.kwargs

    def misfit(self, call: Call) -> str:
        """Why the function, as it is now, does not take a call that was stored; "" if it does, or if that cannot be
        known."""
        if call.passed is Passed.REPLACED:
            return ""
        return next(self.misfits(call), "")

    def misfits(self, call: Call, *, is_written: bool = False) -> Iterator[str]:
        """Every reason why the function, as it is now, does not take a call.

        If a person wrote the call into a file, which no type checker reads, plain hints such as `int` count too.
        """
        for unknown in self._unknown_keywords(call.kwargs):
            yield f"{self._name}{self.shape}: {unknown}"
        taken = {name: value for name, value in call.kwargs.items() if self._takes_keyword(name)}
        try:
            bound = self._signature.bind_partial(*call.args, **taken)
        except TypeError as err:
            yield f"{self._name}{self.shape}: {err}"
            return
        for name, one in self.parameters.items():
            is_needed = one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
            if is_needed and name not in bound.arguments:
                yield f"{self._name}{self.shape}: missing a required argument: '{name}'"
        plain = self._plain_types() if is_written else {}
        for name, hint in (self._needed_types() | plain).items():
            if name in bound.arguments and (misfit := self._misfit_of(name, bound.arguments[name], hint)):
                yield misfit

    def _unknown_keywords(self, kwargs: dict[str, Any]) -> Iterator[str]:
        """What is wrong with each argument whose name the function does not know."""
        for name in sorted(kwargs):
            if not self._takes_keyword(name):
                close = get_close_matches(name, self.parameters, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                yield f"got an unexpected keyword argument '{name}'{hint}"

    def _takes_keyword(self, name: str) -> bool:
        one = self.parameters.get(name)
        if one is not None and one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}:
            return True
        return any(other.kind is other.VAR_KEYWORD for other in self.parameters.values())

    def _misfit_of(self, name: str, value: Any, hint: Any) -> str:
        try:
            self._converted(name, value, hint, strict=hint in _CHECKED)
        except BadPayload as err:
            return str(err)
        except Exception as err:  # noqa: BLE001 - a type's own code may raise anything
            return f"{type(err).__name__}: {err}"
        return ""

    def _plain_types(self) -> dict[str, Any]:
        """Parameters with a plain hint; None is accepted if it is the default."""
        hints = hints_of(self._function)
        return {
            name: hints[name]
            for name, one in self.parameters.items()
            if hints.get(name) in _CHECKED and one.default is not None
        }

    def _needed_types(self) -> dict[str, Any]:
        return self._types if self._types is not None else self._find_types()

    def _find_types(self) -> dict[str, Any]:
        """The hints that JSON alone does not satisfy; one that cannot be resolved leaves the plain JSON value."""
        hints = hints_of(self._function)
        self._types = {
            name: hint
            for name, hint in hints.items()
            if name in self.parameters and not _is_scalar_hint(hint) and not isinstance(hint, str)
        }
        return self._types

    @property
    def returns(self) -> Any:
        """The return type; Any if there is none, or it cannot be resolved."""
        hint = hints_of(self._function).get("return", Any)
        return Any if hint is type(None) or isinstance(hint, str) else hint

    def _converted(self, name: str, value: Any, hint: Any, *, strict: bool = False) -> Any:
        """An argument as its hint defines it; of `*rest` and `**rest`, each."""
        match self.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                return tuple(self._convert(name, item, hint, strict=strict) for item in value)
            case inspect.Parameter.VAR_KEYWORD:
                return {key: self._convert(key, item, hint, strict=strict) for key, item in value.items()}
            case _:
                return self._convert(name, value, hint, strict=strict)

    def _convert(self, name: str, value: Any, hint: Any, *, strict: bool) -> Any:
        try:
            return msgspec.convert(value, hint, strict=strict, dec_hook=self.codecs.decode)
        except msgspec.ValidationError as err:
            if not self.is_secret(name):
                raise BadPayload(
                    sentence(
                        "arguments.bad", "argument '{name}' of {task}: {error}", name=name, task=self._name, error=err
                    )
                ) from err
            words = hidden(str(err), texts_in([value]))
            raise BadPayload(
                sentence(
                    "arguments.bad", "argument '{name}' of {task}: {error}", name=name, task=self._name, error=words
                )
            ) from None  # the cause has the value
        except (TypeError, NotImplementedError):
            return value  # a hint that no JSON value can become: the function gets the value that was sent


def decode_value(packed: bytes, hint: Any, codecs: Codecs) -> Any:
    """JSON as the type that a hint names; as plain JSON if the hint names no type that JSON can become."""
    try:
        return msgspec.json.decode(packed, type=hint, strict=False, dec_hook=codecs.decode)
    except (msgspec.ValidationError, TypeError, NotImplementedError):
        return msgspec.json.decode(packed)


def _scalar_kinds(hint: Any) -> tuple[type, ...]:
    """The types of a plain hint, or of a union of such; () for any other hint."""
    if hint in _SCALARS:
        return (hint,)
    parts = get_args(hint) if get_origin(hint) in {Union, UnionType} else ()
    return parts if parts and all(part in _SCALARS for part in parts) else ()


def _is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _words(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)


def _is_scalar_hint(hint: Any) -> bool:
    return any(hint is plain for plain in _PLAIN)
