"""Defines `app.documents`: the queues of documents of an app, with the verbs that the CLI and HTTP have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.documents.catalogue import Catalogue, check_state
from rota.documents.facts import document_facts, finding_facts, queue_facts, why_facts
from rota.inspector.facts.document import (
    DocumentFindingFacts,
    DocumentQueueFacts,
    DocumentWhyFacts,
    QueuedDocumentFacts,
)
from rota.store.contract.values import check_limit

if TYPE_CHECKING:
    from rota.documents.host import Host
    from rota.documents.queue import DocumentQueue
    from rota.engine.events import Events

QueueList = list[DocumentQueueFacts]  # the class below has a method named list
DocumentList = list[QueuedDocumentFacts]
FindingList = list[DocumentFindingFacts]


class Documents:
    """Queues that `documents:` in rota.yaml declares, and those that code made with `app=`.

    Reading needs the source of a queue, and not its handler.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.catalogue = Catalogue(host, self)

    def queues(self) -> QueueList:
        """All queues, by name, with their documents by state."""
        return [queue_facts(one) for one in self.catalogue.summaries()]

    def list(self, queue: str, *, state: str | None = None, limit: int = 50) -> DocumentList:
        """Documents of a queue, oldest time first; of one state if it is named."""
        found = self.catalogue.get(queue).documents(check_limit(limit), check_state(state))
        return [document_facts(one) for one in found]

    def get(self, queue: str, document_id: Any) -> QueuedDocumentFacts:
        """One document: its state, its times and its last error."""
        return document_facts(self.catalogue.get(queue).find(document_id))

    def why(self, queue: str, document_id: Any) -> DocumentWhyFacts:
        """What a document waits for, or why it did not run, and what to do."""
        return why_facts(self.catalogue.get(queue).why(document_id))

    def check(self, queue: str, *, handler: bool = True) -> FindingList:
        """What keeps documents of a queue from running, or makes it slow, and what mends it.

        Also what cannot be imported or reached. `handler=False` leaves the handler out: only the processes that run
        the queue need its code.
        """
        return [finding_facts(queue, finding) for finding in self.catalogue.check(queue, handler=handler)]

    # What other parts of Rota call.

    @property
    def documents(self) -> Documents:
        """Itself: a queue takes an app, and asks it for this."""
        return self

    @property
    def events(self) -> Events:
        return self._host.events

    def add(self, queue: DocumentQueue) -> None:
        """Show a queue that code made on the pages and in commands, and start it with the app's node."""
        self._host.document_queues[queue.name] = queue

    def close(self) -> None:
        self.catalogue.close()
