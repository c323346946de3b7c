"""Defines schedules: the spec that the author declared, and its state since then."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from rota.errors import BadOption, RotaError
from rota.model.collection import Sync
from rota.model.micros import SECOND, datetime_of
from rota.model.reasons import reason_text
from rota.model.secrets.shown import without
from rota.sentences import sentence
from rota.triggers import Trigger, trigger_from_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Overlap = Literal["skip", "allow", "queue", "cancel"]
Catchup = Literal["latest", "skip", "all"]
OVERLAPS: tuple[Overlap, ...] = ("skip", "allow", "queue", "cancel")
LONGEST_LOOKAHEAD = 31 * 86_400 * SECOND
CATCHUPS: tuple[Catchup, ...] = ("latest", "skip", "all")
PEER_CATCHUPS = {"none": "skip", "one": "latest", "coalesce": "latest", "every": "all"}  # words of other systems


class ScheduleSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The declaration of a schedule by its author. Two equal specs are the same schedule, however often they are
    registered."""

    trigger: str  # its compact text form
    task: str
    payload: str = "[]"  # the call as JSON text
    queue: str = "default"
    priority: int = 0
    key: str = ""  # the unique key of its jobs; empty: none
    key_for: int = 0  # how long the key holds after a job's creation, even if that ends before (microseconds)
    tz: str = "UTC"
    overlap: Overlap = "skip"
    catchup: Catchup = "latest"
    catchup_limit: int = 100
    grace: int = 60 * SECOND
    jitter: int = 0
    start: int | None = None
    end: int | None = None
    max_runs: int | None = None
    run_on_start: bool = False
    enabled: bool = True  # at first, and when the author changes it; operators' decisions survive deploys
    description: str = ""
    lookahead: int = 0  # its jobs are made this long before they are due
    tenant: str = ""  # whose zone and defaults it follows
    follows: dict[str, str | int] = {}  # the fields that the tenant may set, and their values if it does not
    day_bounds: tuple[str, ...] = ()  # which of start and end were given as local days
    sync: Sync | None = None  # the collection that its jobs keep in sync

    def __repr__(self) -> str:
        return without(self, "payload")

    @property
    def timing(self) -> tuple[object, ...]:
        """The fields that decide when it fires. A change of them recomputes the next run; any other change does not."""
        return self.trigger, self.tz, self.start, self.end, self.jitter, self.max_runs


class Origin(Struct, frozen=True, array_like=True):
    """The origin of a schedule. Only its origin may edit it."""

    kind: str = "api"  # code | file | api | import
    app: str = ""
    version: str = ""
    is_retired: bool = False  # its origin no longer has it; the record stays, so that no older version brings it back
    zone: str = ""  # where it was made, if it has moved: its calendar began on a day of that zone

    @property
    def name(self) -> str:
        """Which definitions belong together: code:shop."""
        return f"{self.kind}:{self.app}"

    @property
    def is_by_hand(self) -> bool:
        """Whether people may edit and remove it here: no deploy brings it back."""
        return self.kind in {"api", "import"}

    @property
    def way_back(self) -> str:
        """How a schedule that is retired comes to life again."""
        if self.kind != "import":
            return "declare it again there, or remove it"
        taken = (
            "; if it was taken over from beat, `rota import django-celery-beat URL --give-back` returns it, and "
            "--take-over then starts it here"
        )
        is_of_beat = self.app.startswith("django-celery-beat ")
        return f"run the import again when it is there, or remove it{taken if is_of_beat else ''}"


PAUSED = reason_text("paused")  # the first word of why a pause skips an occurrence


class Pause(Struct, frozen=True, array_like=True):
    """The pause of a schedule: its author, its reason and its end."""

    at: int
    reason: str = ""
    by: str = ""
    until: int | None = None

    tenant: str = ""  # the tenant whose schedules are all paused; empty if it is this one alone

    @property
    def words(self) -> str:
        """The author and the reason, for the ledger: "paused by ann: month end"."""
        known = {"with": self.tenant, "by": self.by, "why": self.reason}
        code = "_".join(["paused", *(name for name, value in known.items() if value)])
        return reason_text(code, tenant=self.tenant, by=self.by, why=self.reason)


def is_over(pause: Pause | None, now: int) -> bool:
    """Whether a pause came to its announced end."""
    return pause is not None and pause.until is not None and pause.until <= now


def paused_since(pause: Pause | None, now: int) -> int:
    """The start of a pause that is set now: that of the pause that it replaces, if that is not over."""
    return now if pause is None or is_over(pause, now) else pause.at


def silent_from(schedule: Schedule, now: int) -> int | None:
    """When the silence that lasts now began, whichever of several began it; None: it is not silent."""
    lasting = [at for at, until in schedule.silences if until is None or until > now]
    if not lasting:
        return None
    remembered = None if schedule.ahead is None else schedule.ahead.quiet_at
    began = min([*lasting, *([] if remembered is None else [remembered])])
    over = [at for at, until in schedule.silences if until is not None and began < until <= now]
    return min([began, *over])


