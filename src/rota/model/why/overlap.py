"""Explains why an occurrence was an overlap: what the live job was doing then, and what would change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from rota.model.micros import iso_text
from rota.model.schedules.firing import LATE
from rota.model.schedules.slots import OVERLAP
from rota.model.why.job import Answer, Doing, doing_at, unknown_fix, waiting
from rota.model.why.time_words import wall_words

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Overlap, Schedule
    from rota.model.why.job import Around, Values

RULES: dict[Overlap, str] = {
    "skip": 'With overlap="skip", a time makes no job while an earlier one has not ended.',
    "queue": 'With overlap="queue", one time waits for the job before it, and job {held} was waiting already.',
    "cancel": 'With overlap="cancel", the job before is asked to stop and one time waits for it; job {held} was '
    "waiting already.",
    "allow": "",
}
SHORTER = "Make the job shorter or the schedule rarer."
TOGETHER = 'With overlap="allow", runs may overlap.'


def overlap_answer(
    schedule: Schedule, at: int, live_id: str, held_id: str | None, live: Job | None, around: Around
) -> Answer:
    """The answer about a skip that met a live job; `live` is None if that job is no longer kept."""
    policy: Overlap = "skip" if held_id is None else "cancel" if schedule.spec.overlap == "cancel" else "queue"
    rule = RULES[policy].format(held=held_id)
    outcome = f"skipped: {OVERLAP}"
    values: Values = {"job": live_id, "policy": policy, "held": held_id}
    if live is None:
        words = f"It was skipped, because job {live_id} had not ended. That job is no longer kept. {rule}"
        fix = "Jobs and their histories are kept as the settings under retention: say."
        return Answer(outcome=outcome, words=words, fix=fix, code="skipped.overlap_forgotten", values=values)
    values |= {"of": None if live.fire_at is None else iso_text(live.fire_at)}
    if live.created_at - at > LATE:
        return _fired_together(live, rule, around, values)
    # A job may end at the very instant for which it was found live: its state before that instant counts.
    doing = doing_at(live, at if live.finished_at is None else min(at, live.finished_at - 1), around.tz)
    words = f"It was skipped, because job {live_id}{_of_time(live, around.tz)} had not ended: {doing.words}. {rule}"
    fix = _fix(live, doing, policy, around)
    return Answer(
        outcome=outcome, words=words, fix=fix, code="skipped.overlap", values={**values, "doing": doing.cause}
    )


def _fired_together(live: Job, rule: str, around: Around, values: Values) -> Answer:
    """Several times were due when a scheduler came back, none past its grace: the first made the job that the others
    met."""
    words = (
        f"It was skipped: no scheduler fired it before {wall_words(live.created_at, around.tz)}. Other times were due "
        f"by then, too, and job {live.id}{_of_time(live, around.tz)} was made first. {rule}"
    )
    fix = f"Keep a scheduler running: `rota run` or `rota scheduler`. {TOGETHER}"
    values = {**values, "made_at": iso_text(live.created_at)}
    return Answer(outcome=f"skipped: {OVERLAP}", words=words, fix=fix, code="skipped.overlap_together", values=values)


def _of_time(live: Job, tz: str) -> str:
    return "" if live.fire_at is None else f" of {wall_words(live.fire_at, tz)}"


def _fix(live: Job, doing: Doing, policy: Overlap, around: Around) -> str:
    match doing.cause:
        case "running" | "ended":
            return _of_slow_runs(policy)
        case "retry":
            return (
                f"Correct the error: `rota jobs show {live.id}` has the traceback. A job that waits for its retry has "
                "not ended; fewer retries or a shorter backoff= end it earlier."
            )
        case "unknown task":
            return unknown_fix(live.task)
        case "snooze":
            return f"The task decides how long it sleeps. {TOGETHER}"
        case "queued":
            now = waiting(live, around).fix if doing.still else ""
            return now or "Give its queue more workers, or the job a higher priority."
        case "held" | "delay":
            return f"`rota why {live.id}` says what it waits for." if doing.still else TOGETHER
        case _:
            assert_never(doing.cause)


def _of_slow_runs(policy: Overlap) -> str:
    match policy:
        case "skip":
            return f'{SHORTER} With overlap="queue", one time waits for the run before it. {TOGETHER}'
        case "cancel":
            return (
                "The job went on after it was asked to stop. The task must look at `current_job.cancelled`; with "
                'executor="process", it is ended for it.'
            )
        case _:
            return f"{SHORTER} {TOGETHER}"
