"""Parking: a job whose document cannot be read is failed with the reason, and keeps what was found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.store.mongo.documents import document_of_job, document_of_new, readable_job, unreadable_job

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.job import Job
    from rota.store.mongo.space import Document
    from rota.store.mongo.steps import Step, Steps


class Parker:
    """Parks what was written by hand, so that the others go on."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def readable(self, documents: Iterable[Document], holder: str, now: int) -> list[Job]:
        """The jobs that these are; those that cannot be read are parked."""
        jobs: list[Job] = []
        for document in documents:
            try:
                jobs.append(readable_job(document))
            except msgspec.ValidationError as err:
                self._park(document, err, holder, now)
        return jobs

    def _park(self, document: Document, err: Exception, holder: str, now: int) -> None:
        job = unreadable_job({**document, "created_at": now}, err, holder=holder)
        parked = {**(document_of_job(job) if job.seq else document_of_new(job)), "found": document}
        del parked["_id"]  # which may be anything

        def write(step: Step) -> None:
            mine = {"_id": document["_id"], "state": document.get("state")}
            if step.space.jobs.replace_one(mine, parked, session=step.session).modified_count:
                step.counts.add(job.queue, job.state)
                step.counts.add_total(job.queue, job.state.value, 1)

        self._steps.run("park", write)
