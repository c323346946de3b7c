"""Every answer of why: the sentence and the fix for each combination of state, policy and cause."""

from __future__ import annotations

import msgspec
import pytest

from rota.model.audit_record import AuditRecord
from rota.model.jobs.job import accept
from rota.model.jobs.outcome import Failed, Returned, Snoozed, Stopped, Succeeded, TaskUnknown
from rota.model.jobs.retry import Backoff, RetryPolicy
from rota.model.jobs.settle import apply, claim, promote, release, settle
from rota.model.micros import SECOND
from rota.model.schedules.firing import overlap_reason
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Ahead, Detour, Origin, Pause
from rota.model.why.changed_times import Changes, Instead
from rota.model.why.job import Around, Sealed, why_job
from rota.model.why.schedule import Records, instant_to_explain, why, why_removed
from unit.model import values
from unit.model.values import HOUR, MINUTE, NOON, a_request

POLICY = RetryPolicy(retries=3, backoff=Backoff(first=HOUR, factor=1.0))
SLOT = NOON + 20 * MINUTE  # Mon 2026-09-21 14:33:20 UTC
BEFORE = NOON + 10 * MINUTE
NOW = SLOT + MINUTE
UNKNOWN = "Deploy the code that has mail.send, or correct the name of the task."
ERROR = "Boom: it broke\nTraceback"


def a_schedule(**fields):
    return values.a_schedule(schedule_id="tick", **fields)


def made(**fields):
    """The job of the time before, as it was made."""
    request = a_request(id="one", schedule_id="tick", fire_at=BEFORE, after_at=NOON, reason="fired", **fields)
    return accept(request, BEFORE)


def queued():
    return made()


def running(job=None, at=BEFORE):
    return claim(job or queued(), "worker-1", at, at + HOUR)


def ended_with(outcome, at=BEFORE + MINUTE):
    return apply(settle(running(), outcome, POLICY, at, 0.0))


def later_run(job, at):
    return running(promote(job, at), at)


LIVE = {
    "running": running,
    "retrying": lambda: ended_with(Failed(ERROR)),
    "unknown": lambda: ended_with(TaskUnknown(), SLOT - 10 * SECOND),
    "snoozed": lambda: ended_with(Snoozed(HOUR)),
    "queued": queued,
    "returned": lambda: ended_with(Returned()),
    "delayed": lambda: made(run_at=SLOT + HOUR),
    "finished since": lambda: apply(settle(running(), Succeeded(), POLICY, SLOT + SECOND, 0.0)),
    "failed since": lambda: apply(
        settle(
            later_run(ended_with(Failed(ERROR)), SLOT + 5 * SECOND), Failed(ERROR, may_retry=False), POLICY, NOW, 0.0
        )
    ),
}
DOING = {
    "running": "it had been running for 10 m.",
    "retrying": "an attempt had failed (Boom: it broke), and it was waiting for the next one at "
    "Mon 2026-09-21 15:24:20 UTC.",
    "unknown": "the worker that took it did not know the task mail.send.",
    "snoozed": "its task had asked to run again at Mon 2026-09-21 15:24:20 UTC.",
    "queued": "it had been waiting for a worker in the queue default for 10 m.",
    "returned": "it had been waiting for a worker in the queue default for 9 m.",
    "delayed": "it was waiting for its time, Mon 2026-09-21 15:33:20 UTC.",
    "finished since": "it had been running for 10 m, until Mon 2026-09-21 14:33:21 UTC.",
    "failed since": "an attempt had failed (Boom: it broke), and it was waiting for the next one at "
    "Mon 2026-09-21 15:24:20 UTC, until Mon 2026-09-21 15:24:20 UTC.",
}
SLOW = {
    "skip": 'Make the job shorter or the schedule rarer. With overlap="queue", one time waits for the run before it. '
    'With overlap="allow", runs may overlap.',
    "queue": 'Make the job shorter or the schedule rarer. With overlap="allow", runs may overlap.',
    "cancel": "The job went on after it was asked to stop. The task must look at `current_job.cancelled`; with "
    'executor="process", it is ended for it.',
}
RETRY = (
    "Correct the error: `rota jobs show one` has the traceback. A job that waits for its retry has not ended; fewer "
    "retries or a shorter backoff= end it earlier."
)
FIXES = {
    "retrying": RETRY,
    "failed since": RETRY,
    "unknown": UNKNOWN,
    "snoozed": 'The task decides how long it sleeps. With overlap="allow", runs may overlap.',
    "queued": "If that takes long, add workers or raise the job's priority.",
    "returned": "If that takes long, add workers or raise the job's priority.",
    "delayed": "`rota why one` says what it waits for.",
}
RULES = {
    "skip": 'With overlap="skip", a time makes no job while an earlier one has not ended.',
    "queue": 'With overlap="queue", one time waits for the job before it, and job two was waiting already.',
    "cancel": 'With overlap="cancel", the job before is asked to stop and one time waits for it; job two was waiting '
    "already.",
}


