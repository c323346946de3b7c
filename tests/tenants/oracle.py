"""The oracle: what is to become of each expected run of one schedule, read from the rules one run after the other.

It hears what is done to the schedule and when schedulers and workers are alive, and asks Rota nothing. All instants are
whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from tenants.rules import DAY, CalendarRule, CronRule, EveryRule, days_named, first_second, local_day

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from tenants.rules import Rule

FAR = timedelta(days=2)  # no two zones, and no gap, move a local date further than this
MOST_KEPT = 100  # missed runs that keep their instants in another zone
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
        self.born = now  # no time at or before it was ever expected: it was made then, or got another rule
        self.floor = now  # nothing at or before it is expected any more
        self.done: datetime | None = None  # after a change of zone or rule: local times up to here have had their turn
        self.decided: datetime | None = None  # the last local time that was decided since, by the clock of that moment
        self.walls: dict[int, datetime | None] = {}  # the local times of what was decided
        self.kept: tuple[int, datetime | None] | None = None  # a run of another zone that is announced and stays so
        self.pending: dict[int, datetime | None] = {}  # runs of another zone that are still to be decided
        self.stand_in: int | None = None  # the one of them that stands for times that only this zone's clock has passed
        self.hushed: dict[int, datetime | None] = {}  # silenced, while earlier ones are missed and still open
        self.disabled_at = 0
        self.silences: list[tuple[int, float]] = []  # from when to when something silenced it; those that have begun
        self.ran_day: date | None = None  # the last date that a rule with one time a day has run
        self.made_through = now  # the last time for which a job was made
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
            is_hushed = wall is not None and wall in self.hushed.values()
            if not (is_done or is_kept or is_hushed or at in self.outcomes or at in self.ahead):
                found.append(at)
        found += [at for at in self.pending if low < at <= high and at not in self.outcomes and at not in self.ahead]
        return sorted(set(found))

    # Time passes.

    def advance(self, to: int, *, schedulers: bool, workers: bool) -> None:
        """From the last event to this one, with these alive all the while."""
        since = self.now
        self._begin(workers=workers)
        if schedulers:
            since = self._end_hold(to) or since
        if schedulers and self.is_active:
            self._look(since, workers=workers)
            for at in self._coming(since, to):
                if self.said.lookahead:
                    self.ahead.add(at)
                    self._pass(at)
                else:
                    self._make(at, at)
                    self._run_live(at, workers=workers)
            if self.said.lookahead:
                self.ahead |= set(self._coming(to, to + self.said.lookahead - 1))
            self._note_made(self.ahead)
        self._run_ahead(to, workers=workers)
        self.now = to
        for one in sorted(one for one in self.ahead if one <= to):
            self._pass(one)

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
        self._unhush()
        self.pending = {one: wall for one, wall in self.pending.items() if one > at or one in self.ahead}

    def _unhush(self) -> None:
        """Nothing earlier is open any more."""
        for one, wall in self.hushed.items():
            self._note_decided(one, wall)
        self.hushed = {}

    def _caught_up(self, missed: list[int], in_time: list[int]) -> list[int]:
        keep = {"skip": 0, "latest": 0 if in_time else 1, "all": self.said.limit}[self.said.catchup]
        kept = missed[-keep:] if keep else []
        rest = "coalesced" if self.said.catchup == "latest" else "skipped"
        for one in missed:
            if one not in kept:
                self._settle(one, rest)
        return kept

    def _make(self, one: int, at: int, *, is_chained: bool = False) -> None:
        if self.live and self.said.overlap == "skip" and not is_chained:
            self._settle(one, "skipped")
            return
        self._note_made([one])
        self._settle(one, "made")
        self.ran[one] = at
        self.live.append(one)

    def _note_made(self, instants: Iterable[int]) -> None:
        self.made_through = max([self.made_through, *instants])

    def _settle(self, one: int, outcome: str) -> None:
        """Say what a run has come to, and that its local time had its turn."""
        self.outcomes[one] = outcome
        self._pass(one)

    def _pass(self, one: int) -> None:
        """A run is decided on, by the clock of this moment."""
        if one not in self.walls:
            self.walls[one] = self._wall_of(one)
        wall = self.walls[one]
        self._note_decided(one, wall)
        if self.kept is not None and one == self.kept[0]:  # it also stands for what its zone's clock has passed by then
            own = [named for _, named in self.between(self.born, one)[-9:]]
            self.decided = self.done = max(filter(None, (self.done, self.decided, *own)), default=None)
            self.kept = None
        if is_dated(self.said.rule) and wall is not None and one <= self.made_through:
            day = self.decided.date() if one in self.pending and self.decided else wall.date()
            self.ran_day = max(filter(None, (self.ran_day, day)))

    def _note_decided(self, one: int, wall: datetime | None) -> None:
        self.floor = max(self.floor, one)
        self.decided = max(filter(None, (self.decided, wall)), default=None)

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
        """Workers that have just come decide on what is overdue of what was made ahead, then do all that waits."""
        for one in sorted(one for one in self.ahead if one <= self.now and workers):
            is_late = one < self.now - self.said.grace
            if is_late and self._newer_than(one) >= {"skip": 0, "latest": 1, "all": self.said.limit}[self.said.catchup]:
                self._settle(one, "coalesced" if self.said.catchup == "latest" else "skipped")
            else:
                self._make(one, self.now, is_chained=is_late and self.said.catchup == "all")
            self.ahead.discard(one)
        self._run_live(self.now, workers=workers)

    def _newer_than(self, one: int) -> int:
        """How many later times have come, whatever becomes of them."""
        known = {other for other in (*self.ahead, *self.outcomes) if one < other <= self.now}
        return len(known.union(self._coming(one, self.now)))

    # Something is done to it, at self.now.

    def _skip_through(self, through: int) -> None:
        """Nothing that lies behind is open any more."""
        made, self.made_through = self.made_through, 0  # a date that is skipped is not run
        for one in self._coming(0, through):
            self._settle(one, "skipped")
        self.made_through = made
        self._unhush()
        self.pending = {one: wall for one, wall in self.pending.items() if one > through}

    def _end_silence(self, through: int) -> None:
        """What fell into the silence is skipped; what was missed before it is still to be decided."""
        began = [hold.at for hold in (self.own_hold, self.tenant_hold) if hold is not None]
        since = self._silent_since(min([*began, *([] if self.is_enabled else [self.disabled_at])]))
        if not [one for one in self._coming(0, through) if one < since] or since > through:
            self._skip_through(through)
            return
        fell = self._coming(since - 1, through)
        self.hushed |= {one: self._wall_of(one) for one in fell}
        self.outcomes |= dict.fromkeys(fell, "skipped")

    def _silent_since(self, began: int) -> int:
        """Silences that overlap are one: it began with the first of them, also if that one was lifted before."""
        while earlier := [at for at, end in self.silences if at < began < end]:
            began = min(earlier)
        return began

    def _note_silence(self, hold: Hold | None) -> None:
        """Something that silenced it has ended now, or is replaced by another."""
        if hold is not None:
            self.silences.append((hold.at, min(self.now, float("inf") if hold.until is None else hold.until)))

    def _revoke(self) -> None:
        """What waits is cancelled; what was made for later is as if it had not been made."""
        due = [*self.live, *(one for one in self.ahead if one <= self.now)]
        for one in due:
            self._settle(one, "cancelled")
            self.ran.pop(one, None)
        self.live, self.ahead = [], set()

    def _settle_silence(self) -> None:
        """Something stops it: what fell into an earlier silence did so by that one, and pauses that are over go."""
        if not self.is_active:
            self._hush_so_far()
        for hold in (self.own_hold, self.tenant_hold):
            self._note_silence(hold)
        self.own_hold, self.tenant_hold = (
            None if hold is not None and hold.until is not None and hold.until <= self.now else hold
            for hold in (self.own_hold, self.tenant_hold)
        )

    def pause(self, hold: Hold) -> None:
        self._revoke()
        self._settle_silence()
        self.own_hold = hold if self.own_hold is None else replace(hold, at=self.own_hold.at)

    def pause_tenant(self, hold: Hold) -> None:
        before = self.tenant_hold
        if before is not None and (before.until is None or before.until > self.now):
            hold = replace(hold, at=before.at)
        if hold == before:
            return  # it says nothing new
        self._revoke()
        self._settle_silence()
        self.tenant_hold = hold

    def resume(self) -> None:
        if self.own_hold is not None:
            self._end_silence(self._end_of(self.own_hold))
            self._note_silence(self.own_hold)
            self.own_hold = None

    def resume_tenant(self) -> None:
        hold = self.tenant_hold
        is_over = hold is not None and hold.until is not None and hold.until <= self.now
        if hold is None or (is_over and self.is_enabled):
            return  # the next scheduler sees to it
        self._end_silence(self._end_of(hold))
        self._note_silence(hold)
        self.tenant_hold = None

    def follow(self) -> None:
        """Its tenant was changed: a pause of the tenant's that is over goes, if no scheduler sees to it."""
        hold = self.tenant_hold
        if hold is not None and hold.until is not None and hold.until <= self.now:
            self.resume_tenant()

    def _end_of(self, hold: Hold) -> int:
        return self.now if hold.until is None else min(self.now, hold.until - 1)

    def disable(self) -> None:
        if self.is_enabled:
            self._revoke()
            self._settle_silence()
            self.is_enabled, self.disabled_at = False, self.now

    def enable(self) -> None:
        if not self.is_enabled:
            self._end_silence(self.now)
            self._note_silence(Hold(at=self.disabled_at))
            self.is_enabled = True

    def edit(self, said: Said) -> None:
        """Another word holds for later runs; other times hold from now on, and nothing is replayed."""
        if said.timing != self.said.timing:
            self._revoke()
            self._skip_through(self.now)
            self.floor = max(self.floor, self.now)
            has_moved_anchor = isinstance(said.rule, EveryRule) and said.start != self.said.start
            if said.rule != self.said.rule or has_moved_anchor:
                self._forget(said.rule)
            self.said = said
            self._check_kept()
        self.said = said

    def _check_kept(self) -> None:
        """Within other bounds, a run that is kept stays so, unless it is outside or another local time comes first."""
        if self.kept is None:
            return
        at, wall = self.kept
        done = max(filter(None, (self.done, self.decided)), default=None)
        coming = [named for _, named in self.between(self.now, at + 2 * 86_400) if named and (not done or named > done)]
        if not self._is_within(at) or (wall is not None and any(named < wall for named in coming)):
            self.kept = None
            self.pending = {one: of for one, of in self.pending.items() if one <= self.now}

    def _forget(self, rule: Rule) -> None:
        """Another rule: of what the old ones did, the dates that had their run are done, if it names dates."""
        is_done = self.ran_day is not None and is_dated(rule)
        self.done = datetime.combine(self.ran_day, time(23, 59, 59)) if is_done else None
        self.decided, self.kept, self.pending, self.hushed = None, None, {}, {}
        self.born = self.now

    def move(self, tz: str, *, keeps_next: bool) -> None:
        """Another zone: the same local times there, and none twice."""
        if tz == self.tz:
            return
        kept = self._announced() if keeps_next and self.is_active else None
        self._revoke()
        if not self.is_active:
            self._hush_so_far()
        missed = {one: self._wall_of(one) for one in self._coming(0, self.now)} if kept is not None else {}
        is_from_now = kept is None and isinstance(self.said.rule, EveryRule)
        if is_from_now:
            self._skip_through(self.now)
            self.floor = max(self.floor, self.now)
        open_ones = {one: wall for one, wall in self.pending.items() if one <= self.now and kept is None}
        if not self.hushed and self.stand_in is not None:  # the next clock decides about its times again
            open_ones.pop(self.stand_in, None)
        self.stand_in = None
        if self.hushed and kept is None:  # what was missed before a pause keeps its instants
            missed_before = self._coming(0, max(self.hushed))
            open_ones |= {one: self._wall_of(one) for one in missed_before[-MOST_KEPT:]}
            for one in missed_before[:-MOST_KEPT]:
                self._settle(one, "skipped")
            self._unhush()
        self.done = max(filter(None, (self.done, self.decided, *open_ones.values())), default=None)
        self.tz, self.kept, self.decided, self.pending = tz, kept, None, open_ones
        if kept is not None:
            self.pending, self.hushed = {**missed, kept[0]: kept[1]}, {}
        elif not is_from_now:
            self._reopen()

    def _hush_so_far(self) -> None:
        """What fell into a pause until now did so by the clock that held until now."""
        holds = [hold for hold in (self.own_hold, self.tenant_hold) if hold is not None]
        ends = [hold.until for hold in holds]
        is_over = self.is_enabled and None not in ends and max(ends) <= self.now
        self._end_silence(max(ends) - 1 if is_over else self.now)

    def _reopen(self) -> None:
        """A local time that has not run, and that the new clock puts before the last run, runs right after that."""
        low = max(self.born, self.floor - FARTHEST)
        named = [
            wall for _, wall in self.between(low, self.floor) if wall is not None and wall not in self.hushed.values()
        ]
        left = [wall for wall in named if self.done is not None and wall > self.done]
        if left:
            self.stand_in = self.floor + 1
            self.pending[self.stand_in] = left[-1]

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

    def __repr__(self) -> str:
        moment = datetime.fromtimestamp(self.now, UTC)
        return f"<{self.said.rule} in {self.tz} at {moment:%Y-%m-%d %H:%M:%S}>"
