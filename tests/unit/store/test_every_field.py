"""Every field of a job passes through the suite's records, so that no store can lose one.

The suite compares the furnished jobs of each store with those of the memory store. A field that is added to `Job` fails
here until a furnished job sets it, and then in every store that does not keep it.
"""

from __future__ import annotations

import msgspec

from rota.model.jobs.job import Job
from rota.store.memory import MemoryStore
from rota.testing.store_suite.furnished import dumped, furnish


def test_every_field_is_set_in_one_of_the_furnished_jobs():
    store = MemoryStore()
    furnish(store)
    jobs = dumped(store, "jobs")
    defaults = {field.name: field.default for field in msgspec.structs.fields(Job) if not field.required}
    assert defaults
    assert not [name for name, default in defaults.items() if all(getattr(job, name) == default for job in jobs)]
