"""What an older schema of SQLite has is brought up to date."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import sqlite3

from rota.model.job import NewJob, accept
from rota.store.sqlite import SqliteStore
from rota.store.sqlite.schema import scripts_after
from rota.testing.store_suite.builders import MINUTE, T0
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add_job, claim, ids

FIELDS = ("id", "task", "payload", "queue", "priority", "created_at", "run_at", "generation", "key_until")
REST = "attempts, failures, deaths, lease_no, past"


def test_slots_of_schedules_are_no_keys_any_more(tmp_path):
    """In the first version a schedule's slot was a key, and a job made ahead waited for that."""
    path = tmp_path / "rota.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(scripts_after(0, "rota")[0])
        connection.execute("CREATE TABLE rota_meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        connection.execute("INSERT INTO rota_meta VALUES ('version', '1')")
        put(connection, "live", state="queued", fire_at=T0, key="schedule:tick")
        put(connection, "soon", state="scheduled", fire_at=T0 + MINUTE, waits_for="schedule:tick")
        connection.execute("INSERT INTO rota_count VALUES ('default', 'queued', 1), ('default', 'scheduled', 1)")
    connection.close()
    with opened(lambda: SqliteStore(path)) as store:
        live, soon = store.get_jobs(["live", "soon"])
        assert (live.slot, live.key, soon.ahead, soon.waits_for) == ("tick", None, "", None)
        assert add_job(store, key="schedule:tick", queue="other") not in {"live", "soon"}
        assert ids(claim(store, 9, now=T0 + MINUTE)) == ["live"]
        check_store(store)


def put(connection: sqlite3.Connection, job_id: str, **said: object) -> None:
    job = accept(NewJob(id=job_id, task="t", payload=b"[]"), T0)
    known = {name: getattr(job, name) for name in FIELDS} | {"schedule_id": "tick"} | said
    columns = f"{', '.join(known)}, {REST}"
    marks = ", ".join(["?"] * len(known))
    connection.execute(f"INSERT INTO rota_job ({columns}) VALUES ({marks}, 0, 0, 0, 0, X'')", list(known.values()))
