"""Lists the queues of documents of one app: those that rota.yaml declares, and those that code made with `app=`.

The CLI, HTTP and the pages read them here. Reading needs no handler, so a process without the handlers' code can read.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rota.documents.contract import STATES, Counted, DocumentFacts, Finding, Source
from rota.documents.declared import check_queue, make_queue, make_source, where
from rota.documents.sources.memory import MemorySource
from rota.documents.why import DocumentVerdict, judge
from rota.errors import BadOption, BadSettings, DocumentNotFound, DocumentQueueNotFound, RotaError

if TYPE_CHECKING:
    from rota.config.declared import FileDocuments
    from rota.documents.host import AppBeside, Host
    from rota.documents.queue import DocumentQueue

MOST_COUNTED = 1_000  # documents of each state that a summary counts


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSummary:
    """A queue with its documents by state, as far as they were counted."""

    name: str
    source: str
    handler: str
    origin: str  # rota.yaml:3, or code
    states: dict[str, int]
    more: list[str]  # states with more documents than were counted
    is_whole: bool  # there is no such state
    error: str = ""  # why the source could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueue:
    """A queue that can be read."""

    name: str
    where: str
    handler: str
    origin: str
    source: Source[Any]

    def summary(self) -> QueueSummary:
        """Its documents counted by state. A source that cannot be read is a fact, not an error."""
        error, counts = "", dict.fromkeys(STATES, Counted(0, is_exact=False))
        try:
            counts = self.source.counts(MOST_COUNTED)
        except RotaError as err:
            error = str(err)
        return QueueSummary(
            name=self.name,
            source=self.where,
            handler=self.handler,
            origin=self.origin,
            states={state: counts[state].number for state in STATES},
            more=[] if error else [state for state in STATES if not counts[state].is_exact],
            is_whole=all(counts[state].is_exact for state in STATES),
            error=error,
        )

    def documents(self, limit: int, state: str | None = None) -> list[DocumentFacts]:
        return self.source.browse(limit, state)

    def check(self) -> list[Finding]:
        """What is wrong with the source. A server that does not answer is a finding, not an error."""
        try:
            return self.source.check()
        except RotaError as err:
            return [unreachable(self.where, err)]

    def find(self, wanted: Any) -> DocumentFacts:
        """The document with this id, or whose id is written like this text."""
        found = self.source.find(wanted)
        if found is None:
            raise DocumentNotFound(
                f"no document with the id {wanted!r} carries a schedule in {self.name}; a document without a time is "
                "ignored, and one that does not fit the condition too"
            )
        return found

    def why(self, wanted: Any) -> DocumentVerdict:
        """Say what a document waits for, and what to do."""
        return judge(self.name, self.find(wanted), self.source.now())


class Catalogue:
    """The queues of one app. Sources are made when they are first read, and kept."""

    def __init__(self, host: Host, app: AppBeside) -> None:
        self._host = host
        self._app = app
        self._sources: dict[str, Source[Any]] = {}
        self._making = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The names of all queues, without making a source."""
        return sorted({said.name for said in self.declared()} | self._host.document_queues.keys())

    def all(self) -> list[KnownQueue]:
        """All queues, by name."""
        return [self.get(name) for name in self.names]

    def get(self, name: str) -> KnownQueue:
        """The queue of that name; DocumentQueueNotFound if there is none."""
        said = self._said(name)
        if said is not None:
            return self._of_file(said)
        return self._of_code(self._made(name))

    def queue(self, name: str) -> DocumentQueue:
        """The queue of that name, to be started. If rota.yaml declares it, each call makes a new one."""
        said = self._said(name)
        if said is not None:
            return make_queue(self._host, self._app, said, self._source_of(said))
        return self._made(name)

    def summaries(self) -> list[QueueSummary]:
        """All queues with their documents by state. One whose source cannot be made has the reason."""
        return [self.summary(name) for name in self.names]

    def summary(self, name: str) -> QueueSummary:
        """A queue with its documents by state, or with the reason why its source cannot be made."""
        try:
            return self.get(name).summary()
        except BadSettings as err:
            said = self._said(name)
            if said is None:
                raise
            return QueueSummary(
                name=name,
                source=where(said),
                handler=said.handler,
                origin=said.place,
                states=dict.fromkeys(STATES, 0),
                more=[],
                is_whole=False,
                error=str(err),
            )

    def check(self, name: str, *, handler: bool = True) -> list[Finding]:
        """Report what keeps a queue from running: what cannot be imported or reached, then what its source finds.

        Without `handler`, the code of the handler is not loaded: another process may have it.
        """
        mistakes = self.mistakes(name) if handler else []
        try:
            return [*mistakes, *self.get(name).check()]
        except BadSettings as err:
            return mistakes or [_no_source(err)]

    def mistakes(self, name: str) -> list[Finding]:
        """What cannot be loaded here of a queue: its source and its handler. No server is asked."""
        said = self._said(name)
        if said is None:
            self._made(name)
            return []
        found = []
        source: Source[Any] = MemorySource([])  # in its place, so that the handler is checked too
        try:
            source = self._source_of(said)
        except BadSettings as err:
            found.append(_no_source(err))
        try:
            check_queue(self._host, said, source)
        except BadSettings as err:
            found.append(Finding(kind="no-handler", message=str(err), command=_MEND_HANDLER, is_error=True))
        return found

    def declared(self) -> tuple[FileDocuments, ...]:
        return self._host.resolved.declared.documents

    def close(self) -> None:
        """Release the sources that were made here."""
        while self._sources:
            self._sources.popitem()[1].close()

    def _said(self, name: str) -> FileDocuments | None:
        return next((said for said in self.declared() if said.name == name), None)

    def _made(self, name: str) -> DocumentQueue:
        made: DocumentQueue | None = self._host.document_queues.get(name)
        if made is None:
            known = ", ".join(self.names) or "none; `documents:` in rota.yaml declares them"
            raise DocumentQueueNotFound(f"no queue of documents is named {name!r}; there are {known}")
        return made

    def _source_of(self, said: FileDocuments) -> Source[Any]:
        with self._making:
            if said.name not in self._sources:
                self._sources[said.name] = make_source(self._host, said)
            return self._sources[said.name]

    def _of_file(self, said: FileDocuments) -> KnownQueue:
        source = self._source_of(said)
        return KnownQueue(name=said.name, where=where(said), handler=said.handler, origin=said.place, source=source)

    def _of_code(self, queue: DocumentQueue) -> KnownQueue:
        return KnownQueue(
            name=queue.name, where=queue.source.name, handler=queue.handler_name, origin="code", source=queue.source
        )


_MEND_HANDLER = "name a function as module:name, or a task of the app; then run `rota documents check` again"
_MEND_SOURCE = "correct it, or install what it needs; then run `rota documents check` again"


def _no_source(err: BadSettings) -> Finding:
    return Finding(kind="no-source", message=str(err), command=_MEND_SOURCE, is_error=True)


def unreachable(place: str, err: RotaError) -> Finding:
    """A source that cannot be read now."""
    return Finding(
        kind="unreachable",
        message=f"{place} cannot be read: {err}",
        command="start the server, or correct `source` in rota.yaml; then run `rota documents check` again",
        is_error=True,
    )


def check_state(state: str | None) -> str | None:
    """Refuse a state that no document has."""
    if state is not None and state not in STATES:
        raise BadOption(f"state={state!r} is not one of {', '.join(STATES)}")
    return state
