"""The oracle: what is to become of each expected run of one schedule, read from the rules one run after the other.

It hears what is done to the schedule and when schedulers and workers are alive, and asks Rota nothing. All instants are
whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from tenants.rules import DAY, CalendarRule, CronRule, EveryRule, days_named, first_second, local_day, local_time

if TYPE_CHECKING:
    from datetime import date

    from tenants.rules import Rule

FAR = timedelta(days=2)  # no two zones, and no gap, move a local date further than this
FARTHEST = 27 * 3600  # no two zones are further apart


@dataclass(frozen=True)
class Said:
    """What a schedule's author says."""

    rule: Rule
    start: date | None = None  # local days
    end: date | None = None
    overlap: str = "skip"
    catchup: str = "latest"
    limit: int = 3
    grace: int = 60
    lookahead: int = 0
    word: int = 0  # its argument

    @property
    def timing(self) -> tuple[object, ...]:
        return self.rule, self.start, self.end


@dataclass(frozen=True)
class Hold:
    """A pause: when it began, and when it ends by itself."""

    until: int | None = None
    at: int = 0


def is_dated(rule: Rule) -> bool:
    """Whether it names at most one time on a date."""
    return isinstance(rule, CalendarRule) or (isinstance(rule, CronRule) and len(rule.hours) == 1)


