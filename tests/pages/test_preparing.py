"""What a server prepares for later visitors waits for those who are here."""

from __future__ import annotations

from threading import Event, Thread

from amounts import PATIENCE
from rota import App
from rota.web.pages.preparing import FIRST, Visitors, environment, prepare_first, prepare_rest
from rota.web.pages.readings import Readings


def test_work_for_later_visitors_waits_until_no_page_is_made():
    visitors, is_waiting, is_quiet = Visitors(), Event(), []

    def prepare() -> None:
        is_waiting.set()
        is_quiet.append(visitors.wait(PATIENCE))

    with visitors.served():
        with visitors.served():
            thread = Thread(target=prepare)
            thread.start()
            is_waiting.wait(PATIENCE)
            assert visitors.wait(0) is False
        assert visitors.wait(0) is False
        assert is_quiet == []
    thread.join(PATIENCE)
    assert is_quiet == [True]


def test_visitors_are_let_go_before_each_template():
    asked: list[None] = []
    prepare_first(lambda: asked.append(None))
    assert len(asked) == len(FIRST)
    prepare_rest(lambda: asked.append(None))
    assert len(asked) == len(FIRST) + len(environment().list_templates())


def test_pages_are_ready_before_the_first_visit():
    environment.cache_clear()
    app = App("memory://", name="shop")
    Readings(app).read_first()
    app.close()
    assert {*environment().list_templates()} <= {name for _, name in environment().cache}