def line(outcome="skipped", reason="", *, at=SLOT, after=BEFORE, count=1, job_id=None):
    return Occurrence(
        schedule_id="tick", after_at=after, through_at=at, count=count, outcome=outcome, reason=reason, job_id=job_id
    )


def ask(schedule=None, at=SLOT, *, around=None, **records):
    return why(schedule or a_schedule(), at, Records(**records), around or Around(now=NOW))


@pytest.mark.parametrize("doing", list(LIVE))
@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
def test_an_overlap_says_what_the_live_job_was_doing(overlap, doing):
    reason = overlap_reason("one", None if overlap == "skip" else "two")
    verdict = ask(a_schedule(overlap=overlap), occurrence=line(reason=reason), other=LIVE[doing]())
    assert verdict.outcome == "skipped: overlap"
    words = f"It was skipped, because job one of Mon 2026-09-21 14:23:20 UTC had not ended: {DOING[doing]}"
    assert verdict.sentence == f"tick at Mon 2026-09-21 14:33:20 UTC: {words} {RULES[overlap]}"
    assert verdict.fix == FIXES.get(doing, SLOW[overlap])


def test_an_overlap_with_a_job_that_ended_at_that_instant_says_what_it_did_before():
    ended = ended_with(Succeeded(b"null"), SLOT)
    verdict = ask(occurrence=line(reason=overlap_reason("one")), other=ended)
    assert "had not ended: it had been running for" in verdict.sentence


def test_an_overlap_with_a_job_that_was_made_later_says_that_no_scheduler_was_there():
    late = accept(a_request(id="one", schedule_id="tick", fire_at=BEFORE, after_at=NOON, reason="fired"), NOW)
    verdict = ask(occurrence=line(reason=overlap_reason("one")), other=late)
    assert verdict.sentence == (
        "tick at Mon 2026-09-21 14:33:20 UTC: It was skipped: no scheduler fired it before Mon 2026-09-21 14:34:20 UTC."
        " Other times were due by then, too, and job one of Mon 2026-09-21 14:23:20 UTC was made first. "
        f"{RULES['skip']}"
    )
    assert verdict.fix.startswith("Keep a scheduler running")


def test_a_date_that_is_done_is_not_due_again():
    done = Ahead(detours=(Detour(NOON, SLOT + HOUR, is_date=True),))
    verdict = ask(msgspec.structs.replace(a_schedule(), ahead=done), NOON + 60 * MINUTE)
    assert verdict.outcome == "not expected"
    assert "Its zone or its times were changed, and another run stands for this time." in verdict.sentence


@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
def test_an_overlap_whose_job_is_gone_says_no_more_than_is_known(overlap):
    reason = overlap_reason("one", None if overlap == "skip" else "two")
    verdict = ask(a_schedule(overlap=overlap), occurrence=line(reason=reason))
    words = "It was skipped, because job one had not ended. That job is no longer kept."
    assert verdict.sentence.endswith(f"{words} {RULES[overlap]}")


