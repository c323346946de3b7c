"""Why an occurrence was skipped as an overlap: what the live job was doing then, and what would change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from rota.model.firing import LATE
from rota.model.slots import OVERLAP
from rota.model.time_words import wall_words
from rota.model.why_job import Answer, Doing, doing_at, unknown_fix, waiting

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.model.schedule import Overlap, Schedule
    from rota.model.why_job import Around

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
    """The answer about a skip that met a live job; `live` is None where that job is no longer kept."""
    policy: Overlap = "skip" if held_id is None else "cancel" if schedule.spec.overlap == "cancel" else "queue"
    rule = RULES[policy].format(held=held_id)
    outcome = f"skipped: {OVERLAP}"
    if live is None:
        words = f"It was skipped, because job {live_id} had not ended. That job is no longer kept. {rule}"
        fix = "Jobs and their histories are kept as the settings under retention: say."
        return Answer(outcome=outcome, words=words, fix=fix)
    if live.created_at - at > LATE:
        return _fired_together(live, rule, around)
    doing = doing_at(live, at, around.tz)
    words = f"It was skipped, because job {live_id}{_of_time(live, around.tz)} had not ended: {doing.words}. {rule}"
    return Answer(outcome=outcome, words=words, fix=_fix(live, doing, policy, around))


def _fired_together(live: Job, rule: str, around: Around) -> Answer:
    """Several times were open when a scheduler came back: the first made the job that the others met."""
    words = (
        f"It was missed: no scheduler fired it before {wall_words(live.created_at, around.tz)}. Other times were open "
        f"by then, too, and job {live.id}{_of_time(live, around.tz)} was made first. {rule}"
    )
    fix = f"Keep a scheduler running: `rota run` or `rota scheduler`. {TOGETHER}"
    return Answer(outcome=f"skipped: {OVERLAP}", words=words, fix=fix)


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
