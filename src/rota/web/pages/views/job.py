"""Shows one job: the call as Python, why it waits, its timeline, its attempts, its log and its result."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.app import internals
from rota.inspector.changes import list_changes
from rota.inspector.facts.job import job_page_facts
from rota.inspector.job_life import life_of
from rota.inspector.log_tail import log_tail
from rota.model.audit_record import subject_of
from rota.model.jobs.job import State
from rota.model.jobs.retry import MAX_DEATHS
from rota.model.micros import datetime_of
from rota.model.reasons import REASONS, reason_text
from rota.operations.bulk import CANCEL, DELETE, RETRY
from rota.operations.run_copy import original_of
from rota.web.pages.page import Download, Flash, GoTo, Page, View, Visit
from rota.web.pages.python_call import pieces_of
from rota.web.pages.tracebacks import blocks_of
from rota.web.pages.why_words import fixed, said_of
from rota.web.types import JobId

if TYPE_CHECKING:
    from datetime import datetime

    from rota.inspector.changes import Change
    from rota.inspector.facts.job import JobPageFacts
    from rota.inspector.facts.why import JobWhyFacts
    from rota.inspector.job_life import Stage
    from rota.inspector.log_tail import Tail
    from rota.model.jobs.job import Job
    from rota.store.contract import LogLine
    from rota.web.pages.words import Words

LEVELS = {"warning": ("warning", "error", "critical"), "error": ("error", "critical")}
LONGEST_RESULT = 20_000  # characters of a result that the page shows
LIFE = 1_000  # units of the life's width
TICKS = 4  # spaces between the labels under it
CHANGES = 20
LARGEST = 1e15  # of a progress


class JobPath(Struct, frozen=True):
    """Which job."""

    job_id: JobId


def show_job(visit: Visit) -> View:
    job = visit.app.jobs.read(visit.path["job_id"])
    store, redaction = visit.app.open(), internals(visit.app).redaction
    facts, now = job_page_facts(job, redaction), store.now()
    why = visit.app.jobs.why(job.id)
    changes = list_changes(store, redaction, subject_of("job", job.id), limit=CHANGES).items
    level = visit.query.get("level", "")
    life = life_of(job, now)
    values = {
        **page_values(visit, facts, life, why),
        **_of_record(job),
        "retries": retries_by_hand(life, changes),
        **log_values(log_tail(store, job.id), level),
        "changes": [_change(visit, change) for change in changes],
        "original": original_of(job),
        "level": level if level in LEVELS else "",
        "can": {verb.name: job.state in verb.states for verb in (RETRY, CANCEL, DELETE)},
        "now": datetime_of(now),
    }
    return View(template="job.html", values=values)


def page_values(visit: Visit, job: JobPageFacts, life: list[Stage], why: JobWhyFacts) -> dict[str, Any]:
    """What the page shows of a job's facts."""
    waited = sum(stage.seconds for stage in life if stage.cause is not None)
    whole = (life[-1].end - life[0].start).total_seconds()
    return {
        "job": job,
        "pieces": pieces_of(job.task, job.args, job.kwargs),
        "headline": _headline(visit, job, life),
        "why": why,
        "fix": fixed(visit.words, why.fix),
        "why_sentence": said_of(visit.words, why.code, why.values, why.sentence.partition("): ")[2] or why.sentence),
        "shows_why": not job.state.is_final,
        "progress": progress_of(job.progress) if job.state is State.RUNNING else None,
        "life": life,
        "bars": bars_of(life),
        "ticks": ticks_of(visit.words, life[0].start, whole),
        "whole": whole,
        "waited": waited,
        **counts_of(life),
        "attempts": [_attempt(stage) for stage in reversed(life) if stage.ending not in {None, "unknown"}],
        "result": _result(job),
    }


def _of_record(job: Job) -> dict[str, Any]:
    """What the record has beyond the facts."""
    return {
        "deaths": job.deaths,
        "most_deaths": MAX_DEATHS,
        "made_by": job.made_by,
        "cancel_reason": job.cancel_reason,
        "waits_for": job.waits_for if job.state is State.HELD else None,
        "payload_size": len(job.payload),
    }


