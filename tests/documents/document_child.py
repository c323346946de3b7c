"""A process with a queue on a source that a URL names: `document_child.py JSON`. It writes what it did into a file."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from rota.documents import DocumentQueue, Fields
from rota.documents.sources.by_url import Wanted, open_source


class Record:
    """Lines of a file that several processes write: each is written whole, or not at all."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, *words: object) -> None:
        os.write(self._file, f"{json.dumps([str(word) for word in words])}\n".encode())

    def processes(self) -> int:
        """How many processes have run a document."""
        lines = map(json.loads, Path(self._path).read_text().splitlines())
        return len({line[-1] for line in lines if line[0] == "ran"})


def main(url: str, collection: str, kind: dict, fields: str, how: str, record: str, lock_for: str) -> None:
    chosen = Fields() if fields == "all" else Fields.four()
    source = open_source(
        Wanted(url=url, collection=collection, fields=chosen, condition=None, kind=kind, folder=Path.cwd())
    )
    runs = Record(record)

    def work(document: dict) -> None:
        runs.add("ran", document["_id"], document["sleepUntil"], os.getpid())  # the time as it was before the lock
        if how == "hang":
            threading.Event().wait()
        while how == "work" and runs.processes() < 2:  # one fast process must not do it all
            time.sleep(0.01)
        while how == "late" and not Path(f"{record}.release").exists():
            time.sleep(0.01)

    queue = DocumentQueue(
        source, work, on_start=lambda: runs.add("started", os.getpid()), concurrency=4, lock_for=lock_for
    )
    queue.on("document.locked_out", lambda event: runs.add("locked out", event.data["document_id"]))
    queue.run()  # until SIGTERM


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
