"""Searches as people type them: by what is indexed, by arguments and by attempts; what is hidden is never found."""

from __future__ import annotations

import pytest

from rota import App
from rota.errors import BadOption
from rota.inspector import search
from rota.inspector.search import filter_from, found_jobs, search_from, search_jobs
from rota.model.secrets.redaction import DEFAULT


@pytest.fixture(scope="module")
def app():
    app = App("memory://")

    @app.task(name="mail.send")
    def send(user_id: int, to: str = "", **rest: object) -> None: ...

    for number in range(5):
        send.enqueue(number, f"ann{number}@example.org", password="hunter2", order={"id": number, "tags": ["a", "b"]})  # noqa: S106
    send.enqueue(7, to="eve@example.org", urgent=True)
    yield app
    app.close()


def found(app, text):
    store = app.open()
    parameters = app.__rota_tasks__.parameters_of
    return [DEFAULT.call(job.payload).args[0] for job in found_jobs(store, search_from(text, 0), DEFAULT, parameters)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("args.user_id:3", [3]),
        ("args.0:3", [3]),
        ("args.to:ann2@example.org", [2]),
        ("args.to:ann*", [4, 3, 2, 1, 0]),
        ("args.order.id:4", [4]),
        ("args.order.tags:b args.user_id:1", [1]),
        ("args.urgent:true", [7]),
        ("args.urgent:1", []),
        ("args.nothing:1", []),
        ("args.order:4", []),
        ("state:failed args.user_id:3", []),
        ("task:mail.* args.user_id:7", [7]),
        ("args.password:hunter2", []),
        ("args.password:[redacted]", []),
        ("args.password:*", []),
        ("attempts:0 args.user_id:3", [3]),
        ("attempts:>0", []),
    ],
)
def test_jobs_are_found_by_their_arguments_and_attempts(app, text, numbers):
    assert found(app, text) == numbers


@pytest.mark.parametrize("text", ["args.:1", "args:1", "attempts:many", "attempts:-1", "argz.x:1", "args.x:"])
def test_what_makes_no_sense_is_refused_with_what_does(text):
    with pytest.raises(BadOption):
        search_from(text, 0)


def test_a_filter_that_must_be_by_index_refuses_the_rest():
    with pytest.raises(BadOption, match=r"args\.x: is no field of this filter"):
        filter_from("args.x:1", 0)


def test_a_search_looks_through_so_many_and_says_so(app, monkeypatch):
    monkeypatch.setattr(search, "LOOKED_PER_PAGE", 4)
    monkeypatch.setattr(search, "LARGEST_PAGE", 2)
    store, parameters = app.open(), app.__rota_tasks__.parameters_of
    asked = search_from("args.user_id:0", 0)
    first = search_jobs(store, asked, DEFAULT, parameters, cursor=None, limit=10)
    assert (len(first.items), first.looked, first.is_cut) == (0, 4, True)
    rest = search_jobs(store, asked, DEFAULT, parameters, cursor=first.cursor, limit=10)
    assert (len(rest.items), rest.cursor) == (1, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1000.0, "1000.0"),
        (1e300, "1e+300"),
        (-7, "-7"),
        (None, "NULL"),
        ('say "no"', "'say \"no\"'"),
        ("a\\b", "'a\\b'"),
        ("é", "é"),
        ("a/b", "a/b"),
        ("two words", "'two words'"),
        ("line\nline", "line*"),
    ],
)
def test_a_value_is_found_however_its_payload_writes_it(value, text):
    app = App("memory://")
    try:

        @app.task(name="t")
        def task(value: object) -> None: ...

        task.enqueue(value)
        task.enqueue("another")
        assert found(app, f"args.value:{text}") == [value]
    finally:
        app.close()
