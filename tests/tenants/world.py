"""A world of tenants on one store, with a clock that jumps from event to event, and an oracle beside each schedule.

Everything is drawn from one seed: who the tenants are, what is done to them, when schedulers and workers are down,
where a scheduler is killed. The real App, rules and scheduler are used; only time and death are the world's.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import TYPE_CHECKING

from rota import App, failpoints
from rota.app import internals
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.errors import BadOption
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, Retention
from rota.testing.simulation.relay import Relay
from tenants.oracle import Expected, Hold, Said
from tenants.rules import CalendarRule, CronRule, EveryRule, local_day

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.store.contract import Store
    from tenants.rules import Rule

SECOND = 1_000_000
A_DAY = 86_400
QUEUES = ("default", "slow", "fast")
KEEP_ALL = Retention(succeeded_for=0, cancelled_for=0, occurrences_for=10**18, most_occurrences=10**9)
EPOCHS = [date(2026, 1, 1), date(2009, 1, 1)]  # zones changed their rules in the second: Apia, Cairo, Moscow, Caracas
ZONES = (
    "UTC", "Europe/Paris", "Europe/London", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul", "America/New_York",
    "America/Los_Angeles", "America/Sao_Paulo", "America/Santiago", "America/Havana", "America/Caracas",
    "America/St_Johns", "America/Nuuk", "America/Phoenix", "Africa/Cairo", "Africa/Casablanca", "Africa/Lagos",
    "Africa/Johannesburg", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Asia/Tehran", "Asia/Beirut", "Asia/Gaza",
    "Asia/Pyongyang", "Asia/Shanghai", "Australia/Sydney", "Australia/Adelaide", "Australia/Lord_Howe",
    "Australia/Eucla", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Kiritimati",
    "Pacific/Pago_Pago", "Pacific/Fiji", "Pacific/Honolulu", "Pacific/Marquesas", "Antarctica/Troll",
)  # fmt: skip
DAILY = [12, 10, 5, 0, 0, 12, 1, 1, 0, 0, 0, 1]  # how often a busy world draws each kind of rule
TO_TENANTS = ("zone", "zone", "zone", "pause", "pause", "resume", "resume", "policy", "create")
TO_SCHEDULES = (
    "word", "word", "time", "time", "bounds", "pause", "pause", "resume", "resume", "disable", "enable", "enable",
    "run now", "remove",
)  # fmt: skip


class Killed(BaseException):
    """A scheduler dies in the middle of what it does."""


class At(Relay):
    """A store whose clock is the world's."""

    clock = 0

    def at(self, now: int | None) -> int | None:
        return self.clock * SECOND if now is None else now

    def now(self) -> int:
        return self.clock * SECOND


class Customer:
    """A tenant as the world knows it."""

    def __init__(self, name: str, tz: str, policy: str) -> None:
        self.name, self.tz, self.policy = name, tz, policy
        self.hold: Hold | None = None
        self.schedules: dict[str, Expected] = {}

    def hold_at(self, now: int) -> Hold | None:
        is_over = self.hold is None or (self.hold.until is not None and self.hold.until <= now)
        return None if is_over else self.hold


