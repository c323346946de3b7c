"""Implements `--wait-for-store`: tries again for some time if the store cannot be reached at the start."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from rota.cli.options import check_duration
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND, span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

log = logging.getLogger("rota.cli")
Reached = TypeVar("Reached")

PAUSE = 0.5  # seconds between two tries
BY_SIGNAL = 128  # and the number of the signal: the exit code that shells use

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
    try:
        return reach()
    except StoreUnavailable as err:
        if not wait_for:
            raise
        why = str(err)
    ends_at = time.monotonic() + seconds_of(wait_for)  # from here on: the first try may itself take seconds
    with _ended_by_sigterm():
        tell(f"{why}; waiting up to {wait_for} for it")
        while True:
            threading.Event().wait(PAUSE)
            try:
                return reach()
            except StoreUnavailable:
                if time.monotonic() >= ends_at:
                    raise


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """A SIGTERM ends the wait. The first process of a container would not receive it without a handler."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield  # a service has its own handler by now
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(BY_SIGNAL + number)
