"""--metrics-port: a real process is scraped and probed over HTTP, with one port for each of several workers."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest

from cli.processes import PATIENCE, wait_until
from observe.scraping import Scrape
from rota.observe.port import Answer, Port


def get(port: int, path: str = "/metrics") -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as err:
        with err:
            return err.code, err.read()


@pytest.fixture
def free():
    """The first of two ports in a row that nobody has."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            number = first.getsockname()[1]
            try:
                socket.create_server(("127.0.0.1", number + 1)).close()
            except OSError:
                continue
        return number


@pytest.fixture
def serve():
    ports: list[Port] = []

    def start(number: int = 0, **paths) -> Port:
        ports.append(Port("127.0.0.1", number, {f"/{name}": answer for name, answer in paths.items()}))
        ports[-1].start()
        return ports[-1]

    yield start
    for port in ports:
        port.close()


def test_a_worker_is_scraped_and_probed(rota, started, free):
    rota.enqueue("jobs.greet", "ann")
    process = started("worker", "jobs.py", "--processes", "0", "--metrics-port", str(free))
    process.wait_for("metrics are served at")
    wait_until(lambda: Scrape(get(free)[1]).value("rota_job_attempts_total", task="jobs.greet", outcome="succeeded"))
    seen = Scrape(get(free)[1])
    assert seen.value("rota_jobs_ended_total", queue="default", state="succeeded") == 1
    assert seen.value("rota_job_run_seconds_count", task="jobs.greet") == 1
    assert seen.has("process_cpu_seconds_total")
    assert not Scrape(get(free, "/metrics/own")[1]).has("rota_slots")
    status, body = get(free, "/live")
    assert (status, json.loads(body)) == (200, {"status": "ok", "checks": {"loops": "ok"}})
    status, body = get(free, "/ready")
    assert (status, json.loads(body)) == (200, {"status": "ok", "checks": {"store": "ok", "worker": "ok"}})
    assert get(free, "/elsewhere")[0] == 404
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_who_asks_for_openmetrics_gets_it_from_a_port(serve):
    asked: list[str] = []

    def tell(accept: str) -> Answer:
        asked.append(accept)
        return Answer(200, "text/plain", b"")

    port = serve(here=tell)
    assert port.serves.wait(PATIENCE)
    for headers in ({}, {"Accept": "application/openmetrics-text"}):
        with closing(http.client.HTTPConnection("127.0.0.1", port.number, timeout=PATIENCE)) as client:
            client.request("GET", "/here", headers=headers)
            assert client.getresponse().status == 200
    assert asked == ["", "application/openmetrics-text"]


def test_each_of_several_workers_has_the_next_port(started, free):
    process = started("worker", "jobs.py", "--processes", "2", "--metrics-port", str(free))
    for number in (free, free + 1):
        process.wait_for(f"127.0.0.1:{number}/metrics")
        assert Scrape(get(number)[1]).value("rota_worker_slots") == 16
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_a_worker_that_is_replaced_leaves_its_port_to_its_heir(started, free):
    process = started("worker", "jobs.py", "--metrics-port", str(free))
    process.wait_for("metrics are served at")
    before = Scrape(get(free)[1]).value("process_start_time_seconds")
    process.signal(signal.SIGHUP)
    process.wait_for("all workers have been replaced")
    wait_until(lambda: started_at(free) > before)
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def started_at(port: int) -> float:
    try:
        return Scrape(get(port, "/metrics/own")[1]).value("process_start_time_seconds")
    except OSError:
        return 0.0


def test_a_scheduler_has_a_port_too(started, free):
    process = started("scheduler", "jobs.py", "--metrics-port", str(free))
    process.wait_for("metrics are served at")
    assert json.loads(get(free, "/ready")[1])["checks"] == {"store": "ok", "scheduler": "ok"}
    assert Scrape(get(free)[1]).has("rota_schedules", state="on")
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_ports_that_do_not_exist_are_refused(rota):
    assert "--metrics-port" in rota("worker", "jobs.py", "--metrics-port", "0", code=2).stderr
    assert "--metrics-port" in rota("worker", "jobs.py", "--metrics-port", "70000", code=2).stderr


def test_a_port_that_is_taken_is_waited_for(serve):
    first = serve(here=lambda _: Answer(200, "text/plain", b"first"))
    assert first.serves.wait(PATIENCE)
    second = serve(first.number, here=lambda _: Answer(200, "text/plain", b"second"))
    assert not second.serves.is_set()
    assert get(first.number, "/here") == (200, b"first")
    first.close()
    assert second.serves.wait(PATIENCE)
    assert get(second.number, "/here") == (200, b"second")


def test_one_who_waits_for_a_port_can_be_closed(serve):
    first = serve()
    assert first.serves.wait(PATIENCE)
    second = serve(first.number)
    second.close()
    assert not second._thread.is_alive()


def test_what_fails_inside_is_no_traceback_outside(serve):
    def fails(_: str) -> Answer:
        raise ValueError("hunter2")

    port = serve(here=fails)
    assert port.serves.wait(PATIENCE)
    status, body = get(port.number, "/here")
    assert status == 503
    assert b"hunter2" not in body


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n", b"POST /here HTTP/1.1\r\n\r\n", b"\xff" * 3000 + b"\r\n\r\n"])
def test_strange_clients_are_answered_or_let_go(serve, sent):
    port = serve(here=lambda _: Answer(200, "text/plain", b"well"))
    assert port.serves.wait(PATIENCE)
    with socket.create_connection(("127.0.0.1", port.number), timeout=PATIENCE) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    assert get(port.number, "/here") == (200, b"well")


def test_a_client_that_says_nothing_blocks_nobody(serve):
    port = serve(here=lambda _: Answer(200, "text/plain", b"well"))
    assert port.serves.wait(PATIENCE)
    with socket.create_connection(("127.0.0.1", port.number), timeout=PATIENCE):
        began = time.monotonic()
        assert get(port.number, "/here") == (200, b"well")
        assert time.monotonic() - began < PATIENCE
    assert threading.active_count() < 50
