"""Defines the routes of HTTP as values. The app, its OpenAPI document, the tests and the docs read them.

A handler is a plain function: it is called in a thread, gets what was asked, already checked, and answers a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from rota.model.token import Role

if TYPE_CHECKING:
    from rota.app import App
    from rota.client.tokens import Identity


class Ask(NamedTuple):
    """One request, checked: its path, query and body are what the route says they are."""

    app: App
    who: Identity  # changes are made in this name
    path: Any = None
    query: Any = None
    body: Any = None
    expect_version: int | None = None  # what is changed must still have it
    last_event: int | None = None  # where a stream that was cut off goes on
    accept: str = ""  # in which forms an answer is wanted
    mounted: str = ""  # the path under which the API is

    @property
    def by(self) -> str:
        return self.who.name


class Answer(NamedTuple):
    """An answer that says more than its body."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Watch(NamedTuple):
    """The answer is a stream of what happens."""


class Follow(NamedTuple):
    """The answer is a stream of what a job writes, from a line on, until it has ended."""

    job_id: str
    after: int = 0


class Route(Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str  # /api/v1/jobs/{job_id}
    role: Role | None  # None: anybody may ask
    handle: Callable[[Ask], Any]
    says: str  # one sentence for the documents
    answer: Any = None  # the type of what is answered; None: nothing is
    params: type[Struct] | None = None  # the path's
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    status: int = 200
    also: Mapping[int, str] = {}  # other statuses that it may have, and what they mean
    is_versioned: bool = False  # takes If-Match and expect_version
    streams: str = ""  # when it answers with server-sent events: always, or "follow=true"
    media: str = "application/json"  # of the answer
    changes_nothing: bool = False  # a POST because its question is long

    @property
    def is_change(self) -> bool:
        return self.method != "GET" and not self.changes_nothing

    @property
    def name(self) -> str:
        """Its handler's: list_jobs."""
        return self.handle.__name__

    @property
    def tag(self) -> str:
        """What it is about: jobs."""
        return self.path.removeprefix("/api/v1").strip("/").partition("/")[0].partition("{")[0] or "root"

    @property
    def needs_body(self) -> bool:
        """Whether an empty body would leave something unsaid."""
        return self.body is not None and any(field.required for field in msgspec.structs.fields(self.body))