AROUND = {
    "paused": ({"is_queue_paused": True}, "`rota queues resume default`."),
    "no worker": ({"has_worker": False}, "Start one: `rota worker TARGET -q default`."),
    "unknown": ({"knows_task": False}, UNKNOWN),
    "sealed": ({"seal": Sealed(other="redis")}, "The job runs in the store it is copied to."),
    "copied": (
        {"seal": Sealed(other="redis", is_done=True)},
        "The job runs there: restart the nodes with the URL of that store.",
    ),
    "being filled": ({"seal": Sealed(other="redis", is_target=True)}, "The job runs when the copy has ended."),
}


@pytest.mark.parametrize(("facts", "fix"), AROUND.values(), ids=AROUND)
def test_an_overlap_with_a_job_that_still_waits_says_what_that_needs(facts, fix):
    verdict = ask(occurrence=line(reason=overlap_reason("one")), other=queued(), around=Around(now=NOW, **facts))
    assert verdict.fix == fix


NO_RETRY = RetryPolicy(retries=0)
OF_JOB = {
    "in time": (running, "fired", "It ran in time. The job is running, for 11 m so far.", ""),
    "retried and done": (
        lambda: apply(settle(later_run(ended_with(Failed(ERROR)), SLOT), Succeeded(), POLICY, SLOT + SECOND, 0.0)),
        "fired",
        "It ran in time. The job succeeded at attempt 2 in 0 ms.",
        "",
    ),
    "failed": (
        lambda: apply(settle(running(), Failed(ERROR), NO_RETRY, SLOT, 0.0)),
        "failed",
        "It ran, and its job failed after 1 attempt: Boom: it broke.",
        "`rota jobs show one` has the traceback. `rota jobs retry one` runs it again.",
    ),
    "cancelled": (lambda: ended_with(Stopped("ann said so")), "cancelled", "Its job was cancelled: ann said so.", ""),
    "retrying": (
        lambda: ended_with(Failed(ERROR)),
        "waiting: retry",
        "The job has failed 1 time: Boom: it broke. It is tried again at Mon 2026-09-21 15:24:20 UTC, in 50 m.",
        "`rota jobs show one` has the traceback.",
    ),
    "unknown": (
        lambda: ended_with(TaskUnknown(), SLOT + 50 * SECOND),
        "waiting: task unknown to a worker",
        (
            "The worker that took the job does not know the task mail.send. It is offered again at "
            "Mon 2026-09-21 14:34:40 UTC, in 20 s."
        ),
        UNKNOWN,
    ),
    "snoozed": (
        lambda: ended_with(Snoozed(HOUR)),
        "waiting: snoozed",
        "The task asked to run again at Mon 2026-09-21 15:24:20 UTC, in 50 m.",
        "",
    ),
    "late in the queue": (
        lambda: running(at=BEFORE + MINUTE),
        "late",
        "It ran 60 s late. The job waited in the queue default for a worker. The job is running, for 10 m so far.",
        "Give its queue more workers, or the job a higher priority. Was the queue paused?",
    ),
    "late behind another": (
        lambda: running(apply(release(made(waits_for="zero"), BEFORE + MINUTE)), BEFORE + MINUTE),
        "late",
        "It ran 60 s late. It waited for job zero to end. The job is running, for 10 m so far.",
        'Make the job shorter or the schedule rarer. With overlap="allow", runs may overlap.',
    ),
    "late as unknown": (
        lambda: later_run(ended_with(TaskUnknown(), BEFORE + 1), BEFORE + MINUTE),
        "late",
        (
            "It ran 60 s late. Workers that do not know the task mail.send took it first. "
            "The job is running, for 10 m so far."
        ),
        "Deploy the code that has it to all.",
    ),
    "made late": (
        lambda: running(accept(a_request(id="one", schedule_id="tick", fire_at=BEFORE, reason="fired"), SLOT), SLOT),
        "late",
        "It ran 10 m late. The job was made late. The job is running, for 60 s so far.",
        "Was a scheduler running then, and the store in reach?",
    ),
    "made up for": (
        lambda: running(accept(a_request(id="one", fire_at=BEFORE, made_by="catchup"), SLOT), SLOT),
        "late",
        "It was missed, and made up for 10 m late. No scheduler fired it in time. The job is running, for 60 s so far.",
        "Keep a scheduler running: `rota run` or `rota scheduler`.",
    ),
}


