"""Shows the jobs: tabs by state, a search, and actions on those that are ticked or on all that match."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from msgspec import structs

from rota.app import internals
from rota.errors import BadOption
from rota.inspector.calls import call
from rota.inspector.facts.failure import failed_jobs
from rota.inspector.facts.job import job_facts
from rota.inspector.facts.queue import jobs_by_state
from rota.inspector.job_counts import count_by_state
from rota.inspector.search import Found, Search, search_from, search_jobs, without_state
from rota.model.jobs.job import State
from rota.model.micros import datetime_of
from rota.operations.bulk import CANCEL, DELETE, RETRY, carry_out, matching_ids
from rota.store.contract import MOST_COUNTED, JobFilter
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.said_words import say_error
from rota.web.types import JOB_ID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rota.inspector.facts.job import JobFacts
    from rota.operations.bulk import Verb

_ID = re.compile(JOB_ID)
SHOWN = 50
MOST_AT_ONCE = 10_000  # jobs that one form changes
LONGEST_CALL = 300  # characters of a call that a list shows
TABS = ("running", "queued", "scheduled", "held", "failed", "succeeded", "cancelled")
VERBS = {verb.name: verb for verb in (RETRY, CANCEL, DELETE)}


def show_jobs(visit: Visit) -> View:
    store, search = visit.app.open(), visit.query.get("q", "").strip()[:1_000]
    cursor = visit.query.get("cursor", "")
    cursor = cursor if cursor.isascii() and cursor.isdigit() and len(cursor) <= 18 else ""
    inner, now, problem, asked = internals(visit.app), store.now(), "", Search(where=JobFilter())
    page, meant = Found(items=[]), ""
    try:
        asked, meant = read_search(visit, search, now)
        named = inner.registry.parameters_of
        page = search_jobs(store, asked, inner.redaction, named, cursor=cursor or None, limit=SHOWN)
    except BadOption as err:
        problem = say_error(visit.words, err)
    where = asked.where
    facts = [job_facts(job, inner.redaction) for job in page.items]
    queues = store.list_queues()
    values = list_values(visit, search, where, facts, count_by_state(store, where, queues), datetime_of(now))
    values["has_jobs"] = any(jobs_by_state(queues).values())
    older = visit.url("/jobs", q=search, cursor=page.cursor) if page.cursor else ""
    newest = visit.url("/jobs", q=search) if cursor else ""
    values |= {"meant": meant, "suggested": suggested(visit, search) if problem else []}
    values |= {"problem": problem, "older": older, "newest": newest, "page": page, "is_by_index": asked.is_by_index}
    return View(template="jobs.html", values=values)


def read_search(visit: Visit, text: str, now: int) -> tuple[Search, str]:
    """The search, and the task that a bare name in it stands for: the only task of the catalogue that ends with it."""
    asked = search_from(text, now)
    name = asked.where.task
    if not name or "." in name or "*" in name:
        return asked, ""
    endings = [known for known in internals(visit.app).registry.names() if known.endswith(f".{name}")]
    if len(endings) != 1 or visit.app.open().list_jobs(JobFilter(task=name), limit=1).items:
        return asked, ""
    return structs.replace(asked, where=structs.replace(asked.where, task=endings[0])), endings[0]


def suggested(visit: Visit, search: str) -> list[tuple[str, str]]:
    """What a word without a field may stand for, each with its address."""
    try:
        terms = shlex.split(search)
    except ValueError:
        return []
    bare = next((term for term in terms if ":" not in term), None)
    if bare is None:
        return []
    found = [[f"{head}:{term}" if term == bare else term for term in terms] for head in ("args.0", "key")]
    return [(text := shlex.join(one), visit.url("/jobs", q=text)) for one in found]


def list_values(
    visit: Visit, search: str, where: JobFilter, jobs: list[JobFacts], counts: Mapping[str, int], now: datetime
) -> dict[str, Any]:
    chosen = where.states[0].value if len(where.states) == 1 else "" if not where.states else None
    rest = without_state(search)
    tabs = [_tab(visit, "", rest, sum(counts.values()), chosen)]
    tabs += [_tab(visit, state, rest, counts[state], chosen) for state in TABS]
    total = sum(counts[state] for state in where.states or counts)
    return {
        "search": search,
        "tabs": tabs,
        "rows": [row(job, now) for job in jobs],
        "total": total,
        "is_more": any(counts[state] >= MOST_COUNTED for state in where.states or counts) and len(jobs) >= SHOWN,
        "verbs": [name for name, verb in VERBS.items() if not where.states or verb.states & set(where.states)],
    }


def _tab(visit: Visit, state: str, rest: str, count: int, chosen: str | None) -> dict[str, Any]:
    search = f"state:{state} {rest}".strip() if state else rest
    return {
        "state": state,
        "url": visit.url("/jobs", q=search),
        "count": count,
        "is_more": count == MOST_COUNTED,
        "is_current": chosen == state,
    }


def row(job: JobFacts, now: datetime) -> dict[str, Any]:
    """A job as a list shows it: what is called, and what one wants to know of it in its state."""
    kind, _, rest = (job.problem or job.error or "").partition("\n")[0].partition(":")
    return {
        "id": job.id,
        "state": job.state.value,
        "call": _short(call(job.task, job.args, job.kwargs)),
        "kind": kind if job.state is State.FAILED or job.problem else "",
        "rest": rest.strip() if job.state is State.FAILED or job.problem else "",
        "progress": job.progress if job.state is State.RUNNING else "",
        "queue": job.queue,
        "attempts": job.attempts,
        "waited": _waited(job, now),
        "ran": _ran(job, now),
        "at": job.finished_at or job.started_at or job.run_at,
        "at_word": "due" if job.state is State.SCHEDULED else "",
        "schedule": job.schedule_id,
    }


def _waited(job: JobFacts, now: datetime) -> float | None:
    """How long it was ready before its last attempt began, or has been until now."""
    if job.ready_at is None:
        return None
    end = job.started_at or job.finished_at or now
    return max(0.0, (end - job.ready_at).total_seconds())


def _ran(job: JobFacts, now: datetime) -> float | None:
    if job.started_at is None:
        return None
    end = job.finished_at or (now if job.state is State.RUNNING else None)
    return max(0.0, (end - job.started_at).total_seconds()) if end else None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CALL else f"{text[:LONGEST_CALL]}…"


def change_jobs(visit: Visit) -> View | GoTo:
    """Retry, cancel or delete the ticked jobs or all that match. What deletes, or touches all, asks first."""
    form = visit.form
    verb, search, scope = VERBS.get(form.get("verb")), form.get("q"), form.get("scope")
    back = "/" if scope == "cause" else visit.url("/jobs", q=search).removeprefix(visit.mounted)
    if verb is None:
        return GoTo(path=back)
    until = _until(visit, form.get("until"))
    ids = _chosen(visit, verb, scope, search, until)
    if not ids:
        key = "none_match" if scope in {"all", "cause"} else "none_ticked"
        return GoTo(path=back, flash=Flash(key=key, tone="warn"))
    if "sure" not in form and (scope in {"all", "cause"} or verb is DELETE):
        return _ask(visit, verb, ids, scope, search, until)
    reason = form.get("reason").strip()
    tally = carry_out(visit.app.open(), verb, ids[:MOST_AT_ONCE], reason, visit.by, lambda _: None)
    left = tally.left + max(0, len(ids) - MOST_AT_ONCE, _asked(form.get("asked")) - len(ids))
    key = f"{verb.done}_some" if left else verb.done
    return GoTo(
        path=back, flash=Flash(key=key, values={"n": tally.changed, "left": left}, tone="warn" if left else "ok")
    )


def _asked(text: str) -> int:
    """How many jobs the question named: those that somebody else has changed meanwhile are left as they are."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0


