"""The memory source, by the suite of all sources of documents."""

from __future__ import annotations

from copy import deepcopy

import pytest

from rota.documents import Fields, MemorySource
from rota.testing.document_suite import *  # noqa: F403
from rota.testing.document_suite.stage import Stage


class MemoryStage(Stage):
    """Dictionaries in a list."""

    def __init__(self):
        self.documents = []
        self.made = []

    def make_source(self, *, has_lock, only_kind=None):
        fields = Fields() if has_lock else Fields.four()
        condition = None if only_kind is None else lambda one: one["kind"] == only_kind
        source = MemorySource(self.documents, fields=fields, condition=condition)
        if self.made:  # as on a server: all see the same locks and side records
            source.share(self.made[0])
        self.made.append(source)
        return source

    def insert(self, *documents):
        self.documents.extend(deepcopy(documents))

    def read(self, wanted):
        found = self._find(wanted)
        return None if found is None else {name: value for name, value in found.items() if value is not None}

    def change(self, wanted, **fields):
        self._find(wanted).update(fields)

    def delete(self, wanted):
        self.documents.remove(self._find(wanted))

    def _find(self, wanted):
        return next((one for one in self.documents if one["_id"] == wanted), None)


@pytest.fixture
def stage():
    return MemoryStage()
