"""The upgrade of docs/guides/deploying.md: nodes of an app are replaced one by one while jobs keep coming."""

from __future__ import annotations

import signal
import threading
from collections import Counter

import psycopg
import pytest

from cli.processes import Started, wait_until
from every_store import fresh_place
from rota import App

NODES = 2
JOBS_MEANWHILE = 40  # enqueued at least between two steps, so that every step has jobs around it

OLD = '''
import os
import time

import psycopg

from rota import App, every

app = App(name="shop", version="1.0")


def record(number: int, version: str) -> None:
    """Outside of Rota, so that a second run of a job is seen."""
    with psycopg.connect(os.environ["ROTA_STORE"], autocommit=True) as connection:
        connection.execute("INSERT INTO shop_runs VALUES (%s, %s)", (number, version))


@app.task(name="shop.send", retries=0)
def send(number: int) -> None:
    time.sleep(0.02)  # some run while their node is asked to stop
    record(number, "1.0")


@app.schedule(every("1h"), id="report")
def report() -> None: ...
'''

NEW = (
    OLD.replace('"1.0"', '"2.0"')
    .replace("send(number: int)", "send(number: int, copy: bool = False)")
    .replace('every("1h")', 'every("2h")')
)


class Orders(threading.Thread):
    """A web site, which enqueues without a pause and does not know which version runs."""

    def __init__(self, app: App) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._app = app
        self._is_over = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._is_over.wait(0.005):
                self._app.enqueue("shop.send", self.sent)
                self.sent += 1
        except Exception as err:  # noqa: BLE001 - the test says what it was
            self.error = err

    def some_more(self) -> None:
        wanted = self.sent + JOBS_MEANWHILE
        wait_until(lambda: self.sent >= wanted or self.error)
        assert self.error is None

    def end(self) -> int:
        self._is_over.set()
        self.join()
        return self.sent


@pytest.fixture
def site(tmp_path, monkeypatch):
    place = fresh_place("postgres", tmp_path)
    (tmp_path / "shop.py").write_text(OLD)
    monkeypatch.chdir(tmp_path)
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE shop_runs (number int, version text)")
        yield place, connection
        connection.execute("DROP TABLE shop_runs")


def test_a_rolling_upgrade_loses_no_job_and_runs_none_twice(site, tmp_path):
    place, connection = site
    env = {"ROTA_STORE": place.url, "ROTA_NAMESPACE": place.namespace, "ROTA_APP": "shop.py"}
    started: list[Started] = []

    def start(*words: str) -> Started:
        started.append(Started(*words, env=env))
        return started[-1]

    def node() -> Started:
        process = start("run", "--processes", "0", "--log-level", "info", "--wait-for-store", "10s")
        process.wait_for("started:")
        return process

    outside = App(place.url, namespace=place.namespace, name="site")
    orders = Orders(outside)
    try:
        old = [node() for _ in range(NODES)]
        orders.start()
        orders.some_more()
        (tmp_path / "shop.py").write_text(NEW)
        plan = start("migrate", "--plan")
        assert plan.end() == 0
        assert "there is nothing to do" in plan.stderr
        for leaving in old:
            node()
            orders.some_more()
            leaving.signal(signal.SIGTERM)
            orders.some_more()
            assert leaving.end() == 0
            assert "returning them" not in leaving.stderr
        orders.some_more()
        sent = orders.end()
        ready = start("health", "--ready")
        assert ready.end() == 0
        wait_until(lambda: connection.execute("SELECT count(*) FROM shop_runs").fetchone()[0] >= sent)
        assert outside.schedules.get("report").explain().startswith("Every 2 hours")
        for process in started:
            if process.process.poll() is None:
                process.signal(signal.SIGTERM)
            assert process.end() == 0
    finally:
        for process in started:
            process.close()
        outside.close()
    runs = connection.execute("SELECT number, version FROM shop_runs").fetchall()
    assert Counter(number for number, _ in runs) == dict.fromkeys(range(sent), 1)
    assert {version for _, version in runs} == {"1.0", "2.0"}
