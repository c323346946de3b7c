"""What a queue and its source may be given: a type for the documents, options, and the paths of fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - its name is resolved when documents are converted

import msgspec
import pytest
from queue_stage import a_queue, ago, document, run_until

from rota.documents import DocumentQueue, Fields, MemorySource
from rota.errors import BadOption


@dataclass
class Order:
    id: int
    total: float = 0.0
    sleepUntil: datetime | None = None  # noqa: N815 - the field's own name


class Struct(msgspec.Struct):
    _id: int
    total: float = 0.0


class Model:
    """As a model of pydantic takes a document."""

    @classmethod
    def model_validate(cls, found):
        made = cls()
        made.id, made.total = found["id"], found["total"]
        return made


@pytest.mark.parametrize("wanted", [Order, Struct, Model])
def test_documents_have_the_type_that_was_named(wanted):
    seen = []
    queue = a_queue([document(7, total=9.5)], seen.append, type=wanted)
    run_until(queue, lambda: queue.is_idle)
    (one,) = seen
    assert isinstance(one, wanted)
    assert one.total == 9.5
    assert getattr(one, "id", None) == 7 or one._id == 7


def test_a_document_that_does_not_fit_its_type_is_an_error_on_that_document():
    errors = []
    queue = a_queue([document(total="much")], type=Order, on_error=lambda error: errors.append(str(error)))
    run_until(queue, lambda: errors)
    assert "float" in errors[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"concurrency": True}, "concurrency=True"),
        ({"lock_for": "0s"}, "between 1s"),
        ({"tz": "Mars/Olympus"}, "Mars/Olympus"),
        ({"onIdle": print}, "did you mean on_idle"),
        ({"lockDuration": 5}, "did you mean lock_for"),
        ({"collection": 5}, "give it to the source"),
        ({"on_idle": "log"}, "must be a function"),
        ({"on_idle": divmod}, "on_idle is called with up to 1"),
        ({"type": 5}, "type=5"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_words(options, words):
    with pytest.raises(Exception, match=words) as caught:
        a_queue([], **options)
    assert isinstance(caught.value, ValueError)


def test_a_source_is_wanted():
    with pytest.raises(BadOption, match="is not a source"):
        DocumentQueue([], print)


def test_fields_may_lie_deep_in_the_document():
    fields = Fields(
        sleep_until="job.at.sleep", interval="job.every", repeat_until="job.end", auto_remove="job.gone",
        locked_until="job.lock.until", locked_by="job.lock.by",
    )  # fmt: skip
    documents = [
        {"_id": 1, "job": {"at": {"sleep": ago(5)}, "every": "@yearly"}},
        {"_id": 2, "job": {"at": {"sleep": ago(4)}, "gone": True}},
        {"_id": 3, "job": {"at": {"sleep": ago(3)}, "every": "@yearly", "end": ago(1)}},
        {"_id": 4, "job": [{"at": {"sleep": ago(2)}}]},
    ]
    seen = []
    source = MemorySource(documents, fields=fields)
    queue = a_queue([], lambda one: seen.append(one["_id"]), source=source)
    run_until(queue, lambda: queue.is_idle)
    assert seen == [1, 2]
    assert [one["_id"] for one in documents] == [1, 3, 4]
    assert documents[0]["job"]["at"]["sleep"] > ago(0)
    assert documents[1]["job"]["at"]["sleep"] is None
    assert [finding.kind for finding in source.check()] == ["path-through-list"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sleep_until": "jobs.0.at"}, "leads through a list"),
        ({"sleep_until": ""}, "not a path"),
        ({"sleep_until": "a..b"}, "not a path"),
        ({"sleep_until": "$at"}, "'\\$'"),
        ({"sleep_until": "job", "interval": "job.every"}, "share the path"),
        ({"locked_by": None}, "belong together"),
    ],
)
def test_paths_that_make_no_sense_are_refused(fields, words):
    with pytest.raises(BadOption, match=words):
        Fields(**fields)
