"""Adds system checks to `manage.py check`; with `--database` or `--deploy` also whether the store answers."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core import checks
from django.db import connections

from rota.app import internals
from rota.django.conf import database_of
from rota.django.current import get_app
from rota.django.discovery import broken
from rota.errors import RotaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.core.checks import CheckMessage

TAG = "rota"
_RUNNER_HINT = "Run `manage.py rota doctor` for more."


def register_checks() -> None:
    """Have Django run them."""
    checks.register(check_jobs, TAG)
    checks.register(check_transactions, TAG)
    checks.register(check_store_kind, TAG)
    checks.register(check_reachable, TAG, checks.Tags.database)
    checks.register(check_reachable_deployed, TAG, deploy=True)


def check_jobs(**_: Any) -> list[CheckMessage]:
    """Every jobs.py can be imported."""
    return [
        checks.Error(
            f"{found.module} cannot be imported: {_last_line(found.error)}",
            hint=f"Its tasks are missing. {_place_of(found.error)}",
            id="rota.E001",
        )
        for found in broken()
    ]


def check_transactions(**_: Any) -> list[CheckMessage]:
    """The database of the store keeps transactions that a job can be part of."""
    alias = database_of(settings)
    if alias is None:
        return []
    database = connections.settings[alias]
    found: list[CheckMessage] = []
    if not database["AUTOCOMMIT"]:
        found.append(
            checks.Warning(
                f"DATABASES[{alias!r}] has AUTOCOMMIT off: transaction.on_commit() calls nothing then, and a job that "
                "is enqueued with tx= waits until your own code commits.",
                hint="Leave AUTOCOMMIT on, and use transaction.atomic() or ATOMIC_REQUESTS.",
                id="rota.W002",
            )
        )
    if not database["AUTOCOMMIT"] and database["ATOMIC_REQUESTS"]:
        found.append(
            checks.Error(
                f"DATABASES[{alias!r}] has ATOMIC_REQUESTS on and AUTOCOMMIT off, which contradict each other.",
                hint="Leave AUTOCOMMIT on.",
                id="rota.E002",
            )
        )
    return found


def check_store_kind(**_: Any) -> list[CheckMessage]:
    """Other processes can see the store."""
    place = internals(get_app()).store
    store = place.find()
    if store.features.is_shared or (place.find_instead is not None and place.find_instead() is store):  # of a test run
        return []
    return [
        checks.Warning(
            f"Jobs are kept in a {store.describe()}, which ends with its process: other processes see none.",
            hint="Set ROTA['store'] to the URL of a store that processes share.",
            id="rota.W003",
        )
    ]


def check_reachable(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The store answers, and its tables are there; asked with --database alone. Asking makes no tables."""
    return _reachable() if databases else []


def check_reachable_deployed(**_: Any) -> list[CheckMessage]:
    """The same; asked with --deploy alone."""
    return _reachable()


def _reachable() -> list[CheckMessage]:
    wiring = internals(get_app())
    try:
        if not wiring.store.is_open and wiring.store.find().pending_migrations():
            return [
                checks.Warning(
                    "The store has not been made yet, or has tables of an older Rota.",
                    hint="`manage.py rota migrate` makes them, and so does the first `manage.py rota run`.",
                    id="rota.W005",
                )
            ]
        wiring.open().now()
    except RotaError as err:
        return [checks.Warning(f"The store cannot be used: {err}", hint=_RUNNER_HINT, id="rota.W004")]
    return []


def _last_line(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _place_of(error: Exception) -> str:
    """Where it was raised, in the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"It was raised at {frames[-1].filename}:{frames[-1].lineno}." if frames else ""
