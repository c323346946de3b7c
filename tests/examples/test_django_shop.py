"""The example of a Django shop: started by its one command, and used over HTTP as people do."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "django_shop"


@pytest.fixture
def shop(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "manage.py", "demo", f"127.0.0.1:{port}"]
    env = {**os.environ, "SHOP_FOLDER": str(tmp_path), "DJANGO_SETTINGS_MODULE": "settings"}
    with (tmp_path / "log").open("w+", encoding="utf-8") as log:
        with subprocess.Popen(command, cwd=EXAMPLE, env=env, stdout=log, stderr=log) as process:
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                    wait_until(lambda: process.poll() is None and answers(client), process, log)
                    yield client
            finally:
                process.send_signal(signal.SIGINT)
        log.seek(0)
        assert "Traceback" not in (said := log.read()), said


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/").status_code == 200
    except httpx.TransportError:
        return False


def wait_until(is_so, process=None, log=None) -> None:
    """Ask until it is so. The test's own limit ends it."""
    while not is_so():
        if process is not None and process.poll() is not None:
            log.seek(0)
            raise AssertionError(log.read())


def test_somebody_buys_and_the_admin_uses_the_dashboard(shop):
    token = re.search(r'value="(\w+)"', shop.get("/").text)[1]
    assert shop.post("/", data={"csrfmiddlewaretoken": token}).status_code == 302
    wait_until(lambda: "chair: paid" in shop.get("/").text)

    assert shop.get("/rota/jobs").headers["location"] == "/admin/login/?next=/rota/jobs"
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', shop.get("/admin/login/").text)[1]
    login = {"username": "admin", "password": "admin", "csrfmiddlewaretoken": token}
    entered = shop.post("/admin/login/?next=/rota/jobs", data=login)
    assert "shop.jobs.charge" in shop.get(entered.headers["location"]).text
    assert "/admin/rota/dashboard/" in shop.get("/admin/").text


def test_a_worker_of_its_own_runs_what_a_command_enqueued(tmp_path):
    env = {**os.environ, "SHOP_FOLDER": str(tmp_path), "DJANGO_SETTINGS_MODULE": "settings"}

    def manage(*words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(command, cwd=EXAMPLE, env=env, check=True, capture_output=True, text=True).stdout

    manage("migrate", "--verbosity=0")
    manage("rota", "enqueue", "shop.jobs.sales")
    manage("rota", "worker", "--until-empty", "--settings=settings")
    (job,) = json.loads(manage("rota", "jobs", "list", "-o", "json"))
    assert (job["task"], job["state"]) == ("shop.jobs.sales", "succeeded")