class Detour(Struct, frozen=True, array_like=True):
    """A span in which the rule does not decide: in after < t <= through, only `slots` are occurrences."""

    after: int
    through: int
    slots: tuple[int, ...] = ()  # in order
    zone: str = ""  # by whose clock they stand for local dates
    is_date: bool = False  # local dates and times that had their turn before the zone or the rule was changed


class Past(Struct, frozen=True, array_like=True):
    """The past of a schedule by the clocks and rules that it had, in local time."""

    start: int  # no time at or before it was an occurrence: when it was made, or its rule was last changed
    since: int  # `done` and `day` hold up to here; what was decided later is read by the schedule's own clock
    done: int | None = None  # local times of its rule up to this one are decided (wall seconds)
    day: int | None = None  # the last local date that a rule with one time a day has run (days since 1970)


class Ahead(Struct, frozen=True, array_like=True):
    """The open times of a schedule beyond its rule, as far as they are known."""

    through: int = 0  # jobs were made up to here, before they are due; 0: none were
    detours: tuple[Detour, ...] = ()  # in order, none overlaps another
    off_at: int | None = None  # when it was disabled, while it is
    taken: tuple[tuple[int, int], ...] = ()  # after < t <= through, in order: decided while the clock stood ahead
    fault: str = ""  # why the store failed at its last firing, which is tried again; empty: it did not
    past: Past | None = None  # None: its times were never changed (or not since this is stored: see `done`)
    quiet_at: int | None = None  # when its silence began, if what began it was lifted and another silence goes on


class LastRun(Struct, frozen=True, omit_defaults=True):
    """The last run of a schedule; written by the worker's outcome, never by the firing."""

    enqueued_at: int | None = None
    finished_at: int | None = None
    status: str | None = None
    success_at: int | None = None
    duration: int | None = None
    error: str | None = None
    job_id: str | None = None
    by_hand: int = 0  # jobs that were made outside its trigger: run now, run on start
    fired_for: int | None = None  # the last of its times for which its trigger made a job
    failed_at: int | None = None  # when a run last failed for good; None: none did, or one has succeeded since

    @property
    def is_failing(self) -> bool:
        """Whether a run failed for good and none has succeeded since. A run that waits for its retry, or that is
        cancelled, changes nothing. Versions before did not record `failed_at`."""
        return self.status == "failed" or (self.failed_at is not None and self.status != "succeeded")


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as a store keeps it."""

    id: str
    spec: ScheduleSpec
    origin: Origin = Origin()
    version: int = 1  # rises with every change and every firing; guards both
    generation: int = 1  # rises when the timing changes
    created_at: int
    updated_at: int
    is_enabled: bool = True
    pause: Pause | None = None
    next_at: int | None = None  # the next nominal time; None: exhausted or broken
    fired_through: int  # nothing at or before it is ever fired again
    run_count: int = 0  # jobs made by the trigger, which max_runs counts
    last: LastRun = LastRun()
    problem: str | None = None  # why it cannot be evaluated, if it cannot
    tenant_pause: Pause | None = None  # that of its tenant, beside its own
    ahead: Ahead | None = None

    @property
    def runs(self) -> int:
        """All jobs that it ever made, by its trigger and by hand."""
        return self.run_count + self.last.by_hand

    @property
    def due_at(self) -> int | None:
        """When a scheduler must read it; None: never."""
        if not self.is_enabled or self.problem:
            return None
        if self.silence is not None:
            return self.silence.until
        if self.next_at is None or not self.spec.lookahead:
            return self.next_at
        return self.next_at - self.spec.lookahead + 1  # the window is half-open: earlier, there is nothing to make

    @property
    def silence(self) -> Pause | None:
        """The pause that lasts longest, of its own and its tenant's."""
        if self.pause is None or self.tenant_pause is None:
            return self.pause or self.tenant_pause
        return max(self.pause, self.tenant_pause, key=lambda pause: (pause.until is None, pause.until or 0))

    @property
    def quiet_since(self) -> int:
        """The last instant before the silence that it is in, by a pause or because it is disabled."""
        began = [at for at, _ in self.silences]
        if began and self.ahead is not None and self.ahead.quiet_at is not None:
            began.append(self.ahead.quiet_at)
        return max(self.fired_through, min(began) - 1) if began else self.fired_through

    @property
    def silences(self) -> list[tuple[int, int | None]]:
        """When each of its pauses, and its being disabled, began, and its announced end."""
        off_at = None if self.is_enabled or self.ahead is None else self.ahead.off_at
        pauses = [(pause.at, pause.until) for pause in (self.pause, self.tenant_pause) if pause is not None]
        return pauses if off_at is None else [*pauses, (off_at, None)]

    @property
    def made_through(self) -> int:
        """Nothing at or before it is to be made (any more)."""
        return self.fired_through if self.ahead is None else max(self.fired_through, self.ahead.through)

    @property
    def taken(self) -> tuple[tuple[int, int], ...]:
        """Later times whose occurrences were decided while the clock stood ahead: none of them happens again."""
        return () if self.ahead is None else self.ahead.taken

    @property
    def has_jobs_ahead(self) -> bool:
        """Whether jobs were made before they are due."""
        return self.ahead is not None and self.ahead.through > self.fired_through

    @property
    def detours(self) -> tuple[Detour, ...]:
        return () if self.ahead is None else self.ahead.detours

    @property
    def fault(self) -> str:
        """Why the store failed at its last firing, until it is fired or edited; empty: it did not."""
        return "" if self.ahead is None else self.ahead.fault

    @property
    def last_error(self) -> str | None:
        """The newest problem: it cannot be evaluated, it could not be fired, or its last run failed."""
        return self.problem or self.fault or self.last.error

    @property
    def is_spent(self) -> bool:
        """Whether it has made all the jobs that it may make."""
        return self.spec.max_runs is not None and self.run_count >= self.spec.max_runs

    @property
    def trigger(self) -> Trigger:
        """The rule, in the schedule's zone, anchored at its start or creation."""
        anchor = self.spec.start or self.created_at // SECOND * SECOND  # rounded up, it would fire at once
        born_in = "" if self.spec.start else self.origin.zone
        return bound_trigger(self.spec.trigger, self.spec.tz, anchor, born_in)


