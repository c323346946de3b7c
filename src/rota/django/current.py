"""Makes the app of a Django project, once, from its settings."""

from __future__ import annotations

import threading
from functools import cache

from django.conf import settings

from rota.app import App, internals
from rota.django.conf import configuration_of, database_of
from rota.django.connections import ConnectionCare, run_for_test
from rota.django.test_runs import StoreOfTestRun

_making = threading.Lock()
_made: list[App] = []  # at most one


def get_app() -> App:
    """The app of this project; made when it is first asked for. Its store is opened later, when it is first needed."""
    with _making:
        if not _made:
            _made.append(make_app())
        return _made[0]


@cache
def database_of_store() -> str | None:
    """The alias of the database that is the store; None if the store has a URL of its own."""
    return database_of(settings)


def make_app() -> App:
    """An app as the settings of the project say."""
    said = configuration_of(settings)
    app = App(said.store, name=said.name, version=said.version)
    wiring = internals(app)
    wiring.configuration.add(said.layer)
    wiring.child_module = "rota.django.child"
    wiring.run_in_kit = run_for_test
    if said.database is not None:
        wiring.store.find_instead = StoreOfTestRun(settings.DATABASES, said.database).find
    app.use(ConnectionCare())
    return app
