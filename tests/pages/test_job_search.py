"""The search of the jobs page: what a bare word may mean, short names of tasks, and no answer beside an error."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from pages.stage import TOKEN, shown_text
from rota import App


@pytest.fixture(scope="module")
def client():
    app = App("memory://", name="shop")

    @app.task(name="shop.charge")
    def charge(order: int) -> None: ...

    @app.task(name="bank.send")
    def to_bank() -> None: ...

    @app.task(name="mail.send")
    def mail() -> None: ...

    charge.enqueue(42)
    mail.enqueue()
    yield TestClient(app.asgi(token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}"}, follow_redirects=False)
    app.close()


def test_a_bare_word_is_answered_with_the_searches_that_it_may_stand_for(client):
    page = client.get("/jobs", params={"q": "42 state:queued"}).text
    assert 'href="/jobs?q=args.0%3A42+state%3Aqueued"' in page
    assert 'href="/jobs?q=key%3A42+state%3Aqueued"' in page
    assert "No job matches this search." not in page


def test_a_short_name_finds_the_only_task_that_ends_with_it_and_says_so(client):
    said = shown_text(client.get("/jobs", params={"q": "task:charge"}).text)
    assert "shop.charge(42)" in said
    assert "The task is shop.charge" in said


def test_a_short_name_of_two_tasks_finds_neither(client):
    said = shown_text(client.get("/jobs", params={"q": "task:send"}).text)
    assert "No job matches this search." in said
    assert "The task is" not in said
