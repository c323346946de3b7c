"""health --self: what it says of the nodes of this container, whatever other nodes of the store do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from freezing import freeze

from cli.processes import PATIENCE, environment, wait_until
from rota import App
from rota.engine.heartbeat import Heartbeat
from rota.inspector.own_nodes import PREFIX, check_own_nodes
from rota.testing.servers.process import is_stopped

NOBODY = 65_534
IS_ROOT = os.geteuid() == 0


def asked(rota, pid: int, *, code: int = 0):
    """What the check of one process says; other tests run nodes on this machine, too."""
    return json.loads(rota("health", "--self", "--pid", str(pid), "-o", "json", code=code).stdout)


def test_a_frozen_node_is_unhealthy_while_another_node_of_its_store_is_alive(rota, started, folder):
    frozen, other = (started("run", "jobs.py", "--processes", "0") for _ in range(2))
    for process in (frozen, other):
        process.wait_for("started:")
        assert asked(rota, process.process.pid)["status"] == "ok"
    freeze(frozen.process.pid, folder / ".rota" / "rota.db")
    facts = asked(rota, frozen.process.pid, code=1)
    assert facts["status"] == "unhealthy"
    assert facts["checks"]["nodes"].endswith("is stopped by a signal")
    assert [node["pid"] for node in facts["nodes"]] == [frozen.process.pid]
    assert asked(rota, other.process.pid)["nodes"][0]["roles"] == ["worker", "scheduler"]
    assert "alive" in rota("health", "--live").stdout  # the answer about the whole system
    frozen.signal(signal.SIGCONT)
    assert asked(rota, frozen.process.pid)["status"] == "ok"


def test_a_parent_answers_for_its_workers_and_a_node_that_drains_is_well(rota, started, folder):
    process = started("run", "jobs.py", "--processes", "1")
    process.wait_for("started:")
    rota.enqueue("hold", str(folder / "gate"))
    process.wait_for("holding")
    [node] = asked(rota, process.process.pid)["nodes"]
    assert node["pid"] in process.children
    process.signal(signal.SIGTERM)
    process.wait_for("SIGTERM: waiting")
    wait_until(lambda: asked(rota, process.process.pid)["nodes"][0]["state"] == "draining")
    (folder / "gate").touch()
    assert process.end() == 0
    assert "no node runs in process" in rota("health", "--self", "--pid", str(process.process.pid), code=1).stdout


def test_options_that_contradict_each_other_are_refused(rota):
    for words in (["--self", "--live"], ["--self", "--store", "sqlite:///x.db"], ["--pid", "7"]):
        rota("health", *words, code=2)


@pytest.fixture
def node():
    app = App("memory://")
    yield app.start(worker=False)
    app.close()


def test_a_loop_that_stands_still_is_named(node, monkeypatch):
    assert check_own_nodes(os.getpid()).is_well
    monkeypatch.setattr(Heartbeat, "is_turning", False)
    found = check_own_nodes(os.getpid())
    assert not found.is_well
    assert found.reason == f"node {node.id} is stuck in its heartbeat"


def test_a_node_that_accepts_no_connection_is_unhealthy_however_often_it_is_asked():
    node_id = f"{socket.gethostname()}-{os.getpid()}-0123456789ab"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:  # as a process that holds the interpreter
        silent.bind(f"\0{PREFIX}{node_id}")
        silent.listen(2)
        for _ in range(5):
            found = check_own_nodes(os.getpid(), within=0.01)
            assert found.reason == f"node {node_id} did not answer within 0.01 s"
    assert check_own_nodes(os.getpid()).nodes == []


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
def test_a_node_answers_its_own_user_and_root_alone(node):
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(60)\n"
        "s.connect(sys.argv[1].replace('@', '\\0')); print(s.recv(1000))"
    )

    def answer(**options) -> str:
        words = ["/usr/bin/env", "python3", "-c", ask, f"@{PREFIX}{node.id}"]
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd="/", **options).stdout.strip()

    assert '"state":"ok"' in answer()
    assert answer(user=NOBODY, group=NOBODY) == "b''"


# Containers: one network and one host name, each with processes of its own, as the containers of a pod have them.


@pytest.fixture
def containers(folder):
    running: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        inside = [sys.executable, "-m", "rota", "run", "jobs.py", "--processes", "0"]
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *inside]
        running.append(subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True))
        lines = iter(running[-1].stderr.readline, "")
        assert any("started:" in line for line in lines)
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.skipif(not (IS_ROOT and shutil.which("nsenter")), reason="only root can make containers")
def test_a_container_sees_its_own_node_alone(containers, folder):
    frozen, other = containers(), containers()

    def inside(process: subprocess.Popen[str]) -> int:
        [pid] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return int(pid)

    def check(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        words = ["nsenter", "-t", str(inside(process)), "--pid", "--mount", sys.executable, "-m", "rota", "health"]
        run = [*words, "--self"]
        return subprocess.run(run, cwd=folder, env=environment(), text=True, capture_output=True, timeout=PATIENCE)  # noqa: PLW1510

    host = socket.gethostname()
    assert check(frozen).stdout.startswith(f"healthy: 1 node answers: {host}-1-")
    os.kill(inside(frozen), signal.SIGSTOP)
    wait_until(lambda: is_stopped(inside(frozen)))
    assert check(frozen).returncode == 1
    assert check(other).stdout.startswith(f"healthy: 1 node answers: {host}-1-")


def test_a_socket_of_somebody_whose_name_looks_like_a_line_of_the_kernel_changes_nothing(node):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as forged:
        forged.bind(f"\0x\n1: 2 0 no 1 1 7 @{PREFIX}forged-1-0123456789ab")
        forged.listen()
        found = check_own_nodes(os.getpid())
    assert (found.is_well, [one.id for one in found.nodes]) == (True, [node.id])
