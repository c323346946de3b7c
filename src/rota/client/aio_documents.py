"""Defines app.aio.documents, which is loaded when it is first used, as `app.documents` is."""

from __future__ import annotations

from rota.client.awaited import Awaited, Shell
from rota.documents.client import Documents


class AsyncDocuments(Shell):
    """app.aio.documents"""

    queues = Awaited(Documents.queues)
    list = Awaited(Documents.list)
    get = Awaited(Documents.get)
    why = Awaited(Documents.why)
    check = Awaited(Documents.check)
