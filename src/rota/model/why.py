"""Why: what became of one expected time of a schedule, or why none was expected, in sentences with what to do.

One pure function answers for Python, the command line and the API: a schedule, an instant, and what is recorded of it.
A cause is told only where a record shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rota.model import slots
from rota.model.edit import describe_origin
from rota.model.firing import LATE, jitter_of, overlapped_jobs
from rota.model.history import history_of
from rota.model.job import Job
from rota.model.micros import SECOND
from rota.model.occurrence import Occurrence
from rota.model.schedule import PAUSED, problem_of
from rota.model.state import State
from rota.model.time_words import counted, span_words, wall_words
from rota.model.why_job import Answer, Around, first_line, first_run_at, waiting
from rota.model.why_overlap import overlap_answer
from rota.model.why_times import Changes, change_words, changed_answer
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.model.audit_record import AuditRecord
    from rota.model.schedule import Pause, Schedule


class Records(Struct, frozen=True, kw_only=True):
    """What the store has about one instant of a schedule."""

    line: Occurrence | None = None
    job: Job | None = None  # of this occurrence
    other: Job | None = None  # the live job of an overlap, or the one that a held job waits for
    changes: Changes = Changes()  # of its times, where there is no line


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


def why(schedule: Schedule, at: int, records: Records, around: Around) -> Verdict:
    """What became of the schedule at this instant."""
    problem = problem_of(schedule)
    line = records.line
    if records.job is not None:
        answer = _of_job(schedule, at, records.job, records.other, around)
        return _verdict(schedule, at, answer, job=records.job)
    if problem is not None:
        return _verdict(schedule, at, _of_line(schedule, at, records, around) if line else _broken(schedule, problem))
    is_slot = _is_slot(schedule, at)
    if line is not None and (is_slot or line.count == 1 or schedule.generation > 1):
        return _verdict(schedule, at, _of_line(schedule, at, records, around))
    if not is_slot:
        return _not_expected(schedule, at, records.changes.later, around)
    if at > schedule.fired_through and not _is_passed(schedule, at):
        return _verdict(schedule, at, _open(schedule, at, around))
    return _verdict(schedule, at, changed_answer(schedule, at, records.changes, around.now))


def why_removed(schedule_id: str, at: int | None, audit: AuditRecord) -> Verdict:
    """The answer about a schedule that is no more: who removed it, and when."""
    sentence = f"{schedule_id}: The schedule was removed by {audit.by} at {wall_words(audit.at, 'UTC')}."
    fix = f"`rota schedules changes {schedule_id}` shows what it was. Declare or add it again to have it back."
    return Verdict(
        schedule_id=schedule_id, at=audit.at if at is None else at, outcome="removed", sentence=sentence, fix=fix
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


def instant_to_explain(schedule: Schedule, now: int) -> int:
    """The instant that is meant where none is named: the last expected time, else the first one to come, else now."""
    this_second = now // SECOND * SECOND
    if problem_of(schedule) is not None:
        return this_second
    return expected_before(schedule, now + 1) or expected_after(schedule, now) or this_second


def wall(schedule: Schedule, at: int) -> str:
    """An instant as the schedule's own clock shows it: Sun 2026-03-08 03:00 EDT."""
    return wall_words(at, schedule.spec.tz)


def _is_slot(schedule: Schedule, at: int) -> bool:
    if any(at in detour.slots for detour in schedule.detours):  # announced in another zone, and kept
        return True
    return (
        at > schedule.created_at
        and at % SECOND == 0
        and slots.count_slots(schedule, at - SECOND, at) == 1
        and not (schedule.spec.end is not None and at > schedule.spec.end)
    )


def _is_passed(schedule: Schedule, at: int) -> bool:
    """Whether a change of zone left it out, while earlier times are still open."""
    return any(one.after < at <= one.through and at not in one.slots and not one.is_date for one in schedule.detours)


# Where its job is kept.


