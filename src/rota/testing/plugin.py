"""Offers two fixtures to pytest, `manual_clock` and `rota_kit`, and loads nothing else until a test uses one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.testing.clock import ManualClock
    from rota.testing.kit import Kit


class MakeKit(Protocol):
    """The type of the fixture `rota_kit`: `kit = rota_kit(app)`, in use until the test ends."""

    def __call__(self, app: App, clock: ManualClock | None = None, **options: Any) -> Kit: ...


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that stands at a Monday's noon in UTC until the test moves it."""
    from rota.testing.clock import ManualClock  # noqa: PLC0415 - who does not use it pays nothing

    return ManualClock()


@pytest.fixture
def rota_kit(manual_clock: ManualClock) -> Iterator[MakeKit]:
    """Makes kits, on `manual_clock` unless another is given; options are those of Kit."""
    from rota.testing.kit import Kit  # noqa: PLC0415 - likewise

    with ExitStack() as stack:

        def make(app: App, clock: ManualClock | None = None, **options: Any) -> Kit:
            return stack.enter_context(Kit(app, clock or manual_clock, **options))

        yield make