def counts_of(life: list[Stage]) -> dict[str, int | None]:
    """How many attempts failed, and how many of them since the last retry by hand, if there was one."""
    by_hand = [number for number, stage in enumerate(life) if stage.is_by_hand]
    return {"failed": _failed(life), "failed_since": _failed(life[by_hand[-1] :]) if by_hand else None}


def _failed(life: list[Stage]) -> int:
    return sum(stage.ending == "failed" for stage in life)


def retries_by_hand(life: list[Stage], changes: list[Change]) -> dict[int, tuple[str, str]]:
    """Who retried the job by hand, and why, by the position of the stage; "" if it is not known. The audit, newest
    first, may no longer have all."""
    stages = [number for number, stage in enumerate(life) if stage.is_by_hand]
    names = [change.by for change in changes if change.verb == "retried"]
    known = dict(zip(reversed(stages), names, strict=False))
    return {number: (known.get(number, ""), _why(life[number].reason, known.get(number, ""))) for number in stages}


def _why(reason: str, by: str) -> str:
    """What a reason says beside that somebody retried the job."""
    if reason == REASONS["retried_hand"]:
        return ""
    return reason.removeprefix(reason_text("retried_by", by=by)).removeprefix(": ") if by else reason


def _headline(visit: Visit, job: JobPageFacts, life: list[Stage]) -> str:
    text, span = visit.words.text, visit.words.span
    last = life[-1]
    match job.state:
        case State.RUNNING:
            return text("job.for_attempt", span=span(last.seconds), attempt=last.attempt)
        case State.SUCCEEDED | State.FAILED | State.CANCELLED:
            began = next((stage.start for stage in life if stage.ending not in {None, "unknown"}), None)
            if began is None:
                return text("job.never_ran")
            return text("job.after", span=span((last.end - began).total_seconds()), n=max(1, job.attempts))
        case State.SCHEDULED:
            return text("job.due", time=visit.words.time(job.run_at))
        case _:
            return text("job.waiting_for", span=span(last.seconds))


def bars_of(life: list[Stage]) -> list[dict[str, Any]]:
    """The life as bars on one scale: their kinds, positions and widths. Every stage can be seen, however short."""
    start = life[0].start
    whole = max((life[-1].end - start).total_seconds(), 0.001)
    bars = []
    for stage in life:
        if stage.cause is None and stage.ending is None:
            continue
        left = (stage.start - start).total_seconds() / whole * LIFE
        width = max(stage.seconds / whole * LIFE, 4)
        kind = "wait" if stage.cause else stage.ending
        bars.append({"kind": kind, "x": round(min(left, LIFE - width), 1), "width": round(width, 1)})
    return bars


def ticks_of(words: Words, start: datetime, whole: float) -> list[str]:
    """The labels under the life: times of day, or how long after the start if a second would be said twice."""
    parts = [whole * part / TICKS for part in range(TICKS + 1)]
    if whole < TICKS:
        return [words.span(part) if part else "0" for part in parts]
    form = "seconds" if whole < 600 else "minutes"
    return [words.instant(start + timedelta(seconds=part), form) for part in parts]


def progress_of(text: str | None) -> dict[str, Any] | None:
    """3/10 with a note; a note alone has no bar."""
    if not text:
        return None
    head, _, note = text.partition(" ")
    done, slash, total = head.partition("/")
    try:
        value, most = float(done), float(total)
    except ValueError:
        return {"value": None, "most": None, "note": text, "share": None}
    if not slash or not (0 < most < LARGEST and 0 <= value < LARGEST):  # a NaN is neither
        return {"value": None, "most": None, "note": text, "share": None}
    return {"value": min(value, most), "most": most, "note": note, "share": round(100 * min(value, most) / most)}


def _attempt(stage: Stage) -> dict[str, Any]:
    return {
        "number": stage.attempt,
        "ending": stage.ending,
        "state": {"lost": "late", "returned": "queued", "snoozed": "scheduled"}.get(stage.ending or "", stage.ending),
        "worker": stage.worker,
        "start": stage.start,
        "end": stage.end,
        "seconds": stage.seconds,
        "error": (stage.error or "").strip().partition("\n")[0],
        "blocks": blocks_of(stage.error or ""),
    }