@pytest.mark.parametrize(("make", "outcome", "words", "fix"), OF_JOB.values(), ids=OF_JOB)
def test_a_time_whose_job_is_kept(make, outcome, words, fix):
    job = make()
    verdict = ask(at=BEFORE, occurrence=line(job.state.value, at=BEFORE, after=NOON, job_id="one"), job=job)
    assert (verdict.outcome, verdict.fix, verdict.job_id) == (outcome, fix, "one")
    assert verdict.sentence == f"tick at Mon 2026-09-21 14:23:20 UTC: {words}"


MISSED = (
    "It was missed: no scheduler fired the schedule from Mon 2026-09-21 14:23:20 UTC to Mon 2026-09-21 14:33:20 UTC"
)
OF_LINE = {
    "latest": (
        {},
        line("coalesced", "catch-up", count=2),
        f'{MISSED} (2 times). With catchup="latest", one run stands for all missed ones.',
        'With catchup="all", each of them is made up for.',
    ),
    "not made up for": (
        {"catchup": "skip"},
        line(reason="catch-up"),
        f'{MISSED} (1 time). With catchup="skip", missed times are not made up for.',
        'With catchup="latest" or "all", they are.',
    ),
    "too many": (
        {"catchup": "all", "catchup_limit": 7},
        line(reason="catch-up", count=9),
        f'{MISSED} (9 times). With catchup="all", the newest 7 missed times are made up for.',
        "A larger catchup_limit= makes up for more of them.",
    ),
    "by a policy of then": (
        {},
        line(reason="catch-up"),
        f"{MISSED} (1 time). The schedule's catchup= of that time did not make up for it.",
        "",
    ),
    "disabled then": ({}, line(reason="disabled"), "It was skipped, because the schedule was disabled.", ""),
    "retired then": (
        {},
        line(reason="retired"),
        "It was skipped, because the schedule was retired: its origin no longer had it.",
        "",
    ),
    "paused then": (
        {},
        line(reason="paused by ann: month end"),
        "It was skipped, because the schedule was paused by ann: month end.",
        "",
    ),
    "re-timed": (
        {},
        line(reason="schedule re-timed"),
        "It was skipped, because the schedule's times were changed before it was fired.",
        "",
    ),
    "pruned": ({}, line("succeeded"), "Its job succeeded. The job is no longer kept.", ""),
    "pruned cancelled": (
        {},
        line("cancelled", "by ann"),
        "Its job was cancelled: by ann. The job is no longer kept.",
        "",
    ),
}


@pytest.mark.parametrize(("spec", "record", "words", "fix"), OF_LINE.values(), ids=OF_LINE)
def test_a_time_that_the_ledger_alone_knows(spec, record, words, fix):
    verdict = ask(a_schedule(**spec), occurrence=record)
    assert (verdict.sentence, verdict.fix) == (f"tick at Mon 2026-09-21 14:33:20 UTC: {words}", fix)


