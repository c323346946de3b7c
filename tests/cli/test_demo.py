"""demo as a real process: it shows each kind of job, and ends as it is told to."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from rota.app import internals
from rota.cli.demo_app import make_app


def test_the_demo_shows_each_kind_of_job_and_ctrl_c_drains_and_ends_with_0(started):
    process = started("demo", env={"ROTA_STORE": "sqlite:///real.db"})
    process.wait_for("│           export()  part 1 of 4 is written")
    process.wait_for("digest()")
    retried = process.wait_for("s: TimeoutError: no answer")
    call = re.search(r"↻ +[\d.]+ m?s  (charge\(\d+, \d+\))", retried)[1]
    process.signal(signal.SIGINT)
    assert process.end() == 0
    said = process.stderr
    assert "tasks  charge, checkout, digest, export, photos, rates, receipt, resize" in said
    assert re.search(r"checkout +Every 2 seconds +next 20", said)
    assert re.search(rf"^\d\d:\d\d:\d\d ↻ +\d+ ms  {re.escape(call)}  ", said, re.MULTILINE)
    assert "SIGINT: " in said
    assert "part 4 of 4" in said  # the drain waited for it
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert process.stdout == ""
    assert max(len(line) for line in process.lines) <= 100
    folder = Path(re.search(r"sqlite file (\S+)/rota\.db", said)[1])
    assert not folder.exists()
    assert not Path("real.db").exists()  # a sample stays away from the store of real jobs


def test_the_demo_stops_by_itself_and_keeps_a_store_that_it_is_given(rota, started):
    process = started("demo", "--for", "1s", "--store", "sqlite:///kept.db")
    process.wait_for("the time is over")
    process.signal(signal.SIGINT)
    assert process.end() == 0
    jobs = rota.data("jobs", "list", "--store", "sqlite:///kept.db")
    assert "digest" in {job["task"] for job in jobs}
    assert {job["state"] for job in jobs if job["task"] == "export"} == {"queued"}  # a second signal hands it back
    process = started("demo", "--for", "20x")
    assert process.end() == 2


def test_the_sample_app_is_built_and_not_started(folder):
    app = make_app("memory://")
    assert set(internals(app).declared) == {"checkout", "digest", "export", "photos", "rates"}
    assert not internals(app).store.is_open
    assert sorted(path.name for path in folder.iterdir()) == ["jobs.py"]
