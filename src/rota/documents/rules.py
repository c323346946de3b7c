"""Decides what becomes of a document: pure functions of its four fields, its nominal time, the server's time and the
outcome of a run. Sources and the queue only carry the decisions out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rota.documents.contract import Update
from rota.errors import BadInterval, BadOption, BadTrigger
from rota.model.micros import MILLISECOND, SECOND, datetime_of, micros_of
from rota.triggers import cron, trigger_from_text
from rota.triggers.calendar import Calendar

if TYPE_CHECKING:
    from rota.documents.contract import LockedDocument, Terms
    from rota.model.jobs.retry import Backoff
    from rota.triggers.trigger import Trigger

LONGEST_ERROR = 16_000  # characters that a side record keeps
LAST_SAFE_DAY = 28  # of a month: every month has it, so a rule that counts from it cannot drift


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The options of a queue about time, for all its documents."""

    tz: str
    reprocess_delay: int  # microseconds between the end of a run and the next run of the same document
    backoff: Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """The handler returned. What it returned does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """It was due after its end, so the handler was not called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The handler raised, or the document cannot be understood."""

    error: str
    random: float = 0.0  # in [0, 1): takes up to half of the pause off, so that many failures spread out


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete the document."""

    locked: LockedDocument[Any]


Outcome = Succeeded | Ended | Failed
Decision = Update[Any] | Remove


def admit(locked: LockedDocument[Any], now: int, timing: Timing) -> Ended | Failed | None:
    """Why a locked document must not run: it has ended, or it cannot be understood. None if it may run."""
    try:
        end = end_of(locked.terms)
        trigger_of(locked.terms, locked.side.nominal, timing.tz)
        _is_removed(locked.terms)
    except (BadTrigger, BadOption) as err:
        return Failed(error=f"{type(err).__name__}: {err}")
    return Ended() if end is not None and now > end else None


def decide(locked: LockedDocument[Any], outcome: Outcome, now: int, timing: Timing) -> Decision:
    """What becomes of a document after a run, or instead of one."""
    if isinstance(outcome, Failed):
        return _put_off(locked, outcome, now, timing)
    try:
        next_run = next_run_of(locked.terms, locked.side.nominal, now + timing.reprocess_delay, timing)
        is_removed = next_run is None and _is_removed(locked.terms)
    except (BadTrigger, BadOption) as err:  # the owner has changed a field while it ran
        return _put_off(locked, Failed(error=f"{type(err).__name__}: {err}"), now, timing)
    return Remove(locked=locked) if is_removed else Update(locked=locked, sleep_until=next_run)


def decide_again(
    was: LockedDocument[Any], fresh: LockedDocument[Any], outcome: Outcome, now: int, timing: Timing
) -> Decision:
    """What becomes of a document that its owner changed while it ran: a new time of the owner's is kept."""
    if fresh.terms.sleep_until != was.terms.sleep_until:
        return Update(locked=fresh, keeps_schedule=True)
    return decide(fresh, outcome, now, timing)


def begin(adopted: LockedDocument[Any], now: int, timing: Timing) -> Decision:
    """The first time of a recurring document that has none: as of a schedule that is created now."""
    try:
        return Update(locked=adopted, sleep_until=next_run_of(adopted.terms, now, now, timing))
    except (BadTrigger, BadOption) as err:
        return _put_off(adopted, Failed(error=f"{type(err).__name__}: {err}"), now, timing)


def next_run_of(terms: Terms, nominal: int, after: int, timing: Timing) -> int | None:
    """The first time of the document's rhythm that is later; None if it has no interval or has ended."""
    trigger = trigger_of(terms, nominal, timing.tz)
    if trigger is None:
        return None
    second = trigger.next_second(after // SECOND)
    end = end_of(terms)
    if second is None or (end is not None and second * SECOND > end):
        return None
    return second * SECOND


def trigger_of(terms: Terms, nominal: int, tz: str) -> Trigger | None:
    """The document's interval, counted from its nominal time; None for a document that runs once."""
    text = terms.interval
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise BadInterval(
            f"the interval {text!r} is not text", fix="write it as '0 9 * * *', '@hourly', 'every 90s' or 'calendar …'"
        )
    rule = _parse(text, tz)
    since = datetime_of(nominal - nominal % SECOND)
    bound = rule.bound(tz, start=since)
    if isinstance(rule, Calendar) and isinstance(bound, Calendar):
        _refuse_drift(rule, bound, since)
    return bound


def end_of(terms: Terms) -> int | None:
    """The instant after which the document does not run."""
    end = terms.repeat_until
    if end is None:
        return None
    if not isinstance(end, datetime):
        raise BadOption(f"repeatUntil is {end!r}, which is not a time; write a date, or null for no end")
    return micros_of(end)


def seconds_until(until: int, now: int) -> float:
    """Seconds until an instant, at least 0."""
    return max(0.0, (until - now) / SECOND)


@lru_cache(maxsize=1024)
def _parse(text: str, tz: str) -> Trigger:
    try:
        return _rule(text).bound(tz)
    except BadTrigger as err:
        raise BadInterval(f"the interval {text[:80]!r} cannot be understood: {err}", text=text) from err


def _rule(text: str) -> Trigger:
    kind = text.split(maxsplit=1)[0].lower() if text.strip() else ""
    if kind == "once":
        raise BadInterval("it names one time", fix="write that time into sleepUntil instead")
    return trigger_from_text(text) if kind in {"cron", "every", "calendar"} else cron(text)


def _refuse_drift(rule: Calendar, bound: Calendar, since: datetime) -> None:
    """A rule in months counts from the last time. From a 31st it would come to the 28th, and stay there."""
    is_monthly = rule.rule.unit not in {"days", "weeks"}
    is_anchored = rule.rule.start is not None or rule.rule.nth is not None or rule.rule.month_end != "clamp"
    local = bound.wall_time_of(since)
    if is_monthly and not is_anchored and local.day > LAST_SAFE_DAY:
        raise BadInterval(
            f"the interval '{rule}' has no start, and the document's time is on day {local.day} of the month, which "
            "not every month has",
            fix=f"add start={local.date().isoformat()}, or month_end=last",
        )


def _is_removed(terms: Terms) -> bool:
    given = terms.auto_remove
    if given is None or isinstance(given, bool) or (isinstance(given, int) and given in {0, 1}):
        return bool(given)
    raise BadOption(f"autoRemove is {given!r}; write true or false")


def _put_off(locked: LockedDocument[Any], failed: Failed, now: int, timing: Timing) -> Update[Any]:
    """Try again after a back-off, or at the document's next time if that is earlier."""
    failures = locked.side.failures + 1
    retry_at = now + max(timing.backoff.pause(failures, failed.random), MILLISECOND)
    retry_at -= retry_at % MILLISECOND  # what every server can keep
    side = replace(
        locked.side, failures=failures, error=failed.error[:LONGEST_ERROR], failed_at=now - now % MILLISECOND
    )
    try:
        next_run = next_run_of(locked.terms, locked.side.nominal, now, timing)
    except (BadTrigger, BadOption):
        next_run = None
    if next_run is not None and next_run <= retry_at:
        return Update(locked=locked, sleep_until=next_run, side=replace(side, nominal=next_run))
    return Update(locked=locked, sleep_until=retry_at, side=side)
