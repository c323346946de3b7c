"""Answers what a document waits for, or why it did not run: a pure function of what a source knows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.model.why.job import first_line
from rota.model.why.time_words import counted, wall_words

if TYPE_CHECKING:
    from rota.documents.contract import DocumentFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVerdict:
    """The answer, and the next step."""

    queue: str
    document: DocumentFacts
    code: str  # of the cause: stays the same if the sentence is reworded
    sentence: str
    fix: str = ""


def judge(queue: str, document: DocumentFacts, now: int) -> DocumentVerdict:
    """Why a document is in its state."""
    code, sentence, fix = _answers(queue, document, now)
    return DocumentVerdict(queue=queue, document=document, code=code, sentence=sentence, fix=fix)


def _answers(queue: str, document: DocumentFacts, now: int) -> tuple[str, str, str]:
    match document.state:
        case "running":
            return _running(document)
        case "retrying":
            return _retrying(queue, document, now)
        case "due":
            since = _at(document.sleep_until)
            fix = f"If no process runs the queue, start one: rota documents run {queue}"
            return "due", f"It is due since {since} and waits for a free slot of a process that runs the queue.", fix
        case "waiting":
            return _waiting(document)
        case _:
            sentence = "It is done: it has no next time."
            return "done", sentence, "To run it again, write a due time into the document."


def _running(document: DocumentFacts) -> tuple[str, str, str]:
    holder = f" in {document.locked_by}" if document.locked_by else ""
    return (
        "running",
        f"It runs{holder}. Its lock ends at {_at(document.locked_until)} and is renewed while the handler runs.",
        "If that process has died, another one takes the document up when the lock ends.",
    )


def _retrying(queue: str, document: DocumentFacts, now: int) -> tuple[str, str, str]:
    error = first_line(document.error)  # the traceback follows it
    failed = f"It has failed {counted(document.failures, 'time')}, last at {_at(document.failed_at)}: {error}."
    is_due = (document.sleep_until or 0) <= now
    again = "It is due again now." if is_due else f"Next try: {_at(document.sleep_until)}."
    if error.startswith("BadInterval"):
        return "bad-interval", f"{failed} {again}", "Correct the document's interval. It runs at its next try."
    if is_due:
        start = f"If no process runs the queue, start one: rota documents run {queue}"
        return "failed", f"{failed} {again}", f"Mend the cause. {start}"
    return "failed", f"{failed} {again}", "Mend the cause. To try earlier, write an earlier due time into the document."


def _waiting(document: DocumentFacts) -> tuple[str, str, str]:
    recurs = f" It recurs: {document.interval}." if document.interval else ""
    return "waiting", f"Its time has not come: it sleeps until {_at(document.sleep_until)}.{recurs}", ""


def _at(instant: int | None) -> str:
    return "an unknown time" if instant is None else wall_words(instant, "UTC")
