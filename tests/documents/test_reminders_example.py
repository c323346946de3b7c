"""The example of orders that remind their customers runs."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forked_python import ForkedPython
from mongo_stage import aware, client_of

from every_store import running_server
from rota.testing.document_suite.stage import wait_for

EXAMPLE = Path(__file__).parents[2] / "examples" / "reminders"


def test_an_open_order_is_reminded_of_and_a_paid_one_is_not(caplog, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import reminders  # noqa: PLC0415 - its folder is known now

    caplog.set_level("INFO", "reminders")
    orders = client_of("mongo")["owners"]["reminders"]
    orders.drop()
    for customer in ("Ada", "Bob"):
        reminders.place_order(orders, customer, 42.0, first=datetime.now(UTC) - timedelta(seconds=1))
    reminders.pay(orders, "Bob")
    with reminders.make_queue(orders) as queue:
        wait_for(lambda: queue.is_idle)
    assert "dear Ada, your order over 42.00 is still open" in caplog.text
    assert "Bob" not in caplog.text
    after = aware(orders.find_one({"customer": "Ada"})["sleepUntil"])
    assert after > datetime.now(UTC)
    assert after.minute == 0
    sys.modules.pop("reminders")


def test_it_runs_as_a_program_until_it_is_told_to_stop():
    url = running_server("mongo").url()
    orders = client_of("mongo").get_default_database("shop")["orders"]
    orders.drop()
    child = ForkedPython([str(EXAMPLE / "reminders.py"), url], cwd=EXAMPLE, env=dict(os.environ))
    wait_for(lambda: orders.count_documents({"sleepUntil": {"$gt": datetime.now(UTC) + timedelta(minutes=1)}}) == 1)
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    assert "dear Ada" in child.stdout.read()
    child.stdout.close()
