"""Joins a Django project and one app: settings, database, transactions, commands, checks, login and tests.

`from rota.django import app, task, schedule`. The app is made from the setting ROTA when it is first used. Nothing
happens when this package is imported. Needs the extra `django`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.django.commits import enqueue_on_commit as enqueue_on_commit
    from rota.django.current import get_app

    app = get_app()
    task = app.task
    schedule = app.schedule

_OF_APP = ("task", "schedule")


def __getattr__(name: str) -> Any:
    if name == "app" or name in _OF_APP:
        from rota.django.current import get_app  # noqa: PLC0415 - it reads Django's settings

        return get_app() if name == "app" else getattr(get_app(), name)
    if name == "enqueue_on_commit":
        from rota.django.commits import enqueue_on_commit  # noqa: PLC0415 - Django may not be set up yet

        return enqueue_on_commit
    raise AttributeError(f"module 'rota.django' has no attribute {name!r}")
