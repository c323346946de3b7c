"""Answers what became of one expected time of a schedule, or why none was expected, and what to do.

One pure function answers for Python, the command line and the API: a schedule, an instant, and what is recorded of it.
A cause is given only if a record shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rota.model.audit_record import AuditRecord
from rota.model.jobs.job import Job, State, history_of
from rota.model.micros import SECOND, iso_text
from rota.model.schedules import slots
from rota.model.schedules.firing import LATE, jitter_of, overlapped_jobs
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import PAUSED, problem_of
from rota.model.why.changed_times import Changes, change_values, change_words, changed_answer, put_into_past
from rota.model.why.job import Answer, Around, Sealed, Values, first_line, first_run_at, seconds_of, waiting
from rota.model.why.overlap import overlap_answer
from rota.model.why.silence import silence_answer, steps_to_go_on
from rota.model.why.time_words import counted, span_words, wall_words
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule


class Records(Struct, frozen=True, kw_only=True):
    """The records of the store about one instant of a schedule."""

    occurrence: Occurrence | None = None
    job: Job | None = None  # of this entry
    other: Job | None = None  # the live job of an overlap, or the one that a held job waits for
    changes: Changes = Changes()  # of its times, if there is no entry
    move: AuditRecord | None = None  # the change of the zone that put a missed time into the past


class Verdict(Struct, frozen=True, kw_only=True):
    """The answer: the outcome, in words, and what to do about it."""

    schedule_id: str
    at: int
    outcome: str  # fired, late, failed, waiting, coalesced, skipped, cancelled, expected, due, ended, not expected, …
    sentence: str
    words: str  # the sentence without the schedule and the time
    code: str  # of the cause, for programs and translations
    values: Values = {}
    fix: str = ""
    job_id: str | None = None
    before: int | None = None  # the expected times next to one that was not
    after: int | None = None


def why(schedule: Schedule, at: int, records: Records, around: Around) -> Verdict:
    """The answer about the schedule at this instant."""
    problem = problem_of(schedule)
    entry = records.occurrence
    if records.job is not None:
        answer = _of_job(schedule, at, records.job, records, around)
        return _verdict(schedule, at, answer, job=records.job)
    if problem is not None:
        return _verdict(schedule, at, _of_entry(schedule, at, records, around) if entry else _broken(schedule, problem))
    is_slot = _is_slot(schedule, at)
    if entry is not None and (is_slot or entry.count == 1 or schedule.generation > 1):
        return _verdict(schedule, at, _of_entry(schedule, at, records, around))
    if not is_slot:
        return _not_expected(schedule, at, records.changes.later, around)
    if at > schedule.fired_through and not _is_passed(schedule, at):
        return _verdict(schedule, at, _open(schedule, at, around))
    return _verdict(schedule, at, changed_answer(schedule, at, records.changes, around.now))


def why_removed(schedule_id: str, at: int | None, audit: AuditRecord) -> Verdict:
    """The answer about a schedule that was removed: who removed it, and when."""
    words = f"The schedule was removed by {audit.by} at {wall_words(audit.at, 'UTC')}."
    fix = f"`rota schedules changes {schedule_id}` shows what it was. Declare or add it again to have it back."
    return Verdict(
        schedule_id=schedule_id,
        at=audit.at if at is None else at,
        outcome="removed",
        sentence=f"{schedule_id}: {words}",
        words=words,
        code="removed",
        values={"by": audit.by, "removed_at": iso_text(audit.at)},
        fix=fix,
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
    """The instant that is meant if none is named: the last expected time, else the first one to come, else now."""
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
    """Whether a change of its zone or its rule left it out."""
    return any(one.after < at <= one.through and at not in one.slots for one in schedule.detours)


# If its job is kept.


def _of_job(schedule: Schedule, at: int, job: Job, records: Records, around: Around) -> Answer:
    match job.state:
        case State.SUCCEEDED | State.RUNNING:
            return _fired(schedule, at, job, records.move, around)
        case State.FAILED:
            tries = f" after {counted(job.attempts, 'attempt')}" if job.attempts else ""
            words = f"It ran, and its job failed{tries}: {first_line(job.error)}."
            fix = f"`rota jobs show {job.id}` has the traceback. `rota jobs retry {job.id}` runs it again."
            values: Values = {"attempts": job.attempts, "error": first_line(job.error)}
            return Answer(outcome="failed", words=words, fix=fix, code="ran.failed", values=values)
        case State.CANCELLED:
            reason = job.cancel_reason or ""
            words = f"Its job was cancelled: {reason or 'no reason was given'}."
            return Answer(outcome="cancelled", words=words, code="ran.cancelled", values={"reason": reason})
        case _:
            return waiting(job, around, records.other)


def _fired(schedule: Schedule, at: int, job: Job, move: AuditRecord | None, around: Around) -> Answer:
    began = first_run_at(job) or job.started_at or job.created_at
    late_by = began - at - jitter_of(schedule)
    how = _how_it_went(job, around)
    values = {**_run_values(job, around), "late": seconds_of(late_by)}
    if job.made_by == "catchup":
        values |= {"late": seconds_of(began - at)}
        if move is not None:
            words = f"{put_into_past(move)} It was made up for {span_words(began - at)} late. {how}"
            return Answer(outcome="late", words=words, code="late.moved", values={**values, **change_values(move)})
        words = f"It was missed, and made up for {span_words(began - at)} late. No scheduler fired it in time. {how}"
        fix = "Keep a scheduler running: `rota run` or `rota scheduler`."
        return Answer(outcome="late", words=words, fix=fix, code="late.made_up", values=values)
    if late_by > LATE:
        late = _why_late(job, at, began)
        words = f"It ran {span_words(late_by)} late. {late.words} {how}"
        return Answer(outcome="late", words=words, fix=late.fix, code=late.code, values={**values, **late.values})
    clock = _clock_change(schedule, at)
    words, code = f"It ran in time{clock}. {how}", "fired.clock_change" if clock else "fired"
    return Answer(outcome="fired", words=words, code=code, values=values)


def _run_values(job: Job, around: Around) -> Values:
    began = job.started_at or job.created_at
    end = around.now if job.state is State.RUNNING else job.finished_at or began
    return {"state": job.state.value, "ran": seconds_of(end - began), "attempts": job.attempts}


def _how_it_went(job: Job, around: Around) -> str:
    began = job.started_at or job.created_at
    tries = f" at attempt {job.attempts}" if job.attempts > 1 else ""
    if job.state is State.RUNNING:
        return f"The job is running, for {span_words(around.now - began)} so far."
    return f"The job succeeded{tries} in {span_words((job.finished_at or began) - began)}."


def _why_late(job: Job, at: int, began: int) -> Answer:
    """The answer about a late run: what it waited for by its history, and what to do about that."""
    moves = [move for move in history_of(job) if move.at <= began]
    held = next((move for move in moves if move.state is State.HELD), None)
    if held is not None:
        awaited = str((held.data or {}).get("waits_for"))
        words = f"It waited for job {awaited} to end."
        fix = 'Make the job shorter or the schedule rarer. With overlap="allow", runs may overlap.'
        return Answer(outcome="late", words=words, fix=fix, code="late.held", values={"job": awaited})
    if any((move.data or {}).get("cause") == "unknown task" for move in moves):
        words, fix = (
            f"Workers that do not know the task {job.task} took it first.",
            "Deploy the code that has it to all.",
        )
        return Answer(outcome="late", words=words, fix=fix, code="late.unknown_task", values={"task": job.task})
    if job.created_at - at > LATE:
        fix = "Was a scheduler running then, and the store in reach?"
        return Answer(outcome="late", words="The job was made late.", fix=fix, code="late.made_late")
    words = f"The job waited in the queue {job.queue} for a worker."
    fix = "Give its queue more workers, or the job a higher priority. Was the queue paused?"
    return Answer(outcome="late", words=words, fix=fix, code="late.queue", values={"queue": job.queue})


# If the ledger has an entry of it.


def _of_entry(schedule: Schedule, at: int, records: Records, around: Around) -> Answer:
    """The answer about an entry whose job is not kept (any more)."""
    entry, move = records.occurrence, records.move
    assert entry is not None  # noqa: S101 - the callers have looked
    if entry.outcome == "coalesced":
        words = f'{_missed(schedule, entry, move)} With catchup="latest", one run stands for all missed ones.'
        fix = 'With catchup="all", each of them is made up for.'
        code, values = "coalesced.moved" if move else "coalesced", _missed_values(entry, move)
        return Answer(outcome="coalesced", words=words, fix=fix, code=code, values=values)
    if entry.outcome != "skipped":
        reason = f": {entry.reason}" if entry.reason else ""
        words = f"Its job {_became(entry.outcome)}{reason}. The job is no longer kept."
        values = {"state": entry.outcome, "reason": entry.reason}
        return Answer(outcome=entry.outcome, words=words, code="job_forgotten", values=values)
    if (jobs := overlapped_jobs(entry.reason)) is not None:
        return overlap_answer(schedule, at, *jobs, records.other, around)
    return _skipped(schedule, entry, move, around.now)


def _became(outcome: str) -> str:
    return "was cancelled" if outcome == "cancelled" else outcome


def _skipped(schedule: Schedule, entry: Occurrence, move: AuditRecord | None, now: int) -> Answer:
    outcome = f"skipped: {entry.reason}"
    match entry.reason:
        case slots.MISSED | slots.NOT_CLAIMED:
            return _not_caught_up(schedule, entry, move)
        case unique if unique.startswith(f"{slots.UNIQUE} "):
            holder = unique.removeprefix(f"{slots.UNIQUE} (job ").removesuffix(")")
            return _refused_by_key(schedule, outcome, holder)
        case slots.DISABLED:
            fix = "" if schedule.is_enabled else steps_to_go_on(schedule, now)
            words = "It was skipped, because the schedule was disabled."
            return Answer(outcome=outcome, words=words, fix=fix, code="skipped.disabled")
        case slots.RETIRED:
            words = "It was skipped, because the schedule was retired: its origin no longer had it."
            return Answer(outcome=outcome, words=words, code="skipped.retired")
        case slots.RETIMED:
            words = "It was skipped, because the schedule's times were changed before it was fired."
            return Answer(outcome=outcome, words=words, code="skipped.retimed")
        case reason if reason.startswith(PAUSED):
            words = f"It was skipped, because the schedule was {reason}."
            fix = "" if schedule.silence is None else steps_to_go_on(schedule, now)
            return Answer(outcome=outcome, words=words, fix=fix, code="skipped.paused", values={"reason": reason})
        case reason:
            words = f"It was skipped: {reason}."
            return Answer(outcome=outcome, words=words, code="skipped.other", values={"reason": reason})


def _not_caught_up(schedule: Schedule, entry: Occurrence, move: AuditRecord | None) -> Answer:
    words, fix = _not_caught_up_words(schedule, _missed(schedule, entry, move))
    values = {
        **_missed_values(entry, move),
        "catchup": schedule.spec.catchup,
        "limit": schedule.spec.catchup_limit,
    }
    is_unclaimed = entry.reason == slots.NOT_CLAIMED
    code = "skipped.moved" if move else "skipped.not_claimed" if is_unclaimed else "skipped.missed"
    return Answer(outcome=f"skipped: {entry.reason}", words=words, fix=fix, code=code, values=values)


def _not_caught_up_words(schedule: Schedule, missed: str) -> tuple[str, str]:
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


def _refused_by_key(schedule: Schedule, outcome: str, holder: str) -> Answer:
    """The answer about an entry whose key another job held."""
    key = f"the unique key {schedule.spec.key!r}" if schedule.spec.key else "the unique key that this schedule had then"
    words = f"It was skipped, because job {holder} held {key}. One job at a time has a key."
    own = "If the schedule should run beside that job, give its jobs a key of their own."
    fix = f"`rota why {holder}` says what the job did. {own}"
    values: Values = {"job": holder, "unique_key": schedule.spec.key}
    return Answer(outcome=outcome, words=words, fix=fix, code="skipped.key", values=values)


def _missed_values(entry: Occurrence, move: AuditRecord | None) -> Values:
    span: Values = {
        "after": iso_text(entry.after_at),
        "through": iso_text(entry.through_at),
        "count": entry.count,
    }
    return span if move is None else {**span, **change_values(move)}


def _missed(schedule: Schedule, entry: Occurrence, move: AuditRecord | None) -> str:
    """From when to when nothing fired, or nothing was claimed; or which change of the zone was the cause."""
    if move is not None:
        return put_into_past(move)
    span = (
        f"from {wall(schedule, entry.after_at)} to {wall(schedule, entry.through_at)} ({counted(entry.count, 'time')})"
    )
    if entry.reason == slots.NOT_CLAIMED:
        return f"It was missed: its job was made ahead, and no worker claimed the schedule's jobs in time {span}."
    return f"It was missed: no scheduler fired the schedule {span}."


# If nothing is recorded.


def _broken(schedule: Schedule, problem: str) -> Answer:
    words = f"The schedule cannot be evaluated, so it does not run: {problem}."
    fix = f"Correct it with `rota schedules edit {schedule.id}`, or where it is defined. It goes on from then."
    return Answer(outcome="broken", words=words, fix=fix, code="broken", values={"problem": problem})


def _open(schedule: Schedule, at: int, around: Around) -> Answer:
    """The answer about an expected time that is not decided yet."""
    if (silent := silence_answer(schedule, at, around.now)) is not None:
        return silent
    if schedule.is_spent:
        words = f"The schedule has made all of its runs ({schedule.spec.max_runs})."
        fix, values = "A larger max_runs= lets it go on.", {"max_runs": schedule.spec.max_runs}
        return Answer(outcome="ended", words=words, fix=fix, code="ended.max_runs", values={**values})
    if at > around.now and around.seal is not None:
        return _sealed(schedule, at, around, around.seal)
    if at > around.now:
        later = f" Its jitter starts the job {span_words(jitter)} later." if (jitter := jitter_of(schedule)) else ""
        words = f"It is due in {span_words(at - around.now)}{_clock_change(schedule, at)}.{later}"
        soon: Values = {"in": seconds_of(at - around.now), "jitter": seconds_of(jitter_of(schedule))}
        return Answer(outcome="expected", words=words, code="expected", values=soon)
    return _due(schedule, at, around)


def _sealed(schedule: Schedule, at: int, around: Around, seal: Sealed) -> Answer:
    """The answer about a time to come in a store that fires nothing."""
    due_in = at - around.now
    words = f"It would be due in {span_words(due_in)}{_clock_change(schedule, at)}. {seal.words}, so nothing is fired."
    values: Values = {"in": seconds_of(due_in)}
    fix = seal.fix("The schedule goes on")
    return Answer(outcome="expected: store sealed", words=words, fix=fix, code="expected.sealed", values=values)


def _due(schedule: Schedule, at: int, around: Around) -> Answer:
    since = f"It has been due for {span_words(around.now - at)}"
    values: Values = {"due": seconds_of(around.now - at)}
    if around.seal is not None:
        words = f"{since}. {around.seal.words}, so nothing is fired."
        fix = around.seal.fix("The schedule goes on")
        return Answer(outcome="due", words=words, fix=fix, code="due.sealed", values=values)
    if schedule.fault:
        return _failed_firing(schedule, since, around, values)
    if not around.has_scheduler:
        fix = "Start one: `rota run` or `rota scheduler`."
        words = f"{since}, and no scheduler is running to fire it."
        return Answer(outcome="due", words=words, fix=fix, code="due.no_scheduler", values=values)
    fix = "If this lasts longer than a few seconds, `rota doctor` and the scheduler's log say more."
    words = f"{since}. A scheduler is running and has not fired it yet."
    return Answer(outcome="due", words=words, fix=fix, code="due.behind", values=values)


def _failed_firing(schedule: Schedule, since: str, around: Around, values: Values) -> Answer:
    goes_on = "A scheduler tries again." if around.has_scheduler else "No scheduler is running to try again."
    words = f"{since}. The store failed at the firing: {first_line(schedule.fault)}. {goes_on}"
    since_when = f"`rota schedules changes {schedule.id}` says since when."
    fix = f"Correct what the error names. {since_when} After the fifth failure in a row, the schedule is stopped."
    values = {**values, "error": first_line(schedule.fault)}
    return Answer(outcome="due", words=words, fix=fix, code="due.failed", values=values)


def _not_expected(schedule: Schedule, at: int, retimed: AuditRecord | None, around: Around) -> Verdict:
    spec, kind = schedule.spec, "not expected"
    before, after = expected_before(schedule, at), expected_after(schedule, at)
    values: Values = {}
    if at <= schedule.created_at:
        code, values = "not_expected.not_created", {"created_at": iso_text(schedule.created_at)}
        words = f"The schedule did not exist then. It was created at {wall(schedule, schedule.created_at)}."
    elif spec.start is not None and at < spec.start:
        code, values = "not_expected.not_started", {"start": iso_text(spec.start)}
        words = f"The schedule was not due then. It starts at {wall(schedule, spec.start)}."
    elif spec.end is not None and at > spec.end:
        kind, words = "ended", f"The schedule ended at {wall(schedule, spec.end)}."
        code, values = "ended", {"end": iso_text(spec.end)}
    elif said := _second_pass(schedule, at):
        kind, words = "once: DST repeat", f"The schedule was not due then: {said}."
        code = "not_expected.repeat"
    else:
        code, values = "not_expected.rule", {"rule": schedule.trigger.explain()}
        near = [wall(schedule, slot) for slot in (before, after) if slot]
        verb = "was" if at <= around.now else "is"
        words = f"The schedule {verb} not due then. It runs {_uncapitalised(schedule.trigger.explain())}." + (
            f" The nearest times are {' and '.join(near)}." if near else ""
        )
    if retimed is not None and at > schedule.created_at:
        words, values = f"{words} {change_words(retimed)}", {**values, **change_values(retimed)}
    answer = Answer(outcome=kind, words=words, code=code, values=values)
    return _verdict(schedule, at, answer, before=before, after=after)


def _clock_change(schedule: Schedule, at: int) -> str:
    """The effect of a clock change on this run, in words; empty if there was none."""
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
    """The message about a wall time that comes a second time, if its first pass was the run."""
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
        words=answer.words,
        code=answer.code,
        values=answer.values,
        fix=answer.fix,
        job_id=job.id if job else None,
        before=before,
        after=after,
    )


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
