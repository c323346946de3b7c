"""--wait-for-store: tries again for some time if the store cannot be reached when a command starts."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, TypeVar

import click

from rota.cli.options import check_duration
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND, span_of

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("rota.cli")
Reached = TypeVar("Reached")

PAUSE = 0.5  # seconds between two tries

wait_option = click.option(
    "--wait-for-store",
    "wait_for",
    metavar="DURATION",
    callback=check_duration,
    help="If the store cannot be reached at the start, try again for so long, then exit with 4.  [default: try once]",
)


def seconds_of(wait_for: str | None) -> float:
    return 0.0 if wait_for is None else span_of(wait_for) / SECOND


def when_reached(
    reach: Callable[[], Reached], wait_for: str | None, tell: Callable[[str], object] = log.warning
) -> Reached:
    """What `reach` answers once the store can be reached. Only a store out of reach is waited for."""
    ends_at = 0.0  # known from the first failure on: a first try may itself take seconds
    while True:
        try:
            return reach()
        except StoreUnavailable as err:
            if not wait_for or (ends_at and time.monotonic() >= ends_at):
                raise
            if not ends_at:
                ends_at = time.monotonic() + seconds_of(wait_for)
                tell(f"{err}; waiting up to {wait_for} for it")
            threading.Event().wait(PAUSE)
