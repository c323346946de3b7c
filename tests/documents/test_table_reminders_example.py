"""The example of rows that remind their customers runs."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forked_python import ForkedPython
from postgres_table_stage import owner

from every_store import running_server
from rota.testing.document_suite.stage import wait_for

EXAMPLE = Path(__file__).parents[2] / "examples" / "table_reminders"


def test_an_open_row_is_reminded_of_and_a_paid_one_is_not(caplog, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import table_reminders  # noqa: PLC0415 - its folder is known now

    caplog.set_level("INFO", "table_reminders")
    owner().execute("DROP TABLE IF EXISTS orders")
    owner().execute(table_reminders.TABLE)
    for customer in ("Ada", "Bob"):
        table_reminders.place_order(owner(), customer, 42.0, first=datetime.now(UTC) - timedelta(seconds=1))
    table_reminders.pay(owner(), "Bob")
    with table_reminders.make_queue(running_server("postgres").url()) as queue:
        wait_for(lambda: queue.is_idle)
    assert "dear Ada, your order over 42.00 is still open" in caplog.text
    assert "Bob" not in caplog.text
    after = owner().execute("SELECT remind_at FROM orders WHERE customer = 'Ada'").fetchone()["remind_at"]
    assert after > datetime.now(UTC)
    assert after.minute == 0
    sys.modules.pop("table_reminders")


def test_it_runs_as_a_program_until_it_is_told_to_stop():
    owner().execute("DROP TABLE IF EXISTS orders")
    command = [str(EXAMPLE / "table_reminders.py"), running_server("postgres").url()]
    child = ForkedPython(command, cwd=EXAMPLE, env=dict(os.environ))
    wait_for(lambda: owner().execute("SELECT to_regclass('orders') AS found").fetchone()["found"])
    ran = "SELECT count(*) AS n FROM orders WHERE remind_at > now() + interval '1 minute'"
    wait_for(lambda: owner().execute(ran).fetchone()["n"] == 1)
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    assert "dear Ada" in child.stdout.read()
    child.stdout.close()
