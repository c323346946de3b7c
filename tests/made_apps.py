"""Fixtures about apps, for the conftest of any folder to import: apps that are closed at the end, and a gate."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rota import App

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def closing_apps() -> Iterator[Callable[..., App]]:
    """Makes apps as App does, and closes them all."""
    made: list[App] = []

    def make(*where: Any, **options: Any) -> App:
        made.append(App(*where, **options))
        return made[-1]

    try:
        yield make
    finally:
        for app in made:
            app.close()


@pytest.fixture
def app(make_app) -> App:
    """One of the apps that the folder's make_app makes."""
    return make_app()


@pytest.fixture
def gate():
    """A gate that tasks wait at; it opens at the end, so that no thread outlives its test."""
    gate = threading.Event()
    yield gate
    gate.set()