def _result(job: JobPageFacts) -> dict[str, Any] | None:
    if job.state is not State.SUCCEEDED or job.problem:
        return None
    text = msgspec.json.format(msgspec.json.encode(job.result)).decode()
    return {"text": text[:LONGEST_RESULT], "left": max(0, len(text) - LONGEST_RESULT)}


def log_values(tail: Tail, level: str = "") -> dict[str, Any]:
    wanted = LEVELS.get(level)
    lines = [_line(line) for line in tail.lines if wanted is None or line.level in wanted]
    return {"lines": lines, "has_more": tail.has_more, "last_line": tail.lines[-1].number if tail.lines else 0}


def _line(line: LogLine) -> dict[str, Any]:
    tone = "error" if line.level in LEVELS["error"] else "warning" if line.level == "warning" else "info"
    return {"number": line.number, "at": datetime_of(line.at), "level": line.level, "tone": tone, "text": line.text}


def _change(visit: Visit, change: Change) -> dict[str, Any]:
    copy = change.after.get("copy") if change.verb == "copied" else None
    reason = change.after.get("reason")
    known = f"job.change_{change.verb.replace(' ', '_')}"
    return {
        "by": change.by,
        "at": change.at,
        "verb": visit.words.text(known) if visit.words.texts.has(known) else change.verb,
        "reason": reason if isinstance(reason, str) else "",
        "copy_id": copy if isinstance(copy, str) else None,
    }


def show_lines(visit: Visit) -> View:
    """The lines after a number, as a part of the page: the script asks for them while the job runs."""
    after = visit.query.get("after", "0")
    number = int(after) if after.isascii() and after.isdigit() and len(after) <= 15 else 0
    store, job_id = visit.app.open(), visit.path["job_id"]
    state = visit.app.jobs.read(job_id).state
    wanted = LEVELS.get(visit.query.get("level", ""))
    found = store.list_logs(job_id, after=number)
    lines = [_line(line) for line in found if wanted is None or line.level in wanted]
    values = {"lines": lines, "last_line": found[-1].number if found else number, "is_over": state.is_final}
    return View(template="log_lines.html", values=values)


def download_log(visit: Visit) -> Download:
    """The whole log as text, as the command line shows it."""
    job_id = visit.app.jobs.read(visit.path["job_id"]).id
    text, after = [], 0
    while lines := visit.app.jobs.logs(job_id, after=after):
        text += [f"{line.at.isoformat(timespec='milliseconds')} {line.level} {line.text}\n" for line in lines]
        after = lines[-1].number
    return Download(body="".join(text).encode("utf-8", "replace"), media="text/plain; charset=utf-8", name="log.txt")


def change_job(visit: Visit) -> GoTo:
    """Retry, cancel or delete one job, by the same operations as the API."""
    job_id, verb, jobs = visit.path["job_id"], visit.form.get("verb"), visit.app.jobs
    reason = visit.form.get("reason").strip()[:1_000]
    match verb:
        case "retry":
            jobs.retry(job_id, reason=reason, by=visit.by)
        case "cancel":
            jobs.cancel(job_id, reason=reason, by=visit.by)
        case "delete":
            jobs.delete(job_id, by=visit.by)
            return GoTo(path="/jobs", flash=Flash(key="deleted", values={"n": 1}))
        case _:
            return GoTo(path=f"/jobs/{job_id}")
    return GoTo(
        path=f"/jobs/{job_id}", flash=Flash(key={"retry": "retried", "cancel": "cancelled"}[verb], values={"n": 1})
    )


_JOB = "/jobs/{job_id}"

PAGES = (
    Page(path=_JOB, role="read", handle=show_job, params=JobPath),
    Page(method="POST", path=_JOB, role="operate", handle=change_job, params=JobPath),
    Page(path=f"{_JOB}/lines", role="read", handle=show_lines, params=JobPath),
    Page(path=f"{_JOB}/log.txt", role="read", handle=download_log, params=JobPath),
)
