"""Types of an app's own, and values that JSON would change without a word."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from app.steps import work
from rota import App, BadOption, BadPayload, DuplicateName

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Money:
    def __init__(self, text: str) -> None:
        self.text = text


class Dollars(Money): ...


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


@pytest.fixture
def app():
    app = App("memory://")
    yield app
    app.close()


def test_an_own_type_needs_a_codec_and_the_error_says_so(app):
    @app.task
    def pay(amount: Money) -> None: ...

    with pytest.raises(BadPayload, match=r"type Money is no JSON; register the type with app.codec\(Money, …\)"):
        pay.enqueue(Money("3"))


def test_a_codec_may_be_registered_after_its_tasks(app):
    seen = []

    @app.task(unique=True)
    def pay(amount: Money, more: list[Money] | None = None) -> Money:
        seen.append([amount, *(more or [])])
        return amount

    app.codec(Money, encode=lambda money: {"text": money.text}, decode=lambda kept: Money(kept["text"]))
    job = pay.enqueue(Money("3"), [Dollars("4")])
    assert job.args == [{"text": "3"}, [{"text": "4"}]]
    assert pay.enqueue(Money("3"), [Dollars("4")]).existed
    work(app)
    assert [type(one) for one in seen[0]] == [Money, Money]
    assert job.result("1s").text == "3"


def test_a_value_that_a_codec_cannot_make_fails_its_job_with_the_reason(app):
    @app.task
    def pay(amount: Money) -> None: ...

    def decode(kept: str) -> Money:
        raise LookupError(f"no currency in {kept}")

    app.codec(Money, encode=lambda money: money.text, decode=decode)
    job = pay.enqueue(Money("3"))
    work(app)
    assert (job.refresh().state, "no currency in 3" in job.error) == ("failed", True)


@pytest.mark.parametrize("kind", [Point, Colour, datetime, dict, list[int], "Money"])
def test_a_codec_that_would_never_be_called_is_refused(app, kind):
    with pytest.raises(BadOption):
        app.codec(kind, encode=str, decode=str)


def test_a_type_has_one_codec(app):
    app.codec(Path, encode=str, decode=Path)
    with pytest.raises(DuplicateName, match="Path has a codec already"):
        app.codec(Path, encode=str, decode=Path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (AT, "has a datetime"),
        (Point(1), "has a Point"),
        (Colour.RED, "has a Colour"),
        ([{"deep": AT}], "has a datetime"),
        ({1: 2}, "has a dict with a key of type int"),
        (Money("3"), "has a Money"),
    ],
    ids=["datetime", "dataclass", "enum", "nested", "key", "own type"],
)
def test_a_parameter_without_a_hint_takes_no_value_that_json_would_change(app, value, words):
    app.codec(Money, encode=lambda money: money.text, decode=Money)

    @app.task(name="bare")
    def bare(thing, *rest, **more) -> None: ...

    for call in (((value,), {}), ((1, 2, value), {}), ((1,), {"other": value})):
        with pytest.raises(BadPayload, match=rf"of bare {words}.*annotate the parameter"):
            bare.enqueue(*call[0], **call[1])


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (AT, "datetime"),
        ({1: 2}, "dict[int, Any]"),
        ({"a": {1: 2}}, "dict[str, dict[int, Any]]"),
        ([{"deep": AT}], "list[dict[str, datetime]]"),
        ({"a": 1, "b": {1, 2}}, "dict[str, set]"),
    ],
)
def test_the_hint_that_a_refusal_names_takes_the_value(app, value, hint):
    @app.task
    def bare(thing) -> None: ...

    with pytest.raises(BadPayload, match=re.escape(f"as in `thing: {hint}`")):
        bare.enqueue(value)

    def hinted(thing) -> None: ...

    hinted.__annotations__ = {"thing": eval(hint, {"Any": Any, "datetime": datetime})}  # noqa: S307 - of this test
    app.task(hinted).enqueue(value)


def test_a_hint_lets_the_same_values_through(app):
    seen = []

    @app.task
    def told(
        at: datetime, point: Point, colours: dict[str, Colour], loose: Any, *rest: Point, **more: datetime
    ) -> None:
        seen.append((at, point, colours, loose, rest, more))

    told.enqueue(AT, Point(1), {"a": Colour.RED}, [1, (2, {"a": None})], Point(2), other=AT)
    work(app)
    assert seen == [(AT, Point(1), {"a": Colour.RED}, [1, [2, {"a": None}]], (Point(2),), {"other": AT})]


def test_a_queue_of_values_is_refused_like_any_other(app):
    @app.task
    def bare(thing) -> None: ...

    with pytest.raises(BadPayload, match="deque"):
        bare.enqueue(deque([1]))