class World:
    """Some tenants for some years."""

    def __init__(self, inner: Store, seed: str, *, tenants: int, days: int, is_busy: bool = False) -> None:
        self.random = Random(seed)
        self.is_busy = is_busy  # something happens every few hours, to rules that run every day
        self.store = At(inner)
        self.app = App(self.store)
        self.task = self.app.task(name="items.make")(make_item)
        epoch = EPOCHS[self.random.random() < 0.5]
        self.start = self.now = int(datetime.combine(epoch, time(9, 1, 41), UTC).timestamp())
        self.end = self.start + days * A_DAY
        self.schedulers = self.workers = True
        self.ran: dict[tuple[str, int, int], list[int]] = {}  # by schedule, its creation and nominal time: when
        self.numbers = 0
        self.checked = 0
        self.customers = [self._customer(number) for number in range(tenants)]
        self.deaths = 0
        self.story: list[tuple[int, str, str]] = []  # when, to whom, what

    # The whole.

    def live(self) -> int:
        """Let all the years pass; answers how many runs were expected, each of which was found to be right."""
        self._at(self.start)
        for customer in self.customers:
            self.app.tenants.put(customer.name, tz=customer.tz, on_zone_change=customer.policy)
            for _ in range(self.random.choice((1, 2, 3))):
                self._create(customer)
        while self.now < self.end:
            self._pass_until(min(self.end, self._moment(self.random.expovariate(1 / self._pace))))
            if self.now < self.end:
                self._happen()
        for customer in self.customers:
            for name in list(customer.schedules):
                self.audit(customer, name)
        return self.checked

    @property
    def _pace(self) -> float:
        """Seconds between two events: some two a month for each tenant; now and then they come in a burst."""
        if self.is_busy or self.random.random() < 0.15:
            return 3600 * 3
        return 16 * A_DAY / len(self.customers)

    def _moment(self, seconds: float) -> int:
        """A whole second later than now, at which no rule fires."""
        return (self.now + int(seconds)) // 60 * 60 + 60 + self.random.choice((7, 19, 41))

    def _at(self, now: int) -> None:
        self.now = self.store.clock = now

    # Time passes: schedulers and workers do what is due, at the very second.

    def _pass_until(self, end: int) -> None:
        self._fire()
        while True:
            self._work()
            at = min((one for one in (self._next_due(), self._next_run()) if one is not None), default=end)
            if at > end:
                break
            self._at(max(at, self.now))
            self._fire()
            if at >= end:
                break
        self._at(end)
        self._fire()
        self._work()

    def _next_due(self) -> int | None:
        return self.next_due if self.schedulers else None

    def _next_run(self) -> int | None:
        return self.next_run if self.workers else None

    next_due: int | None = None  # as the store said when it was last asked, which is what a scheduler sleeps by
    next_run: int | None = None

    def _fire(self) -> None:
        if not self.schedulers:
            return
        for _ in range(1_000):
            due = self.store.due_schedules(200)
            if not due.schedules:
                self.next_due = None if due.next_due_at is None else -(-due.next_due_at // SECOND)
                return
            luck = self.random.random()
            if luck < 0.03:
                self._die(self._scheduler(), due, self.random.choice(("fire.before", "fire.after")))
            elif luck < 0.1:
                self._race(due)
            else:
                self._scheduler().fire(due.schedules, due.now)
        raise AssertionError(f"a scheduler finds no end at {self.now}: {due.schedules[0].id}")

    def _scheduler(self) -> Scheduler:
        return Scheduler(self.store, internals(self.app).events, StoreClock(self.store.now), self._new_id)

    def _die(self, scheduler: Scheduler, due, where: str) -> None:
        """Killed before its firing is written, or after that and before it hears of it."""

        def kill(name: str) -> None:
            if name == where:
                raise Killed(name)

        failpoints.install(kill)
        try:
            scheduler.fire(due.schedules, due.now)
        except Killed:
            self.deaths += 1
        finally:
            failpoints.install(None)

    def _race(self, due) -> None:
        """Two have seen the same, and both fire it; the second may have been asleep for a while."""
        self._scheduler().fire(due.schedules, due.now)
        self._scheduler().fire(due.schedules, due.now)

    def _new_id(self) -> str:
        self.numbers += 1
        return f"job-{self.numbers}"

    def _work(self) -> None:
        """Workers take what is ready and do it at once."""
        done: list = []
        while self.workers:
            ask = Exchange(holder="crew", settled=done, want=500, queues=QUEUES, lease_for=60 * SECOND)
            reply = self.store.exchange(ask)
            assert reply.refused == []
            for job in reply.claimed:
                if job.fire_at is not None:
                    name = job.schedule_id or ""
                    self.ran.setdefault((name, job.fire_at // SECOND), []).append(self.now)
            self.next_run = None if reply.next_due_at is None else -(-reply.next_due_at // SECOND)
            done = [
                settle(job, Succeeded(), RetryPolicy(), self.now * SECOND, 0.0, keep=self.random.random() < 0.05)
                for job in reply.claimed
            ]
            if not done:
                return

    # Something happens.

    def _happen(self) -> None:
        luck = self.random.random()
        if luck < (0.05 if self.schedulers and self.workers else 0.4):
            self._stop_or_start()
            return
        customer = self.random.choice(self.customers)
        if luck < 0.3 or not customer.schedules:
            self._happen_to_tenant(customer)
            return
        name = self.random.choice(list(customer.schedules))
        self._catch_up(customer.schedules[name])
        self._happen_to_schedule(customer, name)

    def _stop_or_start(self) -> None:
        for customer in self.customers:
            for expected in customer.schedules.values():
                self._catch_up(expected)
        if self.random.random() < (0.4 if self.workers else 0.8):
            self.workers = not self.workers
        else:
            self.schedulers = not self.schedulers
        self._tell("", f"schedulers {'up' if self.schedulers else 'down'}, workers {'up' if self.workers else 'down'}")

    def _tell(self, whom: str, what: str) -> None:
        self.story.append((self.now, whom, what))

    def _catch_up(self, expected: Expected) -> None:
        expected.advance(self.now, schedulers=self.schedulers, workers=self.workers)

    def _happen_to_tenant(self, customer: Customer) -> None:
        for expected in customer.schedules.values():
            self._catch_up(expected)
        what = self.random.choice(TO_TENANTS)
        self._tell(customer.name, f"{what} (was {customer.tz}, {customer.policy}, {customer.hold})")
        if what == "zone":
            self._move(customer)
        elif what == "policy":
            customer.policy = self.random.choice(("recompute", "keep_next"))
            self._say(customer, self._queue())
        elif what == "pause":
            customer.hold = Hold(self._until(), self.now)
            self.app.tenants.pause(customer.name, until=moment(customer.hold.until), reason="month end", by="ann")
            for expected in customer.schedules.values():
                expected.pause_tenant(customer.hold)
        elif what == "resume":
            self.app.tenants.resume(customer.name, by="ann")
            if customer.hold is not None:
                for expected in customer.schedules.values():
                    expected.resume_tenant()
                customer.hold = None
        else:
            self._create(customer)

    def _move(self, customer: Customer) -> None:
        customer.tz = self.random.choice(ZONES)
        for expected in customer.schedules.values():
            expected.move(customer.tz, keeps_next=customer.policy == "keep_next")
        self._say(customer, self.app.tenants.get(customer.name).queue)

    def _say(self, customer: Customer, queue: str | None) -> None:
        """What holds for a tenant is said anew; if that changes anything, its schedules follow."""
        before = self.app.tenants.get(customer.name).version
        said = self.app.tenants.put(customer.name, tz=customer.tz, on_zone_change=customer.policy, queue=queue)
        for expected in customer.schedules.values() if said.version != before else ():
            expected.follow()

    def _happen_to_schedule(self, customer: Customer, name: str) -> None:
        expected = customer.schedules[name]
        schedules = self.app.schedules
        what = self.random.choice(TO_SCHEDULES)
        self._tell(name, f"{what} (was {expected.said}, {expected.own_hold}, enabled={expected.is_enabled})")
        if what == "word":
            self._edit(customer, name, self._reworded(expected.said))
        elif what == "time":
            self._edit(customer, name, replace(expected.said, rule=self._rule(customer.tz)))
        elif what == "bounds":
            self._edit(customer, name, self._bounded(expected.said, customer.tz))
        elif what == "pause":
            hold = Hold(self._until(), self.now)
            schedules.pause(name, until=moment(hold.until), reason="a rest", by="bob")
            expected.pause(hold)
        elif what == "resume":
            schedules.resume(name)
            expected.resume()
        elif what == "disable":
            schedules.disable(name)
            expected.disable()
        elif what == "enable":
            schedules.enable(name)
            expected.enable()
        elif what == "run now":
            schedules.run_now(name)
        else:
            self._remove(customer, name)

    def _edit(self, customer: Customer, name: str, said: Said) -> None:
        expected = customer.schedules[name]
        self._put(customer, name, said)
        if said != expected.said:
            expected.edit(said)
            expected.follow()

    def _remove(self, customer: Customer, name: str) -> None:
        """It goes, and another may come under its name."""
        self.audit(customer, name)
        assert self.app.schedules.remove(name)
        del customer.schedules[name]
        self.ran = {key: value for key, value in self.ran.items() if key[0] != name}
        if self.random.random() < 0.7:
            self._create(customer, name)

    def _create(self, customer: Customer, name: str | None = None) -> None:
        said = self._bounded(
            self._reworded(Said(self._rule(customer.tz), overlap=self.random.choice(("skip", "skip", "allow")))),
            customer.tz,
        )
        name = name or f"{customer.name}-{self._new_id()}"
        self._at(self.now + 1)  # later than whatever a schedule of that name did
        for expected in customer.schedules.values():
            self._catch_up(expected)
        try:
            self._put(customer, name, said)
        except BadOption:
            return  # its bounds leave it no run, and nobody may make such a schedule
        customer.schedules[name] = Expected(said, customer.tz, self.now, customer.hold_at(self.now))

    def _put(self, customer: Customer, name: str, said: Said) -> None:
        self.app.schedules.put(
            name,
            self.task.job(said.word),
            said.rule.trigger(),
            tenant=customer.name,
            start=said.start,
            end=said.end,
            overlap=said.overlap,
            catchup=said.catchup,
            catchup_limit=said.limit,
            grace=f"{said.grace}s",
            lookahead=f"{said.lookahead}s" if said.lookahead else None,
        )

    # Drawing.

    def _customer(self, number: int) -> Customer:
        return Customer(f"tenant{number}", self.random.choice(ZONES), self.random.choice(("recompute", "keep_next")))

    def _queue(self) -> str | None:
        return self.random.choice((None, "slow", "fast"))

    def _until(self) -> int | None:
        """With no end, or with one: on a whole minute, where runs may lie."""
        if self.random.random() < 0.4:
            return None
        return (self._moment(self.random.expovariate(1 / (10 * A_DAY))) // 60 + 2) * 60  # never past

    def _reworded(self, said: Said) -> Said:
        pick = self.random.choice
        return replace(
            said,
            word=said.word + 1,
            catchup=pick(("latest", "latest", "skip", "all")),
            grace=pick((60, 60, 1, 4 * 3600)),
            lookahead=pick((0, 0, 0, 6 * 3600, 30 * 3600)),
        )

    def _bounded(self, said: Said, tz: str) -> Said:
        today = local_day(self.now, tz)
        start = self.random.choice((None, None, today - timedelta(days=40), today + timedelta(days=self._days(30))))
        end = self.random.choice((None, None, None, today + timedelta(days=30 + self._days(700))))
        return replace(said, start=start, end=end)

    def _days(self, most: int) -> int:
        return 2 + self.random.randrange(most)

    def _rule(self, tz: str) -> Rule:
        pick = self.random.choice
        minute = pick((0, 5, 30))
        anchor = local_day(self.now, tz) + timedelta(days=pick((-400, -31, -1, 0, 3, 45)))
        at = time(pick((0, 0, 1, 2, 3, 12, 23)), minute)
        rules = [
            CronRule(minute, (pick((0, 1, 2, 3, 9, 23)),)),
            CronRule(minute, (0, 2, 12)),
            CronRule(minute, tuple(range(0, 24, 12)), is_cadence=True),
            CronRule(minute, (pick((0, 2, 9)),), weekday=pick(range(7))),
            CronRule(minute, (pick((0, 2, 9)),), day=pick((1, 15, 30, 31))),
            CalendarRule("days", pick((1, 1, 2, 3)), at, anchor),
            CalendarRule("weeks", pick((1, 2)), at, anchor, weekday=pick((None, 1, 6))),
            CalendarRule("months", pick((1, 1, 3)), at, anchor),
            CalendarRule("months", pick((1, 2)), at, anchor, weekday=pick(range(7)), nth=pick((1, 2, 5, -1))),
            CalendarRule("quarters", 1, at, anchor),
            CalendarRule("years", 1, at, anchor),
            EveryRule(pick((25, 36, 48, 240))),
        ]
        weights = DAILY if self.is_busy else [4, 1, 1, 16, 16, 4, 16, 16, 16, 8, 8, 10]  # daily runs cost the most
        return self.random.choices(rules, weights)[0]

    # Comparing.

    def audit(self, customer: Customer, name: str) -> None:
        """Every run that was expected so far happened once, at its time, or has the outcome that the rules give it."""
        expected = customer.schedules[name]
        self._catch_up(expected)
        self.store.prune(KEEP_ALL, 10_000)
        waiting = [*expected.live, *(one for one in expected.ahead if one <= self.now)]
        ran = {one: [at] for one, at in expected.ran.items() if one not in waiting}
        found = {key[1]: moments for key, moments in self.ran.items() if key[0] == name}
        assert found == ran, self._explained(name, expected, found, ran)
        lines = self._lines(name, expected)
        try:
            told = dict(told_by(lines, sorted(expected.outcomes)))
        except AssertionError as err:
            at = second_of(lines[0].through)
            raise AssertionError(f"{err}\n{self._explained(name, expected, {at: str(lines)}, {})}") from err
        wanted = {one: outcome for one, outcome in expected.outcomes.items() if one not in waiting}
        assert told == wanted, self._explained(name, expected, told, wanted)
        self.checked += len(wanted)

    def _lines(self, name: str, expected: Expected) -> list:
        """The ledger's lines; those of what waits are as many as wait."""
        lines, cursor, is_last = [], None, False
        while not is_last:
            start = moment(expected.created)
            page = self.app.schedules.occurrences(name, start, moment(self.now + 400 * A_DAY), limit=200, cursor=cursor)
            lines += page.items
            cursor, is_last = page.cursor, page.cursor is None
        open_lines = {second_of(line.through) for line in lines if line.outcome in {"queued", "scheduled", "held"}}
        waits = {*expected.live, *expected.ahead}
        assert open_lines == waits, self._explained(
            name, expected, dict.fromkeys(open_lines, "waits"), dict.fromkeys(waits, "waits")
        )
        return [line for line in lines if second_of(line.through) not in waits]

    def _explained(self, name: str, expected: Expected, found: dict, wanted: dict) -> str:
        """The first few that differ, and what had been done around the first."""
        wrong = sorted(one for one in {*found, *wanted} if found.get(one) != wanted.get(one))
        shown = [f"  {shown_at(one)}: {found.get(one)}, expected {wanted.get(one)}" for one in wrong[:5]]
        around = [
            f"  {shown_at(at)} {what}"
            for at, whom, what in self.story
            if wrong
            and abs(at - wrong[0]) < 40 * A_DAY
            and (whom == name or whom == name.partition("-")[0] or not whom)
        ]
        return "\n".join([f"{name} {expected!r}: {len(wrong)} differ", *shown, "what happened:", *around])


@contextmanager
def replayable(seed: str, file: str, name: str = "ROTA_TENANT_SEEDS") -> Iterator[None]:
    """A failure says how to have it again."""
    try:
        yield
    except AssertionError as err:
        raise AssertionError(f"replay: {name}={seed} pytest tests/tenants/{file}\n{err}") from err


def make_item(number: int) -> int:
    return number


def moment(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def shown_at(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S}"


def second_of(at: datetime) -> int:
    return int(at.timestamp())


def told_by(lines: list, instants: list[int]):
    """Which of the instants each line speaks of, and what it says; a line must speak of as many as it counts."""
    seen: set[int] = set()
    for line in lines:
        last = second_of(line.through)
        first = last if line.count == 1 else second_of(line.after) + 1
        mine = [one for one in instants if first <= one <= last]
        mine = mine or [last]  # one that nobody expected
        assert len(mine) == line.count, f"{line} counts {line.count}, and {len(mine)} were expected: {mine}"
        assert not seen & set(mine), f"{line}: {seen & set(mine)} has two outcomes"
        seen |= set(mine)
        outcome = {"succeeded": "made"}.get(line.outcome, line.outcome)
        yield from dict.fromkeys(mine, outcome).items()
