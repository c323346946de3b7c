"""Every field of a job and of a change passes through the suite, so that no store can lose one.

The suite compares the furnished jobs of each store with those of the memory store, and what each outcome leaves with
what the model says. A field that is added to `Job` or to `Change` fails here until the suite sets it, and then in every
store that does not keep it.
"""

from __future__ import annotations

import msgspec

from rota.model.jobs.job import Job
from rota.model.jobs.settle import Change
from rota.store.memory import MemoryStore
from rota.testing.store_suite.furnished import dumped, furnish
from rota.testing.store_suite.settling import OUTCOMES, change_of_scheduled_job

NOT_OF_A_JOB = {"job", "is_removal", "ended_at"}  # the job itself, and two facts that no job keeps


def test_every_field_is_set_in_one_of_the_furnished_jobs():
    store = MemoryStore()
    furnish(store)
    jobs = dumped(store, "jobs")
    defaults = {field.name: field.default for field in msgspec.structs.fields(Job) if not field.required}
    assert defaults
    assert not [name for name, default in defaults.items() if all(getattr(job, name) == default for job in jobs)]


def test_every_field_of_a_change_is_set_by_one_of_the_outcomes():
    changes = [change_of_scheduled_job(MemoryStore(), outcome) for outcome in OUTCOMES]
    names = [field.name for field in msgspec.structs.fields(Change) if field.name not in NOT_OF_A_JOB]
    assert names
    assert not [name for name in names if all(getattr(one, name) == getattr(one.job, name) for one in changes)]