def _until(visit: Visit, text: str) -> int:
    """Jobs that are made after the question was asked are not meant."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else visit.app.open().now()


def _chosen(visit: Visit, verb: Verb, scope: str, search: str, until: int) -> list[str]:
    """The ids of jobs that are meant; one more than are changed at once says that there are more."""
    store = visit.app.open()
    if scope == "cause":
        return failed_jobs(store, visit.form.get("cause"), until)
    if scope != "all":
        ticked = list(dict.fromkeys(filter(_ID.fullmatch, visit.form.all("job"))))[:MOST_AT_ONCE]
        return [job.id for job in store.get_jobs(ticked)] if ticked else []
    inner = internals(visit.app)
    asked, _ = read_search(visit, search, store.now())
    named = inner.registry.parameters_of
    return matching_ids(store, verb, asked, inner.redaction, named, until=until, most=MOST_AT_ONCE + 1)


def _ask(visit: Visit, verb: Verb, ids: list[str], scope: str, search: str, until: int) -> View:
    is_more, form_cause = len(ids) > MOST_AT_ONCE, visit.form.get("cause")
    values = {
        "verb": verb.name,
        "n": min(len(ids), MOST_AT_ONCE),
        "is_more": is_more,
        "scope": scope,
        "search": search,
        "ids": ids if scope == "ticked" else [],
        "cause": form_cause,
        "until": until,
        "first": _calls_of(visit, ids[:5]),
    }
    return View(template="confirm_jobs.html", values=values)


def _calls_of(visit: Visit, ids: list[str]) -> list[str]:
    """The calls of jobs; one that was deleted meanwhile has none."""
    redaction = internals(visit.app).redaction
    facts = [job_facts(job, redaction) for job in visit.app.open().get_jobs(ids)]
    return [_short(call(one.task, one.args, one.kwargs)) for one in facts]


PAGES = (
    Page(path="/jobs", role="read", handle=show_jobs),
    Page(method="POST", path="/jobs", role="operate", handle=change_jobs),
)
