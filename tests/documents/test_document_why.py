"""What `why` tells about a document: its advice fits every source, whatever the fields are called."""

from __future__ import annotations

import pytest

from rota.documents.contract import DocumentFacts
from rota.documents.why import judge

NOW = 1_000_000_000


def failed(sleep_until: int, error: str = "ValueError: no address") -> DocumentFacts:
    return DocumentFacts(
        id=7, state="retrying", sleep_until=sleep_until, nominal=0, failures=2, error=error, failed_at=0
    )


@pytest.mark.parametrize(
    "document", [failed(NOW + 1), DocumentFacts(id=7, state="done", sleep_until=None, nominal=None)]
)
def test_the_advice_names_no_field_because_the_owner_may_have_renamed_it(document):
    fix = judge("rows", document, NOW).fix
    assert "due time into the document" in fix
    assert "sleepUntil" not in fix


def test_a_failed_document_that_is_due_is_not_told_to_come_earlier_but_to_be_run():
    verdict = judge("rows", failed(NOW), NOW)
    assert "It is due again now." in verdict.sentence
    assert verdict.fix == "Mend the cause. If no process runs the queue, start one: rota documents run rows"


def test_an_error_of_several_lines_is_told_by_its_first():
    error = "ValidationError: 1 validation error for Order\nTraceback …\nFor further information visit a page"
    sentence = judge("rows", failed(NOW + 1, error), NOW).sentence
    assert "ValidationError: 1 validation error for Order." in sentence
    assert "further information" not in sentence
