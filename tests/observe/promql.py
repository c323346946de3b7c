"""A small evaluator of PromQL, for the example alerts: two scrapes, and what an expression says of them."""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOKEN = re.compile(r'\s*([a-zA-Z_:][\w:]*|\d+(?:\.\d+)?|"[^"]*"|==|!=|>=|<=|=~|[-+*/(){}\[\],=<>])')
COMPARE = {"==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt, ">=": operator.ge}
COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a / b if b else math.nan}
AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}


class Sample(NamedTuple):
    """One number with its name and labels."""

    name: str
    labels: dict[str, str]
    value: float


Vector = list[tuple[dict[str, str], float]]


class Query:
    """One expression over what was scraped before (as long ago as any range in it) and now."""

    def __init__(self, text: str, before: Iterable[Sample], now: Iterable[Sample], time: float = 0.0) -> None:
        self._tokens = [*TOKEN.findall(text), ""]
        assert "".join(self._tokens) == re.sub(r'\s+(?=(?:[^"]*"[^"]*")*[^"]*$)', "", text), text
        self._before, self._now, self._time = list(before), list(now), time

    def run(self) -> Vector:
        found = self._any()
        assert self._tokens == [""], self._tokens
        assert isinstance(found, list)
        return found

    def _take(self, *wanted: str) -> str | None:
        return self._tokens.pop(0) if self._tokens[0] in wanted else None

    def _need(self, wanted: str) -> None:
        assert self._take(wanted), (wanted, self._tokens)

    def _any(self) -> Vector | float:
        left = self._all()
        while word := self._take("or", "unless"):
            right = self._all()
            have = [_key(labels) for labels, _ in (right if word == "unless" else left)]
            if word == "or":
                left = left + [one for one in right if _key(one[0]) not in have]
            else:
                left = [one for one in left if _key(one[0]) not in have]
        return left

    def _all(self) -> Vector | float:
        left = self._compared()
        while self._take("and"):
            have = [_key(labels) for labels, _ in self._compared()]
            left = [one for one in left if _key(one[0]) in have]
        return left

    def _compared(self) -> Vector | float:
        left = self._sum()
        if word := self._take(*COMPARE):
            right = self._sum()
            assert isinstance(right, float)
            return [one for one in left if COMPARE[word](one[1], right)]
        return left

    def _sum(self) -> Vector | float:
        left = self._product()
        while word := self._take("+", "-"):
            left = _computed(COMPUTE[word], left, self._product())
        return left

    def _product(self) -> Vector | float:
        left = self._atom()
        while word := self._take("*", "/"):
            left = _computed(COMPUTE[word], left, self._atom())
        return left

    def _atom(self) -> Vector | float:
        if self._take("("):
            return self._closed(self._any())
        word = self._tokens.pop(0)
        if re.fullmatch(r"\d.*", word):
            return float(word)
        if word in AGGREGATES:
            by = self._names() if self._take("by") else []
            self._need("(")
            return _grouped(AGGREGATES[word], by, self._closed(self._any()))
        if word == "time":
            self._need("(")
            return self._closed(self._time)
        if word in {"absent", "rate", "increase"}:
            self._need("(")
            return self._closed(self._absent() if word == "absent" else self._increase(self._tokens.pop(0)))
        if word == "histogram_quantile":
            self._need("(")
            wanted = float(self._tokens.pop(0))
            self._need(",")
            return self._closed(_quantile(wanted, self._any()))
        return self._selected(word, self._now)

    def _closed(self, value: Vector | float) -> Vector | float:
        self._need(")")
        return value

    def _names(self) -> list[str]:
        self._need("(")
        names = []
        while not self._take(")"):
            names.append(self._tokens.pop(0))
            self._take(",")
        return names

    def _absent(self) -> Vector:
        return [] if self._any() else [({}, 1.0)]

    def _increase(self, name: str) -> Vector:
        """By how much each series grew. One that was not there before has one point only: nothing is known of it."""
        tokens = list(self._tokens)
        before = {_key(labels): value for labels, value in self._selected(name, self._before)}
        self._tokens = tokens
        grown = self._selected(name, self._now)
        self._need("[")
        while not self._take("]"):
            self._tokens.pop(0)
        return [(labels, value - before[_key(labels)]) for labels, value in grown if _key(labels) in before]

    def _selected(self, name: str, samples: list[Sample]) -> Vector:
        matchers = []
        if self._take("{"):
            while not self._take("}"):
                label, how, value = (self._tokens.pop(0) for _ in range(3))
                matchers.append((label, how, value.strip('"')))
                self._take(",")
        return [(one.labels, one.value) for one in samples if one.name == name and _fits(one.labels, matchers)]


def _fits(labels: dict[str, str], matchers: list[tuple[str, str, str]]) -> bool:
    return all(
        re.fullmatch(value, labels.get(label, "")) is not None if how == "=~" else labels.get(label, "") == value
        for label, how, value in matchers
    )


def _key(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _computed(how: Callable[[float, float], float], left: Vector | float, right: Vector | float) -> Vector | float:
    if isinstance(left, float) and isinstance(right, float):
        return how(left, right)
    if isinstance(left, float):
        return [(labels, how(left, value)) for labels, value in right]
    if isinstance(right, float):
        return [(labels, how(value, right)) for labels, value in left]
    others = {_key(labels): value for labels, value in right}
    return [(labels, how(value, others[_key(labels)])) for labels, value in left if _key(labels) in others]


def _grouped(how: Callable[[list[float]], float], by: list[str], vector: Vector | float) -> Vector:
    assert isinstance(vector, list)
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for labels, value in vector:
        groups.setdefault(_key({name: labels[name] for name in by if name in labels}), []).append(value)
    return [(dict(key), how(values)) for key, values in groups.items()]


def _quantile(wanted: float, buckets: Vector | float) -> Vector:
    """The upper bound of the bucket in which the quantile lies: no need to be finer."""
    assert isinstance(buckets, list)
    groups: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for labels, value in buckets:
        rest = {name: text for name, text in labels.items() if name != "le"}
        groups.setdefault(_key(rest), []).append((float(labels["le"]), value))
    found: Vector = []
    for key, pairs in groups.items():
        total = max(value for _, value in pairs)
        if total > 0:
            found.append((dict(key), min(bound for bound, value in pairs if value >= wanted * total)))
    return found