OPEN = {
    "due": ({}, {}, "due", "It has been due for 60 s. A scheduler is running and has not fired it yet."),
    "nobody": (
        {},
        {"has_scheduler": False},
        "due",
        "It has been due for 60 s, and no scheduler is running to fire it.",
    ),
    "sealed": (
        {},
        {"seal": Sealed(other="redis")},
        "due",
        "It has been due for 60 s. The store is sealed while it is copied to redis, so nothing is fired.",
    ),
    "copied": (
        {},
        {"seal": Sealed(other="redis", is_done=True)},
        "due",
        "It has been due for 60 s. The store is sealed: everything in it was copied to redis, so nothing is fired.",
    ),
    "being filled": (
        {},
        {"seal": Sealed(other="redis", is_target=True)},
        "due",
        "It has been due for 60 s. The store is sealed while it is filled from redis, so nothing is fired.",
    ),
    "the store failed": (
        {"ahead": Ahead(fault="Boom: too large\nmore")},
        {},
        "due",
        "It has been due for 60 s. The store failed at the firing: Boom: too large. A scheduler tries again.",
    ),
    "the store failed, and nobody tries again": (
        {"ahead": Ahead(fault="Boom: too large")},
        {"has_scheduler": False},
        "due",
        (
            "It has been due for 60 s. The store failed at the firing: Boom: too large. No scheduler is running to try "
            "again."
        ),
    ),
    "disabled": ({"is_enabled": False}, {}, "skipped: disabled", "The schedule is disabled."),
    "retired": (
        {"origin": Origin(kind="code", app="shop", is_retired=True)},
        {},
        "skipped: retired",
        "The schedule is retired: the code of app 'shop' no longer has it.",
    ),
    "paused": (
        {"pause": Pause(NOON, "month end", "ann")},
        {},
        "skipped: paused by ann: month end",
        "The schedule is paused by ann: month end.",
    ),
    "paused with its tenant": (
        {"tenant_pause": Pause(NOON - HOUR, "", "ann", None, "acme")},
        {},
        "skipped: paused with tenant acme by ann",
        "The schedule is paused with tenant acme by ann.",
    ),
    "missed before the pause": (
        {"pause": Pause(NOW - 1, "", "ann")},
        {},
        "missed",
        (
            "It was missed: no scheduler fired it before the schedule was paused by ann. When the schedule goes on, "
            'catchup="latest" decides about it.'
        ),
    ),
    "after the pause": (
        {"pause": Pause(NOON, "", "ann", SLOT)},
        {},
        "due",
        "It has been due for 60 s. A scheduler is running and has not fired it yet.",
    ),
}


@pytest.mark.parametrize(("fields", "facts", "outcome", "words"), OPEN.values(), ids=OPEN)
def test_a_time_that_nobody_has_decided_on(fields, facts, outcome, words):
    schedule = msgspec.structs.replace(a_schedule(), **fields)
    verdict = ask(schedule, around=Around(now=NOW, **facts))
    assert (verdict.outcome, verdict.sentence) == (outcome, f"tick at Mon 2026-09-21 14:33:20 UTC: {words}")


def test_a_schedule_that_was_paused_before_its_first_run_is_paused_and_not_unexpected():
    schedule = msgspec.structs.replace(a_schedule(), tenant_pause=Pause(NOON - HOUR, "", "ann", None, "acme"))
    at = instant_to_explain(schedule, NOON + MINUTE)
    verdict = ask(schedule, at, around=Around(now=NOON + MINUTE))
    assert (verdict.outcome, verdict.fix) == ("skipped: paused with tenant acme by ann", "`rota tenants resume acme`.")


ENABLE, RESUME, TENANT = "`rota schedules enable tick`", "`rota schedules resume tick`", "`rota tenants resume acme`"
OWN, WITH_TENANT = Pause(NOON, "", "ann"), Pause(NOON, "", "bob", None, "acme")
SILENCES = {
    "disabled and paused": ({"is_enabled": False, "pause": OWN}, [ENABLE, RESUME]),
    "disabled, and its tenant paused": ({"is_enabled": False, "tenant_pause": WITH_TENANT}, [ENABLE, TENANT]),
    "paused twice": ({"pause": OWN, "tenant_pause": WITH_TENANT}, [RESUME, TENANT]),
    "all": ({"is_enabled": False, "pause": OWN, "tenant_pause": WITH_TENANT}, [ENABLE, RESUME, TENANT]),
    "a pause that is over": ({"is_enabled": False, "pause": Pause(NOON, "", "ann", SLOT)}, [ENABLE]),
}