def _of_job(schedule: Schedule, at: int, job: Job, other: Job | None, around: Around) -> Answer:
    match job.state:
        case State.SUCCEEDED | State.RUNNING:
            return _fired(schedule, at, job, around)
        case State.FAILED:
            tries = f" after {counted(job.attempts, 'attempt')}" if job.attempts else ""
            words = f"It ran, and its job failed{tries}: {first_line(job.error)}."
            fix = f"`rota jobs show {job.id}` has the traceback. `rota jobs retry {job.id}` runs it again."
            return Answer(outcome="failed", words=words, fix=fix)
        case State.CANCELLED:
            return Answer(
                outcome="cancelled", words=f"Its job was cancelled: {job.cancel_reason or 'no reason was given'}."
            )
        case _:
            return waiting(job, around, other)


def _fired(schedule: Schedule, at: int, job: Job, around: Around) -> Answer:
    began = first_run_at(job) or job.started_at or job.created_at
    late_by = began - at - jitter_of(schedule)
    how = _how_it_went(job, around)
    if job.made_by == "catchup":
        words = f"It was missed, and made up for {span_words(began - at)} late. No scheduler fired it in time. {how}"
        return Answer(outcome="late", words=words, fix="Keep a scheduler running: `rota run` or `rota scheduler`.")
    if late_by > LATE:
        cause, fix = _why_late(job, at, began)
        return Answer(outcome="late", words=f"It ran {span_words(late_by)} late. {cause} {how}", fix=fix)
    return Answer(outcome="fired", words=f"It ran in time{_clock_change(schedule, at)}. {how}")


def _how_it_went(job: Job, around: Around) -> str:
    began = job.started_at or job.created_at
    tries = f" at attempt {job.attempts}" if job.attempts > 1 else ""
    if job.state is State.RUNNING:
        return f"The job is running, for {span_words(around.now - began)} so far."
    return f"The job succeeded{tries} in {span_words((job.finished_at or began) - began)}."


def _why_late(job: Job, at: int, began: int) -> tuple[str, str]:
    """What its history says it waited for, and what to do about that."""
    lines = [line for line in history_of(job) if line.at <= began]
    held = next((line for line in lines if line.state is State.HELD), None)
    if held is not None:
        words = f"It waited for job {(held.data or {}).get('waits_for')} to end."
        return words, 'Make the job shorter or the schedule rarer. With overlap="allow", runs may overlap.'
    if any((line.data or {}).get("cause") == "unknown task" for line in lines):
        return f"Workers that do not know the task {job.task} took it first.", "Deploy the code that has it to all."
    if job.created_at - at > LATE:
        return "The job was made late.", "Was a scheduler running then, and the store in reach?"
    words = f"The job waited in the queue {job.queue} for a worker."
    return words, "Give its queue more workers, or the job a higher priority. Was the queue paused?"


# Where the ledger has a line of it.


def _of_line(schedule: Schedule, at: int, records: Records, around: Around) -> Answer:
    """What is recorded where no job is kept (any more)."""
    line = records.line
    assert line is not None  # noqa: S101 - the callers have looked
    if line.outcome == "coalesced":
        words = f'{_missed(schedule, line)} With catchup="latest", one run stands for all missed ones.'
        return Answer(outcome="coalesced", words=words, fix='With catchup="all", each of them is made up for.')
    if line.outcome != "skipped":
        reason = f": {line.reason}" if line.reason else ""
        return Answer(
            outcome=line.outcome, words=f"Its job {_became(line.outcome)}{reason}. The job is no longer kept."
        )
    if (jobs := overlapped_jobs(line.reason)) is not None:
        return overlap_answer(schedule, at, *jobs, records.other, around)
    words, fix = _skip_words(schedule, line)
    return Answer(outcome=f"skipped: {line.reason}", words=words, fix=fix)


def _became(outcome: str) -> str:
    return "was cancelled" if outcome == "cancelled" else outcome


