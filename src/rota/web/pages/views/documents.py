"""Shows queues of documents: the number of documents in each state, their problems, and why documents failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.documents.contract import STATES
from rota.documents.facts import finding_facts, queue_facts, why_facts
from rota.documents.why import judge
from rota.errors import RotaError
from rota.web.pages.page import Page, View, Visit

if TYPE_CHECKING:
    from rota.documents.catalogue import Catalogue, KnownQueue

MOST_QUEUES = 50  # each is read from its own server
MOST_FAILED = 20  # documents of a queue that are shown with their errors
MOST_FINDINGS = 20


def show_documents(visit: Visit) -> View:
    known = visit.app.documents.catalogue
    rows = [_row(known, name) for name in known.names[:MOST_QUEUES]]
    values = {
        "queues": rows,
        "total": len(known.names),
        "states": STATES,
        "trouble": sum(one["trouble"] for one in rows),
    }
    return View(template="documents.html", values=values)


def _row(known: Catalogue, name: str) -> dict[str, Any]:
    facts = queue_facts(known.summary(name))
    findings, failed = ([], []) if facts.error else _troubles(known.get(name))
    return {
        "facts": facts,
        "findings": findings,
        "failed": failed,
        "trouble": bool(facts.error or failed or any(finding.is_error for finding in findings)),
    }


def _troubles(queue: KnownQueue) -> tuple[list[Any], list[Any]]:
    """What a check finds, and the documents that failed, each with why."""
    try:
        found = [finding_facts(queue.name, finding) for finding in queue.check()[:MOST_FINDINGS]]
        now = queue.source.now()
        failed = [why_facts(judge(queue.name, one, now)) for one in queue.documents(MOST_FAILED, "retrying")]
    except RotaError:  # the server went away between two questions; the next look says so
        return [], []
    return found, failed


PAGES = (Page(path="/documents", role="read", handle=show_documents),)