@pytest.mark.parametrize(("fields", "steps"), SILENCES.values(), ids=SILENCES)
@pytest.mark.parametrize("reason", ["", "paused by ann", "disabled"])
def test_a_schedule_that_is_silent_for_several_reasons_is_told_a_step_for_each(fields, steps, reason):
    schedule = msgspec.structs.replace(a_schedule(), **fields)
    records = {"occurrence": line("skipped", reason)} if reason else {}
    is_enabled_again = reason == "disabled" and schedule.is_enabled
    assert ask(schedule, **records).fix == ("" if is_enabled_again else f"{' and '.join(steps)}.")


def test_a_disabled_schedule_says_that_it_is_also_paused():
    schedule = msgspec.structs.replace(a_schedule(), is_enabled=False, pause=OWN)
    assert ask(schedule).words == "The schedule is disabled. It is also paused by ann."


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"tz": "Mars/Olympus"}, "UnknownZone: "),
        ({"trigger": "cron 61 * * * *"}, "BadCronField: minute field '61'"),
        ({"trigger": "lunar 3"}, "cannot be evaluated"),
    ],
    ids=["zone", "field", "kind"],
)
def test_a_broken_schedule_is_told_as_such(spec, words):
    good = a_schedule()
    schedule = msgspec.structs.replace(good, spec=msgspec.structs.replace(good.spec, **spec))
    verdict = ask(schedule, instant_to_explain(schedule, NOW))
    assert verdict.outcome == "broken"
    assert "The schedule cannot be evaluated, so it does not run: " in verdict.sentence
    assert words in verdict.sentence
    assert "`rota schedules edit tick`" in verdict.fix
    assert ask(schedule, occurrence=line("coalesced", "catch-up")).outcome == "coalesced"
    assert ask(schedule, at=BEFORE, occurrence=line("running", at=BEFORE), job=running()).outcome == "fired"


def a_note(at, before, after):
    pack = msgspec.json.encode
    return AuditRecord(
        id="n",
        at=at,
        by="ann",
        verb="re-timed",
        subject="schedule:tick",
        before=pack(before).decode(),
        after=pack(after).decode(),
    )


def test_a_time_of_the_rule_of_today_that_was_none_then_names_the_change():
    schedule = msgspec.structs.replace(a_schedule(), fired_through=NOW)
    note = a_note(NOW, {"trigger": "every 1h"}, {"trigger": "every 10m"})
    verdict = ask(schedule, changes=Changes(later=note))
    assert verdict.outcome == "not expected"
    assert verdict.sentence.endswith(
        "The schedule was not due then. Its times were changed by ann at Mon 2026-09-21 14:34:20 UTC "
        "(trigger: every 1h → every 10m)."
    )


def test_a_local_time_that_ran_before_a_move_is_not_forgotten():
    schedule = msgspec.structs.replace(a_schedule(), fired_through=NOW)
    note = a_note(NOON, {"tz": "Asia/Kolkata"}, {"tz": "UTC"})
    verdict = ask(schedule, changes=Changes(instead=Instead(audit=note, occurrence=line("succeeded", at=NOON - HOUR))))
    assert verdict.outcome == "done before the move"
    assert "This local time had its turn already, at Mon 2026-09-21 18:43:20 IST." in verdict.sentence
    assert "(tz: Asia/Kolkata → UTC). No local time runs twice." in verdict.sentence
    assert ask(schedule).outcome == "forgotten"


def test_a_time_to_come_that_a_change_left_out_is_not_forgotten():
    schedule = msgspec.structs.replace(a_schedule(), fired_through=NOW + HOUR, generation=2)
    verdict = ask(schedule, SLOT + 10 * MINUTE)
    assert verdict.outcome == "not expected"
    assert verdict.sentence.endswith(
        "The schedule is not due then. Its zone or its times were changed, and another run stands for this time."
    )


