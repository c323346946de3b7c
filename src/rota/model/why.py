"""Why: what became of one expected time of a schedule, or why none was expected, in one sentence with what to do.

One pure function answers for Python, the command line and the API: a schedule, an instant, and what is recorded of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rota.model.edit import describe_origin
from rota.model.firing import LATE, count_slots, jitter_of
from rota.model.micros import SECOND
from rota.model.state import State
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule


class Around(Struct, frozen=True, kw_only=True):
    """What goes on around a schedule: who is there to fire it and to run its jobs."""

    now: int
    has_scheduler: bool = True
    has_worker: bool = True  # for its queue
    knows_task: bool = True  # some worker does
    is_queue_paused: bool = False


class Verdict(Struct, frozen=True, kw_only=True):
    """The answer: what it came to, in words, and what to do about it."""

    schedule_id: str
    at: int
    outcome: str  # fired, late, failed, waiting, coalesced, skipped, cancelled, expected, due, ended, not expected, …
    sentence: str
    fix: str = ""
    job_id: str | None = None
    before: int | None = None  # the expected times next to one that was not
    after: int | None = None


def why(schedule: Schedule, at: int, line: Occurrence | None, job: Job | None, around: Around) -> Verdict:
    """What became of the schedule at this instant."""
    if job is not None:
        return _of_job(schedule, at, job, around)
    is_slot = _is_slot(schedule, at)
    if line is not None and (is_slot or line.count == 1 or schedule.generation > 1):
        return _of_line(schedule, at, line)
    if not is_slot:
        return _not_expected(schedule, at)
    if at > schedule.fired_through:
        return _open(schedule, at, around)
    return _verdict(
        schedule,
        at,
        "forgotten",
        "its record is no longer kept, or its times were different then",
        fix="records are kept for 400 days or the last 1,000; the settings under retention: say otherwise",
    )


def expected_before(schedule: Schedule, at: int) -> int | None:
    """The last time before an instant at which it was to fire, as its rule is now."""
    second = schedule.trigger.second_before(-(-at // SECOND))
    slot = None if second is None else second * SECOND
    first = max(schedule.created_at + 1, schedule.spec.start or 0)
    return slot if slot is not None and slot >= first else None


def expected_after(schedule: Schedule, at: int) -> int | None:
    """The first time after an instant at which it is to fire, as its rule is now."""
    low = max(at, schedule.created_at, (schedule.spec.start or 0) - 1)
    second = schedule.trigger.next_second(low // SECOND)
    if second is None or (schedule.spec.end is not None and second * SECOND > schedule.spec.end):
        return None
    return second * SECOND


def wall(schedule: Schedule, at: int) -> str:
    """An instant as the schedule's own clock shows it: Sun 2026-03-08 03:00 EDT."""
    moment = find_zone(schedule.spec.tz).datetime_of(at // SECOND)
    clock = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    return f"{moment:%a %Y-%m-%d} {clock} {moment.tzname()}"


def _is_slot(schedule: Schedule, at: int) -> bool:
    return (
        at > schedule.created_at
        and at % SECOND == 0
        and count_slots(schedule, at - SECOND, at) == 1
        and not (schedule.spec.end is not None and at > schedule.spec.end)
    )


def _of_job(schedule: Schedule, at: int, job: Job, around: Around) -> Verdict:
    ended = {State.SUCCEEDED: _fired, State.RUNNING: _fired, State.FAILED: _failed, State.CANCELLED: _cancelled}
    if job.state in ended:
        return ended[job.state](schedule, at, job)
    return _waiting(schedule, at, job, around)


def _fired(schedule: Schedule, at: int, job: Job) -> Verdict:
    began = job.started_at or job.created_at
    late_by = began - at - jitter_of(schedule)
    goes_on = job.state is State.RUNNING
    how = "runs now" if goes_on else f"succeeded in {_span((job.finished_at or began) - began)}"
    if job.made_by == "catchup":
        words = (
            f"it was made up for {_span(began - at)} late, after nothing was alive to fire it in time; the job {how}"
        )
        return _verdict(schedule, at, "late", words, job=job, fix="keep a scheduler alive: `rota run`")
    if late_by > LATE:
        words = f"it ran {_span(late_by)} late; the job {how}"
        return _verdict(schedule, at, "late", words, job=job, fix=_late_fix(job, at))
    return _verdict(schedule, at, "fired", f"it ran in time{_clock_change(schedule, at)}; the job {how}", job=job)


def _late_fix(job: Job, at: int) -> str:
    """Whether it was made late or waited long."""
    if job.created_at - at > LATE:
        return "the job was made late: was a scheduler alive, and the store in reach?"
    return "the job waited for a free worker: give its queue more of them, or the job a higher priority"


def _failed(schedule: Schedule, at: int, job: Job) -> Verdict:
    error = (job.error or "").partition("\n")[0] or "no error was kept"
    words = f"it ran and failed after {job.attempts} attempt{'' if job.attempts == 1 else 's'}: {error}"
    return _verdict(schedule, at, "failed", words, job=job, fix=f"`rota jobs show {job.id}` has the whole story")


def _cancelled(schedule: Schedule, at: int, job: Job) -> Verdict:
    words = f"its job was cancelled: {job.cancel_reason or 'no reason was given'}"
    return _verdict(schedule, at, "cancelled", words, job=job)


def _waiting(schedule: Schedule, at: int, job: Job, around: Around) -> Verdict:
    queue = schedule.spec.queue
    if job.state is State.HELD:
        return _verdict(schedule, at, "waiting", f"its job waits for job {job.waits_for} to end", job=job)
    if job.state is State.SCHEDULED and job.failures:
        return _verdict(
            schedule, at, "waiting", f"its job failed {job.failures} times and is tried again soon", job=job
        )
    if job.state is State.SCHEDULED and job.run_at > around.now:
        return _verdict(schedule, at, "waiting", f"its job is due in {_span(job.run_at - around.now)}", job=job)
    if around.is_queue_paused:
        fix = f"`rota queues resume {queue}`"
        return _verdict(
            schedule, at, "waiting: queue paused", f"its job waits in the paused queue {queue}", fix, job=job
        )
    if not around.has_worker:
        fix = f"start one: `rota worker TARGET -q {queue}`"
        words = f"its job waits, and no worker takes from the queue {queue}"
        return _verdict(schedule, at, "waiting: no worker for this queue", words, fix, job=job)
    if not around.knows_task:
        fix = "deploy the code that has it, or correct the schedule's task"
        words = f"its job waits, and no worker knows the task {job.task}"
        return _verdict(schedule, at, "waiting: task unknown to every worker", words, fix, job=job)
    return _verdict(schedule, at, "waiting", f"its job waits in the queue {queue} for a free worker", job=job)


def _of_line(schedule: Schedule, at: int, line: Occurrence) -> Verdict:
    """What is recorded where no job is kept (any more)."""
    if line.outcome == "coalesced":
        words = f"it was missed, and the latest of the missed runs was made up for{_silence(schedule, line)}"
        return _verdict(schedule, at, "coalesced", words, fix='`catchup="all"` makes up for each of them')
    if line.outcome != "skipped":
        why_so = f": {line.reason}" if line.reason else ""
        return _verdict(schedule, at, line.outcome, f"its job {line.outcome}{why_so}; the job is no longer kept")
    words, fix = _skip_words(schedule, line)
    return _verdict(schedule, at, f"skipped: {line.reason}", words, fix=fix)


def _skip_words(schedule: Schedule, line: Occurrence) -> tuple[str, str]:
    match line.reason:
        case "overlap":
            words = "it was skipped: the run before it was still going on"
            return words, 'make the job shorter or rarer; or say overlap="queue", and it waits for the one before'
        case "catch-up":
            words = (
                f"it was skipped: it was missed, and this schedule does not make up for it{_silence(schedule, line)}"
            )
            return words, '`catchup="latest"` or `"all"` makes up for missed runs'
        case "disabled":
            return "it was skipped: the schedule was disabled", f"`rota schedules enable {schedule.id}`"
        case reason:
            return f"it was skipped: {reason}", ""


def _silence(schedule: Schedule, line: Occurrence) -> str:
    """From when to when nothing fired."""
    number = f"{line.count} times were missed" if line.count > 1 else "one time was missed"
    return f" ({number}: nothing was alive from {wall(schedule, line.after_at)} to {wall(schedule, line.through_at)})"


def _open(schedule: Schedule, at: int, around: Around) -> Verdict:
    """An expected time that nobody has decided on yet."""
    past = at <= around.now
    if schedule.problem:
        fix = "correct the schedule; it goes on from then"
        return _verdict(schedule, at, "broken", f"the schedule cannot be evaluated: {schedule.problem}", fix=fix)
    if schedule.origin.is_retired:
        words = f"the schedule is retired: {describe_origin(schedule.origin)} no longer has it"
        return _verdict(schedule, at, "skipped: retired", words, fix="declare it again, or remove it")
    if not schedule.is_enabled:
        words = "the schedule is disabled"
        return _verdict(schedule, at, "skipped: disabled", words, fix=f"`rota schedules enable {schedule.id}`")
    pause = schedule.silence
    if pause is not None and (pause.until is None or at < pause.until):
        return _verdict(
            schedule,
            at,
            f"skipped: {pause.words}",
            f"it is {pause.words}",
            fix=f"`rota tenants resume {pause.tenant}`" if pause.tenant else f"`rota schedules resume {schedule.id}`",
        )
    if schedule.is_spent:
        words = f"it has made all of its runs ({schedule.spec.max_runs})"
        return _verdict(schedule, at, "ended", words)
    if not past:
        words = f"it is due in {_span(at - around.now)}{_clock_change(schedule, at)}"
        return _verdict(schedule, at, "expected", words)
    if not around.has_scheduler:
        words = "it is due, and no scheduler is alive to fire it"
        return _verdict(schedule, at, "due", words, fix="start one: `rota run` or `rota scheduler`")
    return _verdict(schedule, at, "due", f"it has been due for {_span(around.now - at)}, and is fired any moment")


def _not_expected(schedule: Schedule, at: int) -> Verdict:
    spec, kind = schedule.spec, "not expected"
    before, after = expected_before(schedule, at), expected_after(schedule, at)
    if at <= schedule.created_at:
        words = f"no run was expected: the schedule was created later, {wall(schedule, schedule.created_at)}"
    elif spec.start is not None and at < spec.start:
        words = f"no run was expected: the schedule starts {wall(schedule, spec.start)}"
    elif spec.end is not None and at > spec.end:
        kind, words = "ended", f"no run is expected: the schedule ended {wall(schedule, spec.end)}"
    elif said := _second_pass(schedule, at):
        kind, words = "once: DST repeat", f"no run is expected then: {said}"
    else:
        near = [f"{word} {wall(schedule, slot)}" for word, slot in (("before", before), ("after", after)) if slot]
        words = f"no run is expected then: it runs {_uncapitalised(schedule.trigger.explain())}" + (
            f"; the nearest are {' and '.join(near)}" if near else ""
        )
    return _verdict(schedule, at, kind, words, before=before, after=after)


def _clock_change(schedule: Schedule, at: int) -> str:
    """Where the clocks were changed: what that did to this run."""
    moment = find_zone(schedule.spec.tz).datetime_of(at // SECOND - 1)
    for caveat in schedule.trigger.warnings("4h", after=moment):
        if caveat.at is None:
            continue
        turn = round(caveat.at.timestamp()) * SECOND
        if (caveat.kind == "gap" and turn == at) or (caveat.kind == "repeat" and _is_first_pass(schedule, at, turn)):
            return f" ({caveat.message})"
    return ""


def _second_pass(schedule: Schedule, at: int) -> str:
    """What is said of a wall time that comes a second time, where its first pass was the run."""
    zone = find_zone(schedule.spec.tz)
    for caveat in schedule.trigger.warnings("4h", after=zone.datetime_of(at // SECOND - 4 * 3600)):
        if caveat.kind != "repeat" or caveat.at is None:
            continue
        back = zone.span(round(caveat.at.timestamp()))
        fold = (back.before - back.offset) * SECOND
        if back.lo * SECOND <= at < back.lo * SECOND + fold and _is_slot(schedule, at - fold):
            return caveat.message
    return ""


def _is_first_pass(schedule: Schedule, at: int, turn: int) -> bool:
    """Whether the wall time of `at` comes again after the clocks are turned back."""
    zone = find_zone(schedule.spec.tz)
    back = zone.span(turn // SECOND)
    return at < turn <= at + (back.before - back.offset) * SECOND


def _verdict(
    schedule: Schedule,
    at: int,
    outcome: str,
    words: str,
    fix: str = "",
    *,
    job: Job | None = None,
    before: int | None = None,
    after: int | None = None,
) -> Verdict:
    return Verdict(
        schedule_id=schedule.id,
        at=at,
        outcome=outcome,
        sentence=f"{schedule.id} at {wall(schedule, at)}: {words}",
        fix=fix,
        job_id=job.id if job else None,
        before=before,
        after=after,
    )


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _span(micros: int) -> str:
    """12 ms, 3.2 s, 5 m, 3 h, 2 d"""
    seconds = max(0, micros) / SECOND
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for unit, size, most in (("s", 1, 100), ("m", 60, 100), ("h", 3_600, 48)):
        if seconds < most * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:.3g} d"
