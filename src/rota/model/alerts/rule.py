"""Defines alert rules: the condition, the schedules, queues or nodes that it is about, and the channels to notify."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, Never, TypedDict, get_args

from msgspec import Struct

from rota.errors import BadName, BadOption
from rota.keywords import refuse_unknown
from rota.model.micros import SECOND, span_of
from rota.model.names import check_name
from rota.model.schedules.schedule import check_choice

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

When = Literal["fails", "late", "no_success", "no_worker", "oldest", "length", "node_gone"]
WHENS: tuple[When, ...] = get_args(When)
Kind = Literal["schedule", "queue", "node"]
KINDS: tuple[Kind, ...] = get_args(Kind)

KIND_OF: dict[str, Kind] = {
    "fails": "schedule",
    "late": "schedule",
    "no_success": "schedule",
    "no_worker": "queue",
    "oldest": "queue",
    "length": "queue",
    "node_gone": "node",
}
AFTER = {"late": 120 * SECOND, "no_worker": 60 * SECOND, "length": 60 * SECOND, "node_gone": 60 * SECOND}
NEEDS_AFTER = frozenset({"no_success", "oldest"})
HELD = frozenset({"no_worker", "length"})  # the store does not say since when: the incident's record does
MOST_LENGTH = 1_000_000_000
EVERY = "*"

_PATTERN = re.compile(r"[A-Za-z0-9._:-]{0,127}\*?", re.ASCII)


class AlertRule(Struct, frozen=True, kw_only=True):
    """One rule of an app."""

    name: str
    when: When
    selects: str = EVERY  # an id, or a prefix that ends in *
    after: int = 0  # microseconds: the bound of the condition, or for how long it must hold
    more_than: int = 0  # jobs, for `length`
    channels: tuple[str, ...] | None = None  # None: every channel of the app
    place: str = ""  # rota.yaml:7; empty: declared in code

    @property
    def kind(self) -> Kind:
        """The kind of subject that it selects."""
        return KIND_OF[self.when]

    @property
    def is_exact(self) -> bool:
        return not self.selects.endswith(EVERY)

    def matches(self, name: str) -> bool:
        return name == self.selects if self.is_exact else name.startswith(self.selects.removesuffix(EVERY))


class AlertKeywords(TypedDict, total=False):
    """The options of an alert rule, beside its condition."""

    schedule: str | None  # the id of a schedule, or a prefix that ends in `*`; None: all
    queue: str | None  # the name of a queue, or a prefix that ends in `*`; None: all
    node: str | None  # the id of a node, or a prefix that ends in `*`; None: all
    after: str | timedelta | None  # the bound of the condition, or for how long it must hold
    more_than: int | None  # how many waiting jobs are still well, for `length`
    channels: Iterable[str] | None  # names of declared channels; None: all of them


def make_rule(
    name: str,
    *,
    when: str,
    schedule: str | None = None,
    queue: str | None = None,
    node: str | None = None,
    after: str | timedelta | None = None,
    more_than: int | None = None,
    channels: Iterable[str] | None = None,
    place: str = "",
    **unknown: Never,
) -> AlertRule:
    """A checked rule. An option that does not belong to its condition is refused."""
    refuse_unknown("an alert rule", unknown, ["when", *AlertKeywords.__annotations__], {})
    check_name("alert", name)
    check_choice("when", when, WHENS)
    kind = KIND_OF[when]
    given = {"schedule": schedule, "queue": queue, "node": node}
    for other, selector in given.items():
        if selector is not None and other != kind:
            raise BadOption(f"{other}={selector!r} does not fit when={when!r}, which is about a {kind}; say {kind}=")
    return AlertRule(
        name=name,
        when=when,  # type: ignore[arg-type]  # checked above
        selects=check_pattern(kind, EVERY if given[kind] is None else given[kind]),
        after=_after(when, after),
        more_than=_more_than(when, more_than),
        channels=None if channels is None else _channels(channels),
        place=place,
    )


def check_pattern(kind: str, pattern: Any) -> str:
    """An id, or a prefix that ends in *."""
    if not isinstance(pattern, str) or not pattern or not _PATTERN.fullmatch(pattern):
        raise BadName(f"{kind}={pattern!r} is neither a name nor a prefix that ends in *, such as mail-*")
    return pattern


def _after(when: str, after: str | timedelta | None) -> int:
    if after is None:
        if when in NEEDS_AFTER:
            raise BadOption(f"when={when!r} needs after=, a duration such as 26h")
        return AFTER.get(when, 0)
    if when == "fails":
        raise BadOption("after= does not fit when='fails': one failed run is enough")
    return span_of(after)


def _more_than(when: str, more_than: int | None) -> int:
    if when != "length":
        if more_than is not None:
            raise BadOption(f"more_than= belongs to when='length', and this is when={when!r}")
        return 0
    if isinstance(more_than, bool) or not isinstance(more_than, int) or not 0 <= more_than <= MOST_LENGTH:
        raise BadOption(f"when='length' needs more_than=, a whole number of jobs from 0 to {MOST_LENGTH:,}")
    return more_than


def _channels(channels: Iterable[str]) -> tuple[str, ...]:
    if isinstance(channels, str):
        raise BadOption(f"channels={channels!r} must be a list of names, as in channels=[{channels!r}]")
    return tuple(dict.fromkeys(check_name("channel", name) for name in channels))
