"""Defines what queues of documents need of an app, which is in a layer above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rota.config.loader import Resolved
    from rota.config.settings import Settings
    from rota.engine.events import Events
    from rota.tasks.task import Registry


class Host(Protocol):
    """The internal parts of an app."""

    @property
    def events(self) -> Events: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def resolved(self) -> Resolved: ...

    @property
    def document_queues(self) -> dict[str, Any]:
        """The queues that code made beside this app, by name."""


class Joined(Protocol):
    """The part of `app.documents` that a queue of the app uses."""

    @property
    def events(self) -> Events: ...

    def add(self, queue: Any) -> None: ...


class AppBeside(Protocol):
    """An app, as a queue sees it."""

    @property
    def documents(self) -> Joined: ...
