"""Fills the facts about queues of documents, for the CLI, HTTP and the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.documents.contract import shown
from rota.inspector.facts.document import (
    DocumentFindingFacts,
    DocumentQueueFacts,
    DocumentWhyFacts,
    QueuedDocumentFacts,
)
from rota.inspector.facts.values import filled
from rota.model.micros import optional_datetime

if TYPE_CHECKING:
    from rota.documents.catalogue import QueueSummary
    from rota.documents.contract import DocumentFacts, Finding
    from rota.documents.why import DocumentVerdict


def queue_facts(summary: QueueSummary) -> DocumentQueueFacts:
    return filled(DocumentQueueFacts, summary)


def document_facts(one: DocumentFacts) -> QueuedDocumentFacts:
    return filled(
        QueuedDocumentFacts,
        one,
        id=shown(one.id),
        interval=None if one.interval is None else shown(one.interval),
        locked_by=shown(one.locked_by),
        error=shown(one.error),
        sleep_until=optional_datetime(one.sleep_until),
        nominal=optional_datetime(one.nominal),
        locked_until=optional_datetime(one.locked_until),
        failed_at=optional_datetime(one.failed_at),
    )


def finding_facts(queue: str, finding: Finding) -> DocumentFindingFacts:
    message, command = shown(finding.message), shown(finding.command)
    return filled(DocumentFindingFacts, finding, queue=queue, message=message, command=command)


def why_facts(verdict: DocumentVerdict) -> DocumentWhyFacts:
    document = verdict.document
    return filled(
        DocumentWhyFacts,
        verdict,
        id=shown(document.id),
        state=document.state,
        sentence=shown(verdict.sentence),
        error=shown(document.error),
        due_at=optional_datetime(document.sleep_until),
    )