def problem_of(schedule: Schedule) -> str | None:
    """Why it cannot be evaluated, whether a scheduler has found that out yet or not; None if it can."""
    if schedule.problem is not None:
        return schedule.problem
    try:
        schedule.trigger.next_second(schedule.fired_through // SECOND)
    except (RotaError, ValueError) as err:  # written by another version, or by hand
        return f"{type(err).__name__}: {err}"
    return None


def checked(schedule: Schedule) -> Schedule:
    """The schedule with its problem, if it cannot be evaluated and no scheduler has found that out yet."""
    problem = problem_of(schedule)
    return schedule if problem == schedule.problem else msgspec.structs.replace(schedule, problem=problem)


@lru_cache(maxsize=4096)
def bound_trigger(text: str, tz: str, anchor: int, born_in: str = "") -> Trigger:
    """The rule in a zone. One that has moved keeps the day on which it began by the clock of where it was made."""
    trigger = trigger_from_text(text)
    if born_in and trigger.tz is None:
        trigger = trigger.bound(born_in, start=datetime_of(anchor))
        return trigger.rezoned(tz)
    return trigger.bound(tz, start=datetime_of(anchor))


def pack_spec(spec: ScheduleSpec) -> bytes:
    return msgspec.json.encode(spec)


_spec_decoder = msgspec.json.Decoder(ScheduleSpec)


def unpack_spec(packed: bytes | str) -> ScheduleSpec:
    return _spec_decoder.decode(packed)


def check_choice(name: str, got: object, choices: Sequence[str], peers: Mapping[str, str] | None = None) -> None:
    """Refuse a word that is none of the choices, and name the one that is probably meant (`peers`: other words)."""
    if got in choices:
        return
    import difflib  # noqa: PLC0415 - only a slip pays for it

    word = str(got).lower()
    close = [(peers or {})[word]] if word in (peers or {}) else difflib.get_close_matches(word, choices, n=1)
    hint = sentence("option.did_you_mean", "; did you mean {word!r}?", word=close[0]) if close else ""
    raise BadOption(
        sentence(
            "option.choice",
            "{name}={got!r} must be one of {known}{hint}",
            name=name,
            got=got,
            known=", ".join(choices),
            hint=hint,
        )
    )


def check_spec(spec: ScheduleSpec) -> ScheduleSpec:
    """Refuse policies that make no sense; the trigger was checked when it was made."""
    check_choice("overlap", spec.overlap, OVERLAPS)
    check_choice("catchup", spec.catchup, CATCHUPS, PEER_CATCHUPS)
    if not _is_whole(spec.catchup_limit) or not 1 <= spec.catchup_limit <= 10_000:
        raise BadOption(
            sentence(
                "option.catchup_limit",
                "catchup_limit={catchup_limit!r} must be a whole number between 1 and 10,000",
                catchup_limit=spec.catchup_limit,
            )
        )
    if spec.lookahead > LONGEST_LOOKAHEAD:
        raise BadOption(
            sentence(
                "option.lookahead",
                "lookahead must be 31 days or less: what is made ahead must be deleted when something changes",
            )
        )
    if spec.max_runs is not None and (not _is_whole(spec.max_runs) or spec.max_runs < 1):
        raise BadOption(
            sentence(
                "option.max_runs", "max_runs={max_runs!r} must be a whole number of at least 1", max_runs=spec.max_runs
            )
        )
    for name in ("enabled", "run_on_start"):
        if not isinstance(getattr(spec, name), bool):
            raise BadOption(f"{name}={getattr(spec, name)!r} must be True or False")
    if not isinstance(spec.description, str):
        raise BadOption(f"description={spec.description!r} must be text")
    if spec.start is not None and spec.end is not None and spec.end < spec.start:
        raise BadOption(sentence("option.end", "the schedule's end lies before its start"))
    return spec


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