def _skip_words(schedule: Schedule, line: Occurrence) -> tuple[str, str]:
    match line.reason:
        case slots.MISSED | slots.NOT_CLAIMED:
            return _not_caught_up(schedule, line)
        case unique if unique.startswith(f"{slots.UNIQUE} "):
            return _refused_by_key(schedule, unique.removeprefix(f"{slots.UNIQUE} (job ").removesuffix(")"))
        case slots.DISABLED:
            fix = "" if schedule.is_enabled else f"`rota schedules enable {schedule.id}`."
            return "It was skipped, because the schedule was disabled.", fix
        case slots.RETIRED:
            return "It was skipped, because the schedule was retired: its origin no longer had it.", ""
        case slots.RETIMED:
            return "It was skipped, because the schedule's times were changed before it was fired.", ""
        case reason if reason.startswith(PAUSED):
            pause = schedule.silence
            return f"It was skipped, because the schedule was {reason}.", "" if pause is None else _resume(
                schedule, pause
            )
        case reason:
            return f"It was skipped: {reason}.", ""


def _not_caught_up(schedule: Schedule, line: Occurrence) -> tuple[str, str]:
    missed = _missed(schedule, line)
    spec = schedule.spec
    match spec.catchup:
        case "skip":
            words = f'{missed} With catchup="skip", missed times are not made up for.'
            return words, 'With catchup="latest" or "all", they are.'
        case "all":
            words = f'{missed} With catchup="all", the newest {spec.catchup_limit:,} missed times are made up for.'
            return words, "A larger catchup_limit= makes up for more of them."
        case _:
            return f"{missed} The schedule's catchup= of that time did not make up for it.", ""


def _refused_by_key(schedule: Schedule, holder: str) -> tuple[str, str]:
    """What is said of an occurrence whose key another job held."""
    key = f"the unique key {schedule.spec.key!r}" if schedule.spec.key else "the unique key that this schedule had then"
    words = f"It was skipped, because job {holder} held {key}. One job at a time has a key."
    fix = "If the schedule should run beside that job, give its jobs a key of their own."
    return words, f"`rota why {holder}` says what the job did. {fix}"


def _missed(schedule: Schedule, line: Occurrence) -> str:
    """From when to when nothing fired, or nothing was claimed."""
    span = f"from {wall(schedule, line.after_at)} to {wall(schedule, line.through_at)} ({counted(line.count, 'time')})"
    if line.reason == slots.NOT_CLAIMED:
        return f"It was missed: its job was made ahead, and no worker claimed the schedule's jobs in time {span}."
    return f"It was missed: no scheduler fired the schedule {span}."


# Where nothing is recorded.


def _broken(schedule: Schedule, problem: str) -> Answer:
    words = f"The schedule cannot be evaluated, so it does not run: {problem}."
    fix = f"Correct it with `rota schedules edit {schedule.id}`, or where it is defined. It goes on from then."
    return Answer(outcome="broken", words=words, fix=fix)


def _open(schedule: Schedule, at: int, around: Around) -> Answer:
    """An expected time that nobody has decided on yet."""
    if schedule.origin.is_retired:
        words = f"The schedule is retired: {describe_origin(schedule.origin)} no longer has it."
        return Answer(outcome=f"skipped: {slots.RETIRED}", words=words, fix="Declare it again, or remove it.")
    if not schedule.is_enabled:
        fix = f"`rota schedules enable {schedule.id}`."
        return Answer(outcome=f"skipped: {slots.DISABLED}", words="The schedule is disabled.", fix=fix)
    if schedule.silence is not None and (stopped := _paused(schedule, at, schedule.silence)) is not None:
        return stopped
    if any(detour.is_date and detour.after < at <= detour.through for detour in schedule.detours):
        words = "This local date has had its run. A new wall time does not run it again."
        return Answer(outcome="not expected", words=words)
    if schedule.is_spent:
        words = f"The schedule has made all of its runs ({schedule.spec.max_runs})."
        return Answer(outcome="ended", words=words, fix="A larger max_runs= lets it go on.")
    if at > around.now:
        later = f" Its jitter starts the job {span_words(jitter)} later." if (jitter := jitter_of(schedule)) else ""
        words = f"It is due in {span_words(at - around.now)}{_clock_change(schedule, at)}.{later}"
        return Answer(outcome="expected", words=words)
    return _due(schedule, at, around)


