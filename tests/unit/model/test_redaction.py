"""Which values are secret, how a call, a result and a text are shown without them, and what comes back unchanged."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, NewType, TypedDict, TypeVar

import msgspec
import pytest

from rota import App, BadOption, BadPayload, Secret
from rota.app import internals
from rota.model.jobs.job import NewJob, State, accept
from rota.model.jobs.outcome import Died, Failed, RetryAsked, Returned, Snoozed, Stopped, Undecodable
from rota.model.jobs.payload import REDACTED, Call, pack_call, unpack_call
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.model.schedules.schedule import ScheduleSpec
from rota.model.secrets.redaction import DEFAULT, NAMES, Redaction, hidden, restored, restored_call, texts_in
from rota.tasks.arguments import Signature
from unit.model.values import NOON, a_job

if TYPE_CHECKING:
    from decimal import NoSuchName


@pytest.mark.parametrize(
    "name",
    [
        *NAMES,
        "PASSWORD",
        "db_password",
        "X-Api-Key",
        "apiKey",
        "APIKey",
        "accessToken",
        "password2",
        "client.secret",
        "userAccessTokens",
    ],
)
def test_a_value_is_hidden_by_the_words_at_the_end_of_its_name(name):
    assert DEFAULT.is_secret(name)


@pytest.mark.parametrize(
    "name", ["max_tokens", "prompt_tokens", "token_count", "author", "key", "user", "sessions", "", "2", "_", "ключ"]
)
def test_other_names_are_shown(name):
    assert not DEFAULT.is_secret(name)


def test_the_settings_add_names():
    more = Redaction(("iban", "card number"))
    for name in ("iban", "customerIban", "IBAN", "card_number", "cardNumber", "password"):
        assert more.is_secret(name)
    assert not DEFAULT.is_secret("iban")
    assert not more.is_secret("number")


@pytest.mark.parametrize("name", ["", "...", "a b c d e", "x" * 65])
def test_a_name_that_could_hide_nothing_is_refused(name):
    if not name:
        assert internals(App("memory://", redact=[name])).redaction == DEFAULT
        return
    with pytest.raises(BadOption, match="redact"):
        App("memory://", redact=[name])


def test_a_call_is_shown_without_its_secrets_at_any_depth():
    call = Call(
        ["ann", "s3cret", {"a": [{"token": {"x": 1}}]}],
        {"password": "s3cret", "pin": 1234, "login": {"user": "ann", "pw": "s3cret", "iban": "DE1"}, "auth": None},
        {"cookie": "s3cret", "trace": 1},
        secrets=[1, "pin", ".pw", "*iban"],
    )
    shown = DEFAULT.shown(call)
    assert shown.args == ["ann", REDACTED, {"a": [{"token": REDACTED}]}]
    assert shown.kwargs == {
        "password": REDACTED,
        "pin": REDACTED,
        "login": {"user": "ann", "pw": REDACTED, "iban": REDACTED},
        "auth": None,  # that a secret is missing is no secret
    }
    assert shown.meta == {"cookie": REDACTED, "trace": 1}
    assert DEFAULT.shown(shown) == shown


def test_a_payload_that_cannot_be_read_shows_nothing():
    assert DEFAULT.call(b"s3cret") == Call()
    assert DEFAULT.payload("s3cret") == ""
    assert DEFAULT.texts(b"s3cret") == ()


def test_a_result_is_shown_without_secrets_its_own_or_given():
    given = msgspec.json.encode(Call(["s3cret"], secrets=[0]))
    told = msgspec.json.encode({"token": "abc", "says": "hello s3cret", "list": [{"db_password": 1}], "n": 4})
    assert DEFAULT.result(told, given) == {
        "token": REDACTED,
        "says": f"hello {REDACTED}",
        "list": [{"db_password": REDACTED}],
        "n": 4,
    }
    assert DEFAULT.result(b'"abc"', msgspec.json.encode(Call(secrets=["->"]))) == REDACTED
    assert DEFAULT.result(b"null", msgspec.json.encode(Call(secrets=["->"]))) is None
    assert DEFAULT.result(None, b"[]") is None


def test_a_very_deep_result_is_shown_to_a_bounded_depth():
    deep: Any = {"password": "s3cret"}
    for _ in range(300):
        deep = [deep]
    assert "s3cret" not in str(DEFAULT.result(msgspec.json.encode(deep), b"[]"))


class Kind(Enum):
    A = "a"


class Login(TypedDict):
    user: str
    pw: Annotated[str, Secret]


@dataclass
class Account:
    login: Login
    pin: Annotated[int, Secret()] = 0


class Pair(NamedTuple):
    left: str
    right: Annotated[str, Secret]


def secrets_of(function, *args, redact=(), **kwargs) -> list:
    app = App("memory://", redact=redact)
    return unpack_call(app.task(function).job(*args, **kwargs).payload).secrets


def test_a_payload_says_which_arguments_are_marked_or_named_by_position():
    def plain(a: int, b: str = "") -> str: ...
    def named(user: str, password: str) -> None: ...
    def marked(code: Annotated[str, Secret], other: str) -> None: ...
    def deep(codes: list[Annotated[str, Secret]] | None, account: Account | None = None) -> None: ...
    def rest(*tokens: Annotated[str, Secret], **more: Annotated[str, Secret]) -> None: ...
    def returns(a: int) -> Annotated[str, Secret]: ...
    def pairs(pair: Pair) -> None: ...

    assert secrets_of(plain, 1, b="x") == []
    assert secrets_of(named, "ann", "s3cret") == [1]
    assert secrets_of(named, user="ann", password="s3cret") == []  # noqa: S106 - its name says it to every reader
    assert secrets_of(marked, "abc", other="x") == [0]
    assert secrets_of(marked, code="abc", other="x") == ["code"]
    assert secrets_of(deep, ["a"]) == [0, ".pw", ".pin"]
    assert secrets_of(rest, "a", "b", x="c") == [0, 1, "x"]
    assert secrets_of(returns, 1) == ["->"]
    assert secrets_of(pairs, Pair("a", "b")) == [0]  # JSON has a list for it, whose items have no names
    assert secrets_of(plain, 1, redact=["a", "iban"]) == [0, "*a", "*iban"]


def test_a_hint_that_cannot_be_resolved_takes_no_mark_away():
    def odd(first: NoSuchName, code: Annotated[str, Secret], last: Annotated[NoSuchName, Secret]) -> None: ...

    assert secrets_of(odd, 1, "s3cret", "s3cret") == [1, 2]


def test_a_request_does_not_show_its_secrets():
    def send(to: str, code: Annotated[str, Secret], **more: str) -> None: ...

    request = App("memory://").task(name="send")(send).job("ann", "s3cret", token="s3cret")  # noqa: S106
    assert repr(request) == f"<request send('ann', '{REDACTED}', token='{REDACTED}')>"


def test_secrets_are_found_in_texts_as_they_are_and_as_they_are_quoted():
    word = 'it\'s "x"\n\\ü-1234'
    for text in (word, repr(word), str({"a": word}), msgspec.json.encode({"a": word}).decode()):
        assert "1234" not in hidden(f"ValueError: {text} is wrong", texts_in([word]))
    key = "-----BEGIN KEY-----\nabcdefghij\n-----END KEY-----\n"
    assert "abcdefghij" not in hidden("line abcdefghij of it", texts_in([key]))
    assert hidden("code 123456 and abc", texts_in([123456, "abc", True, None])) == f"code {REDACTED} and abc"


@pytest.mark.parametrize(
    "outcome",
    [
        Failed("ValueError: s3cret\ntrace s3cret"),
        Failed("ValueError: s3cret", may_retry=False),
        RetryAsked(None, "Retry: s3cret"),
        Undecodable("s3cret"),
        Snoozed(1, "waits for s3cret"),
        Stopped("s3cret"),
        Returned("s3cret"),
        Died("s3cret"),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
def test_no_end_of_an_attempt_keeps_a_secret_argument_in_its_texts(outcome):
    job = a_job(State.RUNNING, payload=b'[["s3cret"],{},{},null,null,[0]]')
    change = settle(job, outcome, RetryPolicy(), NOON, 0.5)
    kept = (change.error, change.cancel_reason, change.past)
    assert "s3cret" not in str(kept)
    assert REDACTED in str(kept)


def test_a_mark_that_came_back_is_the_stored_value():
    stored = {"password": "s3cret", "n": 1, "list": [{"token": "abc"}, 2]}
    shown = {"password": REDACTED, "n": 1, "list": [{"token": REDACTED}, 2]}
    assert restored(shown, stored, shown) == stored
    assert restored({**shown, "n": 2}, stored, shown) == {**stored, "n": 2}
    assert restored({"n": REDACTED, "new": REDACTED, "list": [1, REDACTED, REDACTED]}, stored, shown) == {
        "n": REDACTED,
        "new": REDACTED,
        "list": [1, REDACTED, REDACTED],
    }


def hosts(*names):
    return [{"user": name, "password": f"of {name}"} for name in names]


def as_shown(*names):
    return [{"user": name, "password": REDACTED} for name in names]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (as_shown("a", "b"), hosts("a", "b")),
        (as_shown("b"), as_shown("b")),  # the first was removed
        (as_shown("b", "a"), as_shown("b", "a")),
        (as_shown("new", "a", "b"), as_shown("new", "a", "b")),
        (as_shown("a"), hosts("a")),
        ([*as_shown("a"), {"user": "b", "password": "new"}], [*hosts("a"), {"user": "b", "password": "new"}]),
        (as_shown("a", "other"), hosts("a") + as_shown("other")),
    ],
)
def test_an_item_of_a_list_gets_a_secret_only_if_it_is_what_was_shown_there(given, kept):
    assert restored({"hosts": given}, {"hosts": hosts("a", "b")}, {"hosts": as_shown("a", "b")}) == {"hosts": kept}


def test_of_items_that_look_the_same_none_gets_the_secret_of_another():
    stored, shown = [{"pin": 1}, {"pin": 2}], [{"pin": REDACTED}, {"pin": REDACTED}]
    assert restored(shown, stored, shown) == stored
    assert restored(shown[:1], stored, shown) == shown[:1]
    assert restored([*shown, 3], stored, shown) == [*shown, 3]


def test_a_list_is_compared_as_json():
    assert str(restored([True, 1.0, {"pin": REDACTED}], [1, 1, {"pin": 5}], [1, 1, {"pin": REDACTED}])) == str(
        [True, 1.0, {"pin": 5}]
    )


def test_the_position_of_an_argument_names_it():
    stored = Call(["p1", "p2", {"user": "a", "password": "p3"}, 1], {"pin": "p4"})
    shown = Call([REDACTED, REDACTED, {"user": "a", "password": REDACTED}, 1], {"pin": REDACTED})
    given = [REDACTED, "new", {"user": "b", "password": REDACTED}, 2, REDACTED]
    assert restored_call(given, {"pin": REDACTED, "n": REDACTED}, stored, shown) == (
        ["p1", "new", {"user": "b", "password": "p3"}, 2, REDACTED],
        {"pin": "p4", "n": REDACTED},
    )


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (Call([1, REDACTED]), "argument 2"),
        (Call([], {"password": REDACTED}), "argument password"),
        (Call([], {"a": {"b": [1, {"token": REDACTED}]}}), "argument a.b.1.token"),
    ],
)
def test_a_mark_is_no_argument(call, place):
    with pytest.raises(BadPayload, match=rf"{place} of mail.send is '\[redacted\]'"):
        pack_call(call, what="mail.send")


@pytest.mark.parametrize("text", [f"a {REDACTED}", f'"{REDACTED}"', f'\\"{REDACTED}'])
def test_text_that_only_has_the_mark_in_it_is_an_argument(text):
    assert unpack_call(pack_call(Call([text], {REDACTED: 1}), what="mail.send")).args == [text]


def test_an_argument_that_does_not_fit_is_refused_without_its_value():
    class Local: ...

    def paint(token: Kind, code: Annotated[Kind, Secret] = Kind.A, local: Local | None = None) -> None: ...

    task = App("memory://").task(paint)
    for call in (Call(["s3cret"]), Call(["a", "s3cret"])):
        with pytest.raises(BadPayload, match="Invalid enum value") as caught:
            task.signature.typed(call)
        assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"


def test_the_guide_lists_the_names_that_are_always_hidden():
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "secrets.md").read_text(encoding="utf-8")
    listed = guide.partition("always hidden:\n\n")[2].partition(".\n")[0]
    assert [name.strip("`\n ") for name in listed.split(",")] == sorted(NAMES)


def test_the_repr_of_a_record_has_no_arguments_and_no_result():
    request = NewJob(id="one", task="shop.login", payload=b'[["hunter2"]]')
    record = msgspec.structs.replace(accept(request, 0), result=b'"hunter2"')
    spec = ScheduleSpec(trigger="every 1m", task="shop.login", payload='[["hunter2"]]')
    for shown in (repr(request), repr(record), repr(spec)):
        assert "hunter2" not in shown
        assert "shop.login" in shown


class Entry(NamedTuple):
    user: str
    pin: Annotated[str, Secret]


T = TypeVar("T")


class Box(msgspec.Struct, Generic[T]):
    item: T
    pin: Annotated[str, Secret]


Pin = NewType("Pin", Annotated[str, Secret])


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Entry, Entry("ann", "hunter2")),
        (Box[int], Box(1, "hunter2")),
        (Pin, "hunter2"),
        (list[Entry], [Entry("a", "hunter2")]),
    ],
    ids=["NamedTuple", "generic", "NewType", "list of NamedTuple"],
)
def test_a_mark_is_found_in_every_kind_of_type(hint, value):
    app = App("memory://")

    def pay(given): ...

    pay.__annotations__["given"] = hint
    assert "hunter2" not in repr(app.task(pay).job(value))


def test_an_error_about_a_call_does_not_show_default_values():
    app = App("memory://")

    @app.task(name="shop.login")
    def login(user: str, password: str = "hunter2"): ...  # noqa: S107 - what must not be shown

    with pytest.raises(BadPayload) as refused:
        login.job(1, 2, 3)
    assert "hunter2" not in str(refused.value)
    assert "password" in str(refused.value)


@pytest.mark.parametrize("written", [json.dumps, ascii, repr])
def test_a_secret_is_found_however_python_writes_it(written):
    assert "nter2" not in hidden(f"no {written('hünter2')}", texts_in(["hünter2"]))


def test_a_secret_in_a_key_of_a_result_is_hidden():
    payload = pack_call(Call(kwargs={"password": "hunter2"}), what="shop.login")
    assert DEFAULT.result(b'{"hunter2": 1}', payload) == {REDACTED: 1}


def test_a_keyword_may_have_any_name():
    app = App("memory://")

    @app.task
    def keep(**values: int): ...

    assert unpack_call(keep.job(self=1).payload).kwargs == {"self": 1}
    assert unpack_call(keep.using(delay="1s").job(self=1).payload).kwargs == {"self": 1}


# How values of other types are written.

TYPED = {
    "bytes": (b"hunter2!", "could not send b'hunter2!' to the bank"),
    "bytes as text": (b"hunter2!", "could not send hunter2! to the bank"),
    "raw bytes": (b"\x00\xfftoken", repr(ValueError(b"\x00\xfftoken"))),
    "bytes in hexadecimal": (b"hunter2!", f"could not send {b'hunter2!'.hex()}"),
    "a date": (date(1980, 1, 2), "no such day: 1980-01-02"),
    "the repr of a date": (date(1980, 1, 2), repr(ValueError(date(1980, 1, 2)))),
    "a datetime": (datetime(1980, 1, 2, 3, 4, tzinfo=UTC), f"at {datetime(1980, 1, 2, 3, 4, tzinfo=UTC)}"),
    "the repr of a datetime": (datetime(1980, 1, 2, 3, 4), f"at {datetime(1980, 1, 2, 3, 4)!r}"),
    "a key inside": ({"tok_live_1": 1}, "unknown account tok_live_1"),
}


@pytest.mark.parametrize(("value", "text"), TYPED.values(), ids=TYPED)
def test_a_secret_is_hidden_as_its_type_is_written(value, text):
    payload = pack_call(Call([], {"password": value}), what="it")
    shown = hidden(text, DEFAULT.texts(payload))
    assert REDACTED in shown
    for part in ("hunter2", b"hunter2".hex(), "token", "1980", "tok_live"):
        assert part not in shown


def test_short_keys_and_short_lines_stay_readable():
    texts = texts_in([{"user": "long enough", "key": "-----BEGIN\nfoobar\nlonger line\n"}])
    assert hidden("user foobar", texts) == "user foobar"
    assert hidden("longer line", texts) == REDACTED


# Where marks are found.


def charge(amount: int, card: Annotated[str, Secret] = "") -> None: ...


class Charger:
    def __call__(self, card: Annotated[str, Secret]) -> Annotated[str, Secret]:
        return card


CALLABLES = {
    "partial": (functools.partial(charge, 1), ()),
    "partial of a partial": (functools.partial(functools.partial(charge, 1)), ()),
    "an object": (Charger(), ("->",)),
    "partial of an object": (functools.partial(Charger()), ("->",)),
}


@pytest.mark.parametrize(("function", "rest"), CALLABLES.values(), ids=CALLABLES)
def test_marks_are_found_through_what_stands_for_a_function(function, rest):
    signature = Signature(function, "charge")
    assert signature.marks.parameters == {"card"}
    assert signature.secrets((), {"card": "4242"}) == ["card", *rest]


def test_marks_are_found_through_a_type_alias():
    typing_extensions = pytest.importorskip("typing_extensions")
    pin = typing_extensions.TypeAliasType("Pin", Annotated[str, Secret])

    def pay(code: pin, codes: list[pin]) -> None: ...

    pay.__annotations__ = {"code": pin, "codes": list[pin]}
    assert Signature(pay, "pay").marks.parameters == {"code", "codes"}


@dataclass
class Plain:
    name: str


@dataclass
class WithPin(Plain):
    pin: Annotated[str, Secret]


class Row(NamedTuple):
    pin: Annotated[str, Secret]


def test_a_subclass_may_mark_more_than_its_parameter():
    def pay(who: Plain, rest: list[Any], **more: Any) -> None: ...

    signature = Signature(pay, "pay")
    assert signature.secrets((Plain("ann"), [1]), {}) == []
    assert signature.secrets((WithPin("ann", "1234"), []), {}) == [".pin"]
    assert signature.secrets((Plain("ann"), [{"a": [WithPin("ann", "1234")]}]), {}) == [".pin"]
    assert signature.secrets((Plain("ann"), [Row("1234")]), {"row": Row("1234")}) == [1, "row"]


def test_an_argument_whose_name_looks_like_a_path_is_an_argument():
    def send(**secrets: str) -> None: ...

    given = {".pin": "1234", "*iban": "DE02", "=x": "5678", "plain": "9012"}
    named = Signature(send, "send").secrets((), given)
    shown = DEFAULT.shown(Call([], {**given}, secrets=named))
    assert shown.kwargs == dict.fromkeys(given, REDACTED)
    others = Call([], {"box": {"pin": 1, "customer_iban": 2, "x": 3}}, secrets=named)
    assert DEFAULT.shown(others).kwargs == others.kwargs