class Expected:
    """One schedule: its expected runs so far, and what each has come to."""

    def __init__(self, said: Said, tz: str, now: int, held: Hold | None) -> None:
        self.said, self.tz, self.created, self.now = said, tz, now, now
        self.is_enabled = True
        self.own_hold: Hold | None = None
        self.tenant_hold = held
        self.floor = now  # nothing at or before it is expected any more
        self.done: datetime | None = None  # after a change of zone: local times up to here have had their run
        self.kept: tuple[int, datetime | None] | None = (
            None  # a run that was announced in another zone and still happens
        )
        self.pending: dict[int, datetime | None] = {}  # runs of another zone that are still to be decided
        self.silences: list[tuple[int, int]] = []  # over runs that were missed before: nothing in there is expected
        self.disabled_at = 0
        self.done_day: date | None = None  # after a change of the rule: this date has had its run
        self.made_at: int | None = None  # when the last job was made
        self.outcomes: dict[int, str] = {}
        self.ran: dict[int, int] = {}
        self.ahead: set[int] = set()  # made before their time, and not started
        self.live: list[int] = []  # made when due, and not started

    # Which instants are expected.

    def between(self, low: int, high: int) -> list[tuple[int, datetime | None]]:
        """The runs in low < t <= high that the rule names, in its zone and bounds, whatever has become of them."""
        if isinstance(self.said.rule, EveryRule):
            step = self.said.rule.hours * 3600
            anchor = self.created if self.said.start is None else first_second(self.said.start, self.tz)
            first = max(0, (low - anchor) // step + 1)
            named = [(at, None) for at in range(anchor + first * step, high + 1, step)]
        else:
            days = local_day(low, self.tz) - FAR, local_day(high, self.tz) + FAR
            named = sorted(dict(reversed(list(days_named(self.said.rule, self.tz, *days)))).items())
        return [(at, wall) for at, wall in named if low < at <= high and self._is_within(at)]

    def _is_within(self, at: int) -> bool:
        start, end = self.said.start, self.said.end
        if start is not None and at < first_second(start, self.tz):
            return False
        return end is None or at < first_second(end + DAY, self.tz)

    def _coming(self, low: int, high: int) -> list[int]:
        """Those of them that are still to be run: not decided, not made, and not done before the zone changed."""
        found = []
        for at, wall in self.between(max(low, self.floor), high):
            is_done = wall is not None and self.done is not None and wall <= self.done
            is_kept = self.kept is not None and (
                at <= self.kept[0] or (wall is not None and wall <= (self.kept[1] or wall))
            )
            is_silent = self.done_day is not None and at < first_second(self.done_day + DAY, self.tz)
            is_silent |= any(since <= at <= through for since, through in self.silences)
            if not (is_done or is_kept or is_silent or at in self.outcomes or at in self.ahead):
                found.append(at)
        found += [at for at in self.pending if low < at <= high and at not in self.outcomes and at not in self.ahead]
        return sorted(set(found))

    # Time passes.

    def advance(self, to: int, *, schedulers: bool, workers: bool) -> None:
        """From the last event to this one, with these alive all the while."""
        since = self.now
        self._begin(workers=workers)
        self._settle_kept(since)
        if schedulers:
            since = self._end_hold(to) or since
        if schedulers and self.is_active:
            self._look(since, workers=workers)
            for at in self._coming(since, to):
                if self.said.lookahead:
                    self.ahead.add(at)
                else:
                    self._make(at, at)
                    self._run_live(at, workers=workers)
            if self.said.lookahead:
                self.ahead |= set(self._coming(to, to + self.said.lookahead - 1))
        self._run_ahead(to, workers=workers)
        self._settle_kept(to)
        self.now = to

    @property
    def is_active(self) -> bool:
        return self.is_enabled and self.own_hold is None and self.tenant_hold is None

    def _end_hold(self, to: int) -> int | None:
        """A scheduler ends pauses that are over: what fell into them is skipped. When it did so."""
        holds = [hold for hold in (self.own_hold, self.tenant_hold) if hold is not None]
        if not self.is_enabled or not holds or any(hold.until is None or hold.until > to for hold in holds):
            return None
        until = max(hold.until or 0 for hold in holds)
        self._end_silence(until - 1)
        self.own_hold = self.tenant_hold = None
        return max(until, self.now)

    def _look(self, at: int, *, workers: bool) -> None:
        """A scheduler looks at what was not fired in time."""
        due = self._coming(0, at)
        missed = [one for one in due if one < at - self.said.grace]
        in_time = due[len(missed) :]
        kept = self._caught_up(missed, in_time)
        for one in [*kept, *in_time]:
            self._make(one, at, is_chained=one in kept and self.said.catchup == "all")
        self._run_live(at, workers=workers)
        self.floor = max([self.floor, *(through for _, through in self.silences)])
        self.silences, self.pending = [], {one: wall for one, wall in self.pending.items() if one > at}

    def _caught_up(self, missed: list[int], in_time: list[int]) -> list[int]:
        keep = {"skip": 0, "latest": 0 if in_time else 1, "all": self.said.limit}[self.said.catchup]
        kept = missed[-keep:] if keep else []
        rest = "coalesced" if self.said.catchup == "latest" else "skipped"
        self.outcomes |= {one: rest for one in missed if one not in kept}
        return kept

    def _make(self, one: int, at: int, *, is_chained: bool = False) -> None:
        if self.live and self.said.overlap == "skip" and not is_chained:
            self.outcomes[one] = "skipped"
            return
        self.outcomes[one] = "made"
        self.ran[one] = at
        self.made_at = max(at if not self.said.lookahead else one - self.said.lookahead, self.made_at or 0)
        self.live.append(one)

    def _run_live(self, at: int, *, workers: bool) -> None:
        if workers:
            self.ran |= dict.fromkeys(self.live, at)
            self.live = []

    def _run_ahead(self, to: int, *, workers: bool) -> None:
        """What was made ahead runs at its time."""
        if not workers:
            return
        for one in sorted(one for one in self.ahead if self.now < one <= to):
            self._make(one, one)
            self._run_live(one, workers=True)
        self.ahead = {one for one in self.ahead if one > to}

    def _begin(self, *, workers: bool) -> None:
        """Workers that have just come judge what is overdue of what was made ahead, then do all that waits."""
        for one in sorted(one for one in self.ahead if one <= self.now and workers):
            is_late = one < self.now - self.said.grace
            if is_late and self._newer_than(one) >= {"skip": 0, "latest": 1, "all": self.said.limit}[self.said.catchup]:
                self.outcomes[one] = "coalesced" if self.said.catchup == "latest" else "skipped"
            else:
                self._make(one, self.now, is_chained=is_late and self.said.catchup == "all")
            self.ahead.discard(one)
        self._run_live(self.now, workers=workers)

    def _newer_than(self, one: int) -> int:
        """How many later times have come, whatever becomes of them."""
        known = {other for other in (*self.ahead, *self.outcomes) if one < other <= self.now}
        return len(known.union(self._coming(one, self.now)))

    def _settle_kept(self, now: int) -> None:
        if self.kept is not None and self.kept[0] <= now:
            self.done = max(filter(None, (self.done, self.kept[1])), default=None)
            self.floor, self.kept = max(self.floor, self.kept[0]), None

    # Something is done to it, at self.now.

    def _skip_through(self, through: int) -> None:
        """Nothing that lies behind is open any more."""
        self._settle_kept(through)
        self.outcomes |= dict.fromkeys(self._coming(0, through), "skipped")
        self.floor = max(self.floor, through, *(end for _, end in self.silences), 0)
        self.silences = []
        self.pending = {one: wall for one, wall in self.pending.items() if one > through}

    def _end_silence(self, through: int) -> None:
        """What fell into the silence is skipped; what was missed before it is still to be decided."""
        began = [hold.at for hold in (self.own_hold, self.tenant_hold) if hold is not None]
        since = min([*began, *([] if self.is_enabled else [self.disabled_at])])
        if not [one for one in self._coming(0, through) if one < since] or since > through:
            self._skip_through(through)
            return
        self.outcomes |= dict.fromkeys(self._coming(since - 1, through), "skipped")
        self._settle_kept(through)
        self.silences.append((since, through))

    def _revoke(self) -> None:
        """What waits is cancelled; what was made for later is as if it had not been made."""
        due = [*self.live, *(one for one in self.ahead if one <= self.now)]
        for one in due:
            self.outcomes[one] = "cancelled"
            self.ran.pop(one, None)
        self._settle_kept(self.now)
        self.live, self.ahead = [], set()

    def pause(self, hold: Hold) -> None:
        self._revoke()
        self.own_hold = hold

    def pause_tenant(self, hold: Hold) -> None:
        self._revoke()
        self.tenant_hold = hold

    def resume(self) -> None:
        if self.own_hold is not None:
            self._end_silence(self._end_of(self.own_hold))
            self.own_hold = None

    def resume_tenant(self) -> None:
        hold = self.tenant_hold
        is_over = hold is not None and hold.until is not None and hold.until <= self.now
        if hold is None or (is_over and self.is_enabled):
            return  # the next scheduler sees to it
        self._end_silence(self._end_of(hold))
        self.tenant_hold = None

    def follow(self) -> None:
        """Its tenant was changed: a pause of the tenant's that is over goes, where no scheduler sees to it."""
        hold = self.tenant_hold
        if hold is not None and hold.until is not None and hold.until <= self.now:
            self.resume_tenant()

    def _end_of(self, hold: Hold) -> int:
        return self.now if hold.until is None else min(self.now, hold.until - 1)

    def disable(self) -> None:
        if self.is_enabled:
            self._revoke()
            self.is_enabled, self.disabled_at = False, self.now

    def enable(self) -> None:
        if not self.is_enabled:
            self._end_silence(self.now)
            self.is_enabled = True

    def edit(self, said: Said) -> None:
        """Another word holds for later runs; other times hold from now on, and nothing is replayed."""
        if said.timing != self.said.timing:
            self._revoke()
            day = self._done_day() if is_dated(self.said.rule) and is_dated(said.rule) else None
            done = self.done
            named = self.between(self.now, self.now + 2 * 86_400) if done is not None else []
            past = [at for at, wall in named if wall is not None and wall <= done]
            self._skip_through(self.now)
            self.floor = max([self.floor, *past])  # local times that had their run in another zone stay done
            self.done, self.kept, self.pending, self.done_day = None, None, {}, day
        self.said = said

    def _done_day(self) -> date | None:
        """The local date on which the last run was made, where it was made for that date; once done, it stays so."""
        if self.done_day is not None and self.now < first_second(self.done_day + DAY, self.tz):
            return self.done_day
        last = self._last_settled()
        is_run = last is not None and self.made_at is not None and last[0] <= self.made_at + 1 + self.said.lookahead
        return last[1].date() if is_run and last[1] is not None else None

    def move(self, tz: str, *, keeps_next: bool) -> None:
        """Another zone: the same local times there, and none twice."""
        if tz == self.tz:
            return
        kept = self._announced() if keeps_next and self.is_active else None
        is_every = isinstance(self.said.rule, EveryRule)
        is_from_now = kept is None and (not self.is_active or is_every or bool(self.silences))
        last = self._last_settled()
        self._revoke()
        missed = {one: self._wall_of(one) for one in self._coming(0, self.now)} if kept is not None else {}
        if is_from_now:
            self._skip_through(self.now)
        past = [wall for at, wall in self.pending.items() if at <= self.now]
        if self.done_day is not None:
            past.append(datetime.combine(self.done_day, time(23, 59, 59)))
        if last is not None:
            self.floor = max(self.floor, last[0])  # whatever the clocks say there, no instant comes twice
            past.append(last[1])
        self.done = max(filter(None, (self.done, *past)), default=None)
        self.tz, self.kept, self.done_day = tz, kept, None
        self.pending = {one: wall for one, wall in self.pending.items() if one <= self.now}
        if kept is not None:
            self.pending, self.silences = {**missed, kept[0]: kept[1]}, []
        elif not is_from_now:
            self._reopen()

    def _reopen(self) -> None:
        """A local date that has not run, and that the new clock puts before the last run, runs right after that."""
        low = max(self.created, self.floor - FARTHEST)
        dates = [wall.date() for _, wall in self.between(low, self.floor) if wall is not None]
        if self.done is not None and any(day > self.done.date() for day in dates):
            self.pending[self.floor + 1] = local_time(self.floor + 1, self.tz)

    def _announced(self) -> tuple[int, datetime | None] | None:
        """The next run, as anybody could have seen it."""
        if self.kept is not None and self.kept[0] > self.now:
            return self.kept
        high = self.now + 400 * 86_400
        coming = [(at, wall) for at, wall in self.between(self.now, high) if at in self.ahead]
        return min([*coming, *((at, self._wall_of(at)) for at in self._coming(self.now, high)[:1])], default=None)

    def _wall_of(self, at: int) -> datetime | None:
        if at in self.pending:
            return self.pending[at]
        return next(wall for one, wall in self.between(at - 1, at) if one == at)

    def _last_settled(self) -> tuple[int, datetime | None] | None:
        """The last run that was decided on, one way or another, and its local time."""
        low = max(self.created, self.now - 400 * 86_400)
        for at, wall in reversed(self.between(low, self.now)):
            if at <= self.floor or at in self.outcomes or at in self.ahead:
                return at, wall
        return None

    def __repr__(self) -> str:
        moment = datetime.fromtimestamp(self.now, UTC)
        return f"<{self.said.rule} in {self.tz} at {moment:%Y-%m-%d %H:%M:%S}>"
