"""The example of a shop: started by its one command, and used over HTTP as people do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from frameworks.databases import database

BROWSER = {"accept": "text/html", "sec-fetch-site": "same-origin"}
EXAMPLE = Path(__file__).parents[2] / "examples" / "fastapi_shop" / "shop.py"


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    with database(request.param, tmp_path) as url, started(tmp_path, url) as client:
        yield client


@contextmanager
def started(folder, url):
    env = {**os.environ, "SHOP_DATABASE": url, "SHOP_PORT": "0"}  # any free one
    with subprocess.Popen([sys.executable, EXAMPLE], cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        said = []
        try:
            while not (address := re.search(r"running on (http://\S+)", "".join(said))):
                line = process.stderr.readline()
                assert line, "".join(said)
                said.append(line)
            with httpx.Client(base_url=address[1], timeout=60) as client:
                yield client
        finally:
            process.send_signal(signal.SIGINT)
            said += process.stderr.readlines()
    assert "Traceback" not in "".join(said), "".join(said)


def wait_for(read, wanted):
    """Ask until it is so. The test's own limit ends it."""
    while wanted not in (found := read()):
        pass
    return found


def test_somebody_buys_and_an_operator_uses_the_dashboard(shop):
    assert shop.post("/orders", data={"item": "unicorn"}).status_code == 404
    assert shop.post("/orders", data={"item": "chair"}).status_code == 303
    page = wait_for(lambda: shop.get("/").text, "chair, 40: paid")
    assert "unicorn" not in page

    stranger = shop.get("/rota/jobs", headers=BROWSER)
    assert (stranger.status_code, stranger.headers["location"]) == (303, "/login?next=/rota/jobs")
    assert shop.post("/login", data={"name": "ann", "password": "blue"}).status_code == 403
    assert shop.post("/login", data={"name": "bob", "password": "blue"}).status_code == 303
    assert shop.get("/rota/", headers=BROWSER).status_code == 403

    entered = shop.post("/login?next=/rota/jobs", data={"name": "ann", "password": "red"})
    assert "shop.charge" in shop.get(entered.headers["location"], headers=BROWSER).text
    schedule = shop.get("/rota/schedules/sales", headers=BROWSER).text
    form = {"_form": re.search(r'name="_form" value="(\w+)"', schedule)[1], "verb": "run"}
    assert shop.post("/rota/schedules/sales/act", data=form, headers=BROWSER).status_code == 303
    wait_for(lambda: shop.get("/reports").json(), 40)