def _paused(schedule: Schedule, at: int, longest: Pause) -> Answer | None:
    """A time that is not fired because of a pause; one that was missed before the pause began is not skipped by it."""
    pauses = [pause for pause in (schedule.pause, schedule.tenant_pause) if pause is not None]
    covering = [one for one in pauses if one.at <= at and (one.until is None or at < one.until)]
    if covering:
        pause = max(covering, key=lambda one: (one.until is None, one.until or 0))
        words = f"The schedule is {pause.words}."
        return Answer(outcome=f"skipped: {pause.words}", words=words, fix=_resume(schedule, pause))
    if at >= min(pause.at for pause in pauses):
        return None  # it comes after the end of the pause
    words = (
        f"It was missed: no scheduler fired it before the schedule was {longest.words}. "
        f'When the schedule goes on, catchup="{schedule.spec.catchup}" decides about it.'
    )
    return Answer(outcome="missed", words=words, fix=_resume(schedule, longest))


def _resume(schedule: Schedule, pause: Pause) -> str:
    what = f"tenants resume {pause.tenant}" if pause.tenant else f"schedules resume {schedule.id}"
    return f"`rota {what}`."


def _due(schedule: Schedule, at: int, around: Around) -> Answer:
    since = f"It has been due for {span_words(around.now - at)}"
    if around.is_sealed:
        words = f"{since}. The store is sealed while it is copied, so nothing is fired."
        return Answer(outcome="due", words=words, fix="The schedule goes on in the store it is copied to.")
    if schedule.fault:
        return _failed_firing(schedule, since, around)
    if not around.has_scheduler:
        fix = "Start one: `rota run` or `rota scheduler`."
        return Answer(outcome="due", words=f"{since}, and no scheduler is running to fire it.", fix=fix)
    fix = "If this lasts longer than a few seconds, `rota doctor` and the scheduler's log tell more."
    return Answer(outcome="due", words=f"{since}. A scheduler is running and has not fired it yet.", fix=fix)


def _failed_firing(schedule: Schedule, since: str, around: Around) -> Answer:
    goes_on = "A scheduler tries again." if around.has_scheduler else "No scheduler is running to try again."
    words = f"{since}. The store failed at the firing: {first_line(schedule.fault)}. {goes_on}"
    since_when = f"`rota schedules changes {schedule.id}` says since when."
    fix = f"Correct what the error names. {since_when} After the fifth failure in a row, the schedule is set aside."
    return Answer(outcome="due", words=words, fix=fix)


def _not_expected(schedule: Schedule, at: int, retimed: AuditRecord | None, around: Around) -> Verdict:
    spec, kind = schedule.spec, "not expected"
    before, after = expected_before(schedule, at), expected_after(schedule, at)
    if at <= schedule.created_at:
        words = f"The schedule did not exist then. It was created at {wall(schedule, schedule.created_at)}."
    elif spec.start is not None and at < spec.start:
        words = f"The schedule was not due then. It starts at {wall(schedule, spec.start)}."
    elif spec.end is not None and at > spec.end:
        kind, words = "ended", f"The schedule ended at {wall(schedule, spec.end)}."
    elif said := _second_pass(schedule, at):
        kind, words = "once: DST repeat", f"The schedule was not due then: {said}."
    else:
        near = [wall(schedule, slot) for slot in (before, after) if slot]
        verb = "was" if at <= around.now else "is"
        words = f"The schedule {verb} not due then. It runs {_uncapitalised(schedule.trigger.explain())}." + (
            f" The nearest times are {' and '.join(near)}." if near else ""
        )
    if retimed is not None and at > schedule.created_at:
        words = f"{words} {change_words(retimed)}"
    return _verdict(schedule, at, Answer(outcome=kind, words=words), before=before, after=after)


def _clock_change(schedule: Schedule, at: int) -> str:
    """Where the clocks were changed: what that did to this run."""
    if problem_of(schedule) is not None:
        return ""
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
    answer: Answer,
    *,
    job: Job | None = None,
    before: int | None = None,
    after: int | None = None,
) -> Verdict:
    return Verdict(
        schedule_id=schedule.id,
        at=at,
        outcome=answer.outcome,
        sentence=f"{schedule.id} at {wall(schedule, at)}: {answer.words}",
        fix=answer.fix,
        job_id=job.id if job else None,
        before=before,
        after=after,
    )


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