def test_a_removed_schedule_names_who_removed_it_and_when():
    note = AuditRecord(id="n", at=NOON, by="ann", verb="removed", subject="schedule:tick")
    verdict = why_removed("tick", None, note)
    assert (verdict.outcome, verdict.at) == ("removed", NOON)
    assert verdict.sentence == "tick: The schedule was removed by ann at Mon 2026-09-21 14:13:20 UTC."


JOBS = {
    "queued": (
        queued,
        {},
        "waiting",
        "The job waits in the queue default for a free worker. It has been ready for 11 m.",
    ),
    "returned": (
        lambda: ended_with(Returned(), NOW - 30 * SECOND),
        {},
        "waiting",
        "The job waits in the queue default for a free worker. It has been ready for 30 s.",
    ),
    "paused": (
        queued,
        {"is_queue_paused": True},
        "waiting: queue paused",
        "The job waits in the queue default, which is paused. It has been ready for 11 m.",
    ),
    "nobody": (
        queued,
        {"has_worker": False},
        "waiting: no worker for this queue",
        "The job waits, and no worker takes jobs from the queue default. It has been ready for 11 m.",
    ),
    "unknown": (
        queued,
        {"knows_task": False},
        "waiting: task unknown to every worker",
        "The job waits, and no worker knows the task mail.send. It has been ready for 11 m.",
    ),
    "offered, and nobody takes it": (
        lambda: ended_with(TaskUnknown(), SLOT + 50 * SECOND),
        {"knows_task": False},
        "waiting: task unknown to every worker",
        (
            "The worker that took the job does not know the task mail.send. It is offered again at "
            "Mon 2026-09-21 14:34:40 UTC, in 20 s. No worker knows the task."
        ),
    ),
    "running": (running, {}, "running", "Attempt 1 has been running for 11 m on worker-1."),
    "stopping": (
        lambda: msgspec.structs.replace(running(), cancel_reason="by ann"),
        {},
        "running: asked to stop",
        "Attempt 1 has been running for 11 m on worker-1. It was asked to stop (by ann), and has not stopped yet.",
    ),
    "lost": (
        lambda: msgspec.structs.replace(running(), lease_until=NOW - 5 * SECOND),
        {},
        "running: lease expired",
        "Attempt 1 has been running for 11 m on worker-1. Its worker has not renewed the lease for 5 s.",
    ),
    "succeeded": (
        lambda: ended_with(Succeeded()),
        {},
        "succeeded",
        "It succeeded at Mon 2026-09-21 14:24:20 UTC after 1 attempt. It ran for 60 s.",
    ),
    "failed": (
        lambda: ended_with(Failed(ERROR, may_retry=False)),
        {},
        "failed",
        "It failed at Mon 2026-09-21 14:24:20 UTC after 1 attempt: Boom: it broke.",
    ),
    "cancelled": (
        lambda: ended_with(Stopped("by ann")),
        {},
        "cancelled",
        "It was cancelled at Mon 2026-09-21 14:24:20 UTC: by ann.",
    ),
}


@pytest.mark.parametrize(("make", "facts", "outcome", "words"), JOBS.values(), ids=JOBS)
def test_a_job_says_where_it_is(make, facts, outcome, words):
    verdict = why_job(make(), Around(now=NOW, **facts))
    assert (verdict.outcome, verdict.sentence) == (outcome, f"job one (mail.send): {words}")


def test_a_held_job_says_what_the_one_before_is_doing():
    held = accept(a_request(id="two", waits_for="one"), BEFORE)
    verdict = why_job(held, Around(now=NOW), ended_with(Failed(ERROR)))
    assert (verdict.outcome, verdict.waits_for) == ("waiting: another job", "one")
    assert "The job waits for job one to end. That one has not ended: an attempt had failed" in verdict.sentence
    assert why_job(held, Around(now=NOW)).sentence.endswith("The job waits for job one to end.")
